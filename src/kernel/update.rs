//! Solver updates.

use super::fallback;
use crate::{
    element::Element,
    error::Result,
    memory::{Memory, View, ViewMut},
    op::SolverUpdate,
};

// `declare_family!` does not declare this kernel, because no other kernel has an optional output or
// a list of outputs.
/// Solver updates, each of which is one pass over the parameters.
pub trait Update: Memory {
    /// Updates the weights by one step of a solver; see [`SolverUpdate`]. `history` holds one
    /// operand for each value that the rule keeps per weight.
    ///
    /// `masters` are the master weights of 16-bit weights, in the accumulator type, so that a step
    /// too small to change a weight is not lost. If a weight differs from its rounded master
    /// weight, other code has changed the weight, and the step starts from the weight.
    #[track_caller]
    fn solver_update<T: Element>(
        &self,
        op: &SolverUpdate<T>,
        dw: View<'_, T, Self>,
        weights: ViewMut<'_, T, Self>,
        masters: Option<ViewMut<'_, T::Acc, Self>>,
        history: &mut [ViewMut<'_, T::Acc, Self>],
    ) -> Result<()> {
        fallback::solver_update(self, op, dw, weights, masters, history)
    }
}

pub(super) const NAMES: &[&str] = &["solver_update"];
