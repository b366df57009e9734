//! Upgrades of nets and solvers from Caffe's older formats to the current format.
//!
//! [`net`] performs the following steps as needed, in Caffe's order:
//!
//! 1. *Layers of the V0 format* (`layers { layer { type: "conv" … } }`) become layers of the V1
//!    format. The upgrade removes padding layers and moves their padding to the following
//!    convolution or pooling layer. Transformation fields of V0 layers move to `transform_param`,
//!    and all other fields to the parameter message of the layer's type.
//! 2. *Transformation fields* (`scale`, `mean_file`, `crop_size`, `mirror`) of V1's DATA,
//!    IMAGE_DATA and WINDOW_DATA layers move to their `transform_param`.
//! 3. *Layers of the V1 format* (`layers` with an enum value such as `CONVOLUTION` as the `type`)
//!    become layers of the current format. The type of a layer changes from an enum value to a
//!    string. The lists `param` (names), `blob_share_mode`, `blobs_lr` and `weight_decay` become
//!    one `param` entry for each learnable blob.
//! 4. *Input fields* (for each `input`, one `input_shape` or four `input_dim`) become an Input
//!    layer at the front. If the net has no input shapes, as in trained nets, the upgrade only
//!    removes the inputs.
//! 5. *BatchNorm layers with three `param`*: `lr_mult` and `decay_mult` become 0, because the
//!    parameters are statistics, which a solver must not update.
//! 6. *Parameters as bytes* (`raw_data` and `raw_diff`), which NVIDIA's fork of Caffe writes, move to
//!    `data` and `diff`, or to `double_data` and `double_diff`. Half-precision values become `float`
//!    values, without rounding. Caffe has no such step.
//!
//! [`solver`] has one step: the enum `solver_type` becomes the string `type`.
//!
//! The upgrade drops and reports a field of a V0 layer that the layer's type does not use. The
//! upgrade moves the `blobs` of layers and does not copy their data. A message in the current
//! format stays unchanged.
//!
//! The upgrades differ from Caffe's upgrades in five points:
//! - The upgrade of a net with V0 layers keeps the fields `state`, `debug_info` and `input_shape`,
//!   which Caffe drops.
//! - In a net with V0 layers, a layer of a different format is an error, and so is a V1 field of a
//!   V0 layer. Caffe drops a layer of a different format, and a V1 field of a V0 layer.
//! - A padding layer without exactly one bottom and one top is an error even if its top is unused.
//! - A list of `input_shape` or `input_dim` that is too short is an error; Caffe reads past the end
//!   of the list.
//! - The upgrade adds no empty `data_param` or `transform_param` to a layer without fields to move.

mod batch_norm;
mod change;
mod input;
mod padding;
mod raw_data;
mod relocation;
mod solver;
mod transform;
mod v0;
mod v1;

pub use change::Change;
pub(crate) use raw_data::expand as expand_raw_data;

use super::{
    messages::{NetParameter, SolverParameter},
    unknown::UnknownFields,
};
use crate::error::{Error, Result};
use relocation::Relocation;

/// An upgraded message in the current format, and the changes that the upgrade made.
///
/// ```
/// use cortado::proto::{parse_text, upgrade};
///
/// let v1 = r#"layers { name: "r" type: RELU bottom: "x" top: "y" }"#;
/// let upgraded = upgrade::net(parse_text(v1, "net")?)?;
/// assert_eq!(upgraded.message.layer[0].r#type(), "ReLU");
/// assert!(upgrade::net(upgraded.message)?.changes.is_empty());
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub struct Upgraded<M> {
    /// The upgraded message in the current format.
    pub message: M,
    /// The changes, in the order of the upgrade's steps; empty if the message was already in the
    /// current format.
    pub changes: Vec<Change>,
    /// The map from the old to the new paths of nested messages; `None` if no message has moved.
    relocation: Option<Relocation>,
}

impl<M> Upgraded<M> {
    /// Updates the paths in `unknown`, which was read together with the message.
    ///
    /// An unknown field of an upgraded layer keeps its field number. [`UnknownFields::write`] drops
    /// unknown fields whose message the upgrade removed, and logs a warning.
    pub fn relocate(&self, unknown: &mut UnknownFields) {
        if let Some(relocation) = &self.relocation {
            unknown.remap_paths(|path| {
                relocation.remap(path);
                true
            });
        }
    }
}

/// A step of a net's upgrade: a function that changes the net in place and returns the changes.
type Step = fn(&mut NetParameter) -> Result<Vec<Change>>;

const STEPS: [Step; 6] = [
    v0::upgrade,
    transform::upgrade,
    v1::upgrade,
    input::upgrade,
    batch_norm::upgrade,
    raw_data::upgrade,
];

/// Upgrades a net definition or a trained net to the current format.
///
/// # Errors
/// Returns [`Error::InvalidData`] for a net or layer that mixes formats, for an input without a
/// shape if the net has input shapes, for a V0 layer of unknown type or with an unknown bottom, and
/// for a padding layer before a layer that is neither a convolution nor a pooling layer. The error
/// for a layer names the layer.
#[doc(alias = "UpgradeNetAsNeeded")]
pub fn net(mut net: NetParameter) -> Result<Upgraded<NetParameter>> {
    if !net.layer.is_empty() && !net.layers.is_empty() {
        let reason = "both `layer` and `layers` are set; write all layers as `layer`";
        return Err(Error::InvalidData(reason.into()));
    }
    let kept = net.layers.iter().map(|layer| !padding::is_padding(layer));
    let kept: Vec<bool> = kept.chain(net.layer.iter().map(|_| true)).collect();
    let mut changes = Vec::new();
    for step in STEPS {
        changes.extend(step(&mut net)?);
    }
    let relocation = Some(Relocation::new(&kept, &net));
    Ok(Upgraded { message: net, changes, relocation })
}

/// Upgrades a solver's definition to the current format, but not the nets that the definition
/// contains.
///
/// # Errors
/// Returns [`Error::InvalidData`] if both `solver_type` and `type` are set, or `solver_type` is
/// unknown.
#[doc(alias = "UpgradeSolverAsNeeded")]
pub fn solver(mut solver: SolverParameter) -> Result<Upgraded<SolverParameter>> {
    let changes = solver::upgrade(&mut solver)?;
    Ok(Upgraded { message: solver, changes, relocation: None })
}
