//! Solver steps.

use crate::{
    element::Element,
    error::Result,
    kernel::fallback,
    memory::{Memory, View, ViewMut},
    op::Sgd,
};

/// Solver steps, each one pass over the parameters.
pub trait Update: Memory {
    /// One step of gradient descent with momentum, as [`Sgd`] says.
    #[track_caller]
    fn sgd<T: Element>(
        &self,
        op: &Sgd<T>,
        dw: View<'_, T, Self>,
        weights: ViewMut<'_, T, Self>,
        history: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        fallback::sgd(self, op, dw, weights, history)
    }
}
