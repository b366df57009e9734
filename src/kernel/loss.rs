//! Losses and measures.

use crate::{
    element::Element,
    error::Result,
    kernel::fallback,
    memory::{Memory, View, ViewMut},
    op::{Accuracy, SoftmaxLoss},
};

/// Losses over class scores, whose results stay on the device.
pub trait Losses: Memory {
    /// `loss[0] ← the loss` of probabilities `p`, as [`SoftmaxLoss`] says.
    #[track_caller]
    fn softmax_loss<T: Element>(
        &self,
        op: &SoftmaxLoss,
        p: View<'_, T, Self>,
        label: View<'_, T, Self>,
        loss: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        fallback::softmax_loss(self, op, p, label, loss)
    }

    /// `dx ← scale[0] · (p − onehot(label)) / n`, the gradient of the scores whose softmax `p`
    /// is; zero where labels are ignored.
    #[track_caller]
    fn softmax_loss_backward<T: Element>(
        &self,
        op: &SoftmaxLoss,
        p: View<'_, T, Self>,
        label: View<'_, T, Self>,
        scale: View<'_, T, Self>,
        dx: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        fallback::softmax_loss_backward(self, op, p, label, scale, dx)
    }

    /// `y[0] ← the share of right answers`, as [`Accuracy`] says.
    #[track_caller]
    fn accuracy<T: Element>(
        &self,
        op: &Accuracy,
        scores: View<'_, T, Self>,
        label: View<'_, T, Self>,
        y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        fallback::accuracy(self, op, scores, label, y)
    }
}
