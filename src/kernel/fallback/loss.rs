//! Losses.

use super::enter;
use crate::{
    element::Element,
    error::Result,
    host,
    memory::{Memory, View, ViewMut},
    op::{Accuracy, SoftmaxLoss},
};

/// [`Losses::softmax_loss`](crate::kernel::Losses::softmax_loss) on the host.
#[track_caller]
pub fn softmax_loss<T: Element, D: Memory>(
    device: &D,
    op: &SoftmaxLoss,
    p: View<'_, T, D>,
    label: View<'_, T, D>,
    mut loss: ViewMut<'_, T, D>,
) -> Result<()> {
    let _kernel = enter(device, "softmax_loss", T::DTYPE.name())?;
    let (p, label) = (p.host()?, label.host()?);
    loss.host_overwrite(|loss| host::softmax_loss(device.workers(), op, p, label, loss))
}

/// [`Losses::softmax_loss_backward`](crate::kernel::Losses::softmax_loss_backward) on the host.
#[track_caller]
pub fn softmax_loss_backward<T: Element, D: Memory>(
    device: &D,
    op: &SoftmaxLoss,
    p: View<'_, T, D>,
    label: View<'_, T, D>,
    scale: View<'_, T, D>,
    mut dx: ViewMut<'_, T, D>,
) -> Result<()> {
    let _kernel = enter(device, "softmax_loss_backward", T::DTYPE.name())?;
    let (p, label, scale) = (p.host()?, label.host()?, scale.host()?);
    dx.host_overwrite(|dx| host::softmax_loss_backward(device.workers(), op, p, label, scale, dx))
}

/// [`Losses::accuracy`](crate::kernel::Losses::accuracy) on the host.
#[track_caller]
pub fn accuracy<T: Element, D: Memory>(
    device: &D,
    op: &Accuracy,
    scores: View<'_, T, D>,
    label: View<'_, T, D>,
    mut y: ViewMut<'_, T, D>,
) -> Result<()> {
    let _kernel = enter(device, "accuracy", T::DTYPE.name())?;
    let (scores, label) = (scores.host()?, label.host()?);
    y.host_overwrite(|y| host::accuracy(device.workers(), op, scores, label, y))
}
