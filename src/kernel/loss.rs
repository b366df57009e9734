//! Losses and measures.

use crate::{
    element::Element,
    error::Result,
    host,
    memory::{Memory, View, ViewMut},
    op::{Accuracy, SoftmaxLoss},
};

/// Losses over class scores, whose results stay on the device.
pub trait Losses: Memory {
    /// `loss[0] ← the loss` of probabilities `p`, as [`SoftmaxLoss`] says.
    fn softmax_loss<T: Element>(
        &self,
        op: &SoftmaxLoss,
        p: View<'_, T, Self>,
        label: View<'_, T, Self>,
        mut loss: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let (p, label) = (p.host()?, label.host()?);
        host::softmax_loss(self.workers(), op, p, label, loss.host_write_only()?)
    }

    /// `dx ← scale[0] · (p − onehot(label)) / n`, the gradient of the scores whose softmax `p`
    /// is; zero where labels are ignored.
    fn softmax_loss_backward<T: Element>(
        &self,
        op: &SoftmaxLoss,
        p: View<'_, T, Self>,
        label: View<'_, T, Self>,
        scale: View<'_, T, Self>,
        mut dx: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let (p, label, scale) = (p.host()?, label.host()?, scale.host()?);
        host::softmax_loss_backward(self.workers(), op, p, label, scale, dx.host_write_only()?)
    }

    /// `y[0] ← the share of right answers`, as [`Accuracy`] says.
    fn accuracy<T: Element>(
        &self,
        op: &Accuracy,
        scores: View<'_, T, Self>,
        label: View<'_, T, Self>,
        mut y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let (scores, label) = (scores.host()?, label.host()?);
        host::accuracy(self.workers(), op, scores, label, y.host_write_only()?)
    }
}
