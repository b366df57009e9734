//! Losses.

use super::enter;
use crate::{
    element::Element,
    error::Result,
    host,
    memory::{Memory, View, ViewMut},
    op::{Accuracy, ClassLoss, ElementwiseLoss, SoftmaxLoss},
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
    loss.host_overwrite(|loss| host::softmax_loss(device.host_workers(), op, p, label, loss))
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
    dx.host_overwrite(|dx| {
        host::softmax_loss_backward(device.host_workers(), op, p, label, scale, dx)
    })
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
    y.host_overwrite(|y| host::accuracy(device.host_workers(), op, scores, label, y))
}

/// [`Losses::accuracy_by_class`](crate::kernel::Losses::accuracy_by_class) on the host.
#[track_caller]
pub fn accuracy_by_class<T: Element, D: Memory>(
    device: &D,
    op: &Accuracy,
    scores: View<'_, T, D>,
    label: View<'_, T, D>,
    mut y: ViewMut<'_, T, D>,
) -> Result<()> {
    let _kernel = enter(device, "accuracy_by_class", T::DTYPE.name())?;
    let (scores, label) = (scores.host()?, label.host()?);
    y.host_overwrite(|y| host::accuracy_by_class(device.host_workers(), op, scores, label, y))
}

/// [`Losses::class_loss`](crate::kernel::Losses::class_loss) on the host.
#[track_caller]
pub fn class_loss<T: Element, D: Memory>(
    device: &D,
    op: &ClassLoss,
    x: View<'_, T, D>,
    label: View<'_, T, D>,
    matrix: Option<View<'_, T, D>>,
    mut loss: ViewMut<'_, T, D>,
) -> Result<()> {
    let _kernel = enter(device, "class_loss", T::DTYPE.name())?;
    let (x, label, matrix) = (x.host()?, label.host()?, matrix.map(View::host).transpose()?);
    loss.host_overwrite(|loss| host::class_loss(device.host_workers(), op, x, label, matrix, loss))
}

/// [`Losses::class_loss_backward`](crate::kernel::Losses::class_loss_backward) on the host.
#[track_caller]
pub fn class_loss_backward<T: Element, D: Memory>(
    device: &D,
    op: &ClassLoss,
    x: View<'_, T, D>,
    label: View<'_, T, D>,
    matrix: Option<View<'_, T, D>>,
    scale: View<'_, T, D>,
    mut dx: ViewMut<'_, T, D>,
) -> Result<()> {
    let _kernel = enter(device, "class_loss_backward", T::DTYPE.name())?;
    let (x, label, matrix) = (x.host()?, label.host()?, matrix.map(View::host).transpose()?);
    let scale = scale.host()?;
    dx.host_overwrite(|dx| {
        host::class_loss_backward(device.host_workers(), op, x, label, matrix, scale, dx)
    })
}

/// [`Losses::elementwise_loss`](crate::kernel::Losses::elementwise_loss) on the host.
#[track_caller]
pub fn elementwise_loss<T: Element, D: Memory>(
    device: &D,
    op: &ElementwiseLoss<T::Acc>,
    x: View<'_, T, D>,
    t: View<'_, T, D>,
    mut loss: ViewMut<'_, T, D>,
) -> Result<()> {
    let _kernel = enter(device, "elementwise_loss", T::DTYPE.name())?;
    let (x, t) = (x.host()?, t.host()?);
    loss.host_overwrite(|loss| host::elementwise_loss(device.host_workers(), op, x, t, loss))
}

/// [`Losses::elementwise_loss_backward`](crate::kernel::Losses::elementwise_loss_backward) on the host.
#[track_caller]
pub fn elementwise_loss_backward<T: Element, D: Memory>(
    device: &D,
    op: &ElementwiseLoss<T::Acc>,
    x: View<'_, T, D>,
    t: View<'_, T, D>,
    scale: View<'_, T, D>,
    mut dx: ViewMut<'_, T, D>,
) -> Result<()> {
    let _kernel = enter(device, "elementwise_loss_backward", T::DTYPE.name())?;
    let (x, t, scale) = (x.host()?, t.host()?, scale.host()?);
    dx.host_overwrite(|dx| {
        host::elementwise_loss_backward(device.host_workers(), op, x, t, scale, dx)
    })
}
