//! Conformance checks of small nets, and the gradient check of a single layer.

mod blobs;
mod finite_difference;
mod gradient_check;
mod gradients;
mod lenet;

pub use gradient_check::GradientCheck;

use super::check::Check;

/// Returns the conformance checks of nets.
pub(super) fn checks() -> Vec<Check> {
    vec![
        Check::once("gradients", None, gradients::gradients),
        Check::once("lenet", None, lenet::lenet),
    ]
}
