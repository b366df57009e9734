//! Changes that an upgrade reports.

use std::fmt;

/// One change made by an upgrade, displayed as a phrase such as `upgraded layers of the V1 format`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// Layers of the V0 format were upgraded to the V1 format.
    V0,
    /// Transformation fields of data layers were moved to `transform_param`.
    Transformation,
    /// Layers of the V1 format were upgraded to the current format.
    V1,
    /// Input fields were replaced by an Input layer, or removed.
    Inputs,
    /// Learning rates and weight decays of BatchNorm statistics were set to 0.
    BatchNorm,
    /// `solver_type` was replaced by `type`.
    SolverType,
    /// A field was dropped, because layers of this type do not use it.
    Dropped {
        /// Name of the layer.
        layer: String,
        /// Name of the field in the old format.
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
                return write!(
                    f,
                    "layer `{layer}`: dropped `{field}`, which its type does not use"
                );
            }
        })
    }
}
