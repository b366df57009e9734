//! The changes that the upgrade of a net or solver definition reports.

use std::fmt;

/// A change that an upgrade made to a net or solver definition. `Display` writes a phrase such as
/// `upgraded layers of the V1 format`.
///
/// ```
/// use cortado::proto::{parse_text, upgrade::{self, Change}};
///
/// let upgraded = upgrade::solver(parse_text("solver_type: ADAM", "solver")?)?;
/// assert_eq!(upgraded.changes, [Change::SolverType]);
/// assert_eq!(upgraded.changes[0].to_string(), "replaced solver_type by type");
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// The upgrade converted layers of the V0 format to the V1 format.
    V0,
    /// The upgrade moved transformation fields of data layers to `transform_param`.
    Transformation,
    /// The upgrade converted layers of the V1 format to the current format.
    V1,
    /// The upgrade replaced the input fields of a net by an Input layer, or removed the input
    /// fields.
    Inputs,
    /// The upgrade set `lr_mult` and `decay_mult` of BatchNorm statistics to 0.
    BatchNorm,
    /// The upgrade moved values from the fields `raw_data` and `raw_diff` of NVIDIA's fork of Caffe to
    /// `data` and `diff`.
    RawData,
    /// The upgrade replaced `solver_type` by `type`.
    SolverType,
    /// The upgrade dropped a field that the layer's type does not use.
    Dropped {
        /// The name of the layer with the dropped field.
        layer: String,
        /// The name of the dropped field in the old format.
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
            Self::BatchNorm => "set lr_mult and decay_mult of BatchNorm statistics to 0",
            Self::RawData => "moved raw_data and raw_diff of parameters to data and diff",
            Self::SolverType => "replaced solver_type by type",
            Self::Dropped { layer, field } => {
                return write!(
                    f,
                    "layer `{layer}`: dropped `{field}`, which the layer's type does not use"
                );
            }
        })
    }
}
