//! Solver steps.

use crate::{
    element::Element,
    error::Result,
    host,
    memory::{Memory, View, ViewMut},
    op::Sgd,
};

/// Solver steps, each one pass over the parameters.
pub trait Update: Memory {
    /// One step of gradient descent with momentum, as [`Sgd`] says.
    fn sgd<T: Element>(
        &self,
        op: &Sgd<T>,
        dw: View<'_, T, Self>,
        mut weights: ViewMut<'_, T, Self>,
        mut history: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let (dw, weights) = (dw.host()?, weights.host_mut()?);
        host::sgd(self.workers(), op, dw, weights, history.host_mut()?)
    }
}
