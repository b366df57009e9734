//! Upgrades: nets and solvers in formats that Caffe has left behind become what they are today.
//!
//! [`net`] takes these steps, each if it is needed, in Caffe's order:
//!
//! 1. *Layers of the V0 format* (`layers { layer { type: "conv" … } }`) become layers of the V1
//!    format. Padding layers disappear: the convolution or pooling after each pads by itself.
//!    What transforms data goes to `transform_param`, every other field to the parameter message of
//!    its layer's type.
//! 2. *Transformation fields* (`scale`, `mean_file`, `crop_size`, `mirror`) of V1's DATA, IMAGE_DATA
//!    and WINDOW_DATA layers move to their `transform_param`.
//! 3. *Layers of the V1 format* (`layers { type: CONVOLUTION … }`) become layers of today's:
//!    the type is a string, and `param` holds what was said of each learnable blob in the lists
//!    `param` (names), `blob_share_mode`, `blobs_lr` and `weight_decay`.
//! 4. *Input fields* (`input` with `input_shape`, or with four `input_dim` each) become an Input
//!    layer before all others. Inputs without any shape, as trained nets have them, disappear.
//! 5. *BatchNorm layers with three `param`*: these are statistics, which no solver may touch, so
//!    their rates become 0.
//!
//! [`solver`] has one: `solver_type`, an enum, becomes `type`, a string.
//!
//! A field of a V0 layer that is of no use to its type is dropped, and named among the changes.
//! Layers' `blobs` are moved, never copied. What is up to date stays as it is, so that upgrading
//! twice is upgrading once.
//!
//! What differs from Caffe:
//! - `state`, `debug_info` and `input_shape` of a net with V0 layers stay; Caffe forgets them.
//! - In such a net, a layer of another format, and fields of the V1 format beside a V0 layer, are
//!   errors: Caffe forgets those, too.
//! - A padding layer without exactly one bottom and one top is an error even if nobody reads it.
//! - Too few `input_shape` or `input_dim` are an error: Caffe reads past the end of the list.
//! - No empty `data_param` or `transform_param` is left where there was nothing to move.

mod batch_norm;
mod input;
mod relocation;
mod padding;
mod solver;
mod transform;
mod v0;
mod v1;

use super::{NetParameter, SolverParameter, UnknownFields};
use crate::error::{Error, Result};
use relocation::Moves;
use std::fmt;

/// A message as it is written today, and what had to be done to it.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub struct Upgraded<M> {
    /// The message.
    pub message: M,
    /// What was done, in order; nothing if the message was up to date.
    pub changes: Vec<Change>,
    /// Where parts of the message went; `None` if all are where they were.
    moves: Option<Moves>,
}

impl<M> Upgraded<M> {
    /// Lets unknown fields follow the messages that they were read with.
    ///
    /// A field of a layer stays one of the layer, under its number, whatever the format; what has no
    /// message left to be in is told when they are [written](Unknown::write).
    pub fn relocate(&self, unknown: &mut UnknownFields) {
        if let Some(moves) = &self.moves {
            unknown.remap_paths(|path| {
                moves.follow(path);
                true
            });
        }
    }
}

/// One thing that an upgrade did. Shown as a phrase, such as `upgraded layers of the V1 format`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// Layers of the V0 format were upgraded to the V1 format.
    V0,
    /// Transformation fields of data layers were moved to `transform_param`.
    Transformation,
    /// Layers of the V1 format were upgraded to the one of today.
    V1,
    /// Input fields were replaced by an Input layer, or removed.
    Inputs,
    /// Rates of BatchNorm layers' statistics were set to 0.
    BatchNorm,
    /// `solver_type` was replaced by `type`.
    SolverType,
    /// A field was dropped, since layers of the type have no use for it.
    Dropped {
        /// Name of the layer.
        layer: String,
        /// Name of the field, in the old format.
        field: &'static str,
    },
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V0 => "upgraded layers of the V0 format",
            Self::Transformation => "moved transformation fields to transform_param",
            Self::V1 => "upgraded layers of the V1 format",
            Self::Inputs => "upgraded input fields",
            Self::BatchNorm => "set the rates of BatchNorm statistics to 0",
            Self::SolverType => "replaced solver_type by type",
            Self::Dropped { layer, field } => {
                return write!(f, "dropped `{field}` of layer `{layer}`: of no use to its type");
            }
        })
    }
}

/// A step: changes what is old, says what it did.
type Step = fn(&mut NetParameter) -> Result<Vec<Change>>;

const STEPS: [Step; 5] =
    [v0::upgrade, transform::upgrade, v1::upgrade, input::upgrade, batch_norm::upgrade];

/// Upgrades a net, be it a definition or trained.
///
/// # Errors
/// [`Error::InvalidData`], with the layer's name, for what is in two formats at once, a layer type or a
/// bottom that the V0 format does not know, padding before anything but a convolution or a pooling,
/// and inputs without their shape.
#[doc(alias = "UpgradeNetAsNeeded")]
pub fn net(mut net: NetParameter) -> Result<Upgraded<NetParameter>> {
    if !net.layer.is_empty() && !net.layers.is_empty() {
        let why = "a net has both `layer` and `layers` fields; write all of them as `layer`";
        return Err(Error::InvalidData(why.into()));
    }
    let stays = net.layers.iter().map(|layer| !padding::is_padding(layer));
    let stays: Vec<bool> = stays.chain(net.layer.iter().map(|_| true)).collect();
    let mut changes = Vec::new();
    for step in STEPS {
        changes.extend(step(&mut net)?);
    }
    let moves = Some(Moves::new(&stays, &net));
    Ok(Upgraded { message: net, changes, moves })
}

/// Upgrades a solver. Nets inside it stay as they are.
///
/// # Errors
/// [`Error::InvalidData`] if it has both `solver_type` and `type`, or a `solver_type` without a name.
#[doc(alias = "UpgradeSolverAsNeeded")]
pub fn solver(mut solver: SolverParameter) -> Result<Upgraded<SolverParameter>> {
    let changes = solver::upgrade(&mut solver)?;
    Ok(Upgraded { message: solver, changes, moves: None })
}

/// An error of the layer of this name.
fn at_layer(name: &str, why: impl Into<String>) -> Error {
    Error::InvalidData(why.into()).context(format!("layer `{name}`"))
}
