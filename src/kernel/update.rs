//! Solver steps.

use crate::{
    element::Element,
    error::Result,
    kernel::fallback,
    memory::{Memory, View, ViewMut},
    op::SolverUpdate,
};

/// Solver steps, each one pass over the parameters.
pub trait Update: Memory {
    /// One step down the gradient, as [`SolverUpdate`] says; `history` holds as many operands as its
    /// rule keeps values.
    ///
    /// `masters`, which weights of 16 bits have, are the same weights in the type that steps are
    /// computed in: a step too small to show in the weights is not lost. A weight that is not its
    /// master rounded has been changed from outside: then the step starts from the weight.
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
