//! Losses and measures.

use crate::{
    element::Element,
    error::Result,
    kernel::fallback,
    memory::{Memory, View, ViewMut},
    op::{Accuracy, ClassLoss, ElementwiseLoss, SoftmaxLoss},
};

/// Losses, and measures over class scores, whose results stay on the device.
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

    /// `y[c] ← the share of right answers` among labels `c`; 0 of none.
    #[track_caller]
    fn accuracy_by_class<T: Element>(
        &self,
        op: &Accuracy,
        scores: View<'_, T, Self>,
        label: View<'_, T, Self>,
        y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        fallback::accuracy_by_class(self, op, scores, label, y)
    }

    /// `loss[0] ← Σ f(x, label) / n`, as [`ClassLoss`] says.
    #[track_caller]
    fn class_loss<T: Element>(
        &self,
        op: &ClassLoss,
        x: View<'_, T, Self>,
        label: View<'_, T, Self>,
        matrix: Option<View<'_, T, Self>>,
        loss: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        fallback::class_loss(self, op, x, label, matrix, loss)
    }

    /// `dx ← scale[0] · the derivative of f / n`; zero where labels are ignored.
    #[track_caller]
    fn class_loss_backward<T: Element>(
        &self,
        op: &ClassLoss,
        x: View<'_, T, Self>,
        label: View<'_, T, Self>,
        matrix: Option<View<'_, T, Self>>,
        scale: View<'_, T, Self>,
        dx: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        fallback::class_loss_backward(self, op, x, label, matrix, scale, dx)
    }

    /// `loss[0] ← Σ f(x, t) / n`, as [`ElementwiseLoss`] says.
    #[track_caller]
    fn elementwise_loss<T: Element>(
        &self,
        op: &ElementwiseLoss<T::Acc>,
        x: View<'_, T, Self>,
        t: View<'_, T, Self>,
        loss: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        fallback::elementwise_loss(self, op, x, t, loss)
    }

    /// `dx ← scale[0] · f'(x, t) / n`; zero where targets are ignored.
    #[track_caller]
    fn elementwise_loss_backward<T: Element>(
        &self,
        op: &ElementwiseLoss<T::Acc>,
        x: View<'_, T, Self>,
        t: View<'_, T, Self>,
        scale: View<'_, T, Self>,
        dx: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        fallback::elementwise_loss_backward(self, op, x, t, scale, dx)
    }
}
