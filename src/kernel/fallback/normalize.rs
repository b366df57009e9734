//! Normalisation.

use super::enter;
use crate::{
    element::Element,
    error::Result,
    host,
    memory::{Memory, Src, View, ViewMut},
    op::{Axis, Lrn, Standardize},
};

/// [`Normalize::softmax`](crate::kernel::Normalize::softmax) on the host.
#[track_caller]
pub fn softmax<T: Element, D: Memory>(
    device: &D,
    axis: &Axis,
    x: Src<'_, T, D>,
    mut y: ViewMut<'_, T, D>,
) -> Result<()> {
    let _kernel = enter(device, "softmax", T::DTYPE.name())?;
    match x {
        Src::View(x) => {
            y.host_overwrite(|y| host::softmax(device.host_workers(), axis, x.host()?, y))
        }
        Src::InPlace => host::softmax_in_place(device.host_workers(), axis, y.host_mut()?),
    }
}

/// [`Normalize::softmax_backward`](crate::kernel::Normalize::softmax_backward) on the host.
#[track_caller]
pub fn softmax_backward<T: Element, D: Memory>(
    device: &D,
    axis: &Axis,
    y: View<'_, T, D>,
    dy: Src<'_, T, D>,
    mut dx: ViewMut<'_, T, D>,
) -> Result<()> {
    let _kernel = enter(device, "softmax_backward", T::DTYPE.name())?;
    let (workers, y) = (device.host_workers(), y.host()?);
    match dy {
        Src::View(dy) => {
            dx.host_overwrite(|dx| host::softmax_backward(workers, axis, y, dy.host()?, dx))
        }
        Src::InPlace => host::softmax_backward_in_place(workers, axis, y, dx.host_mut()?),
    }
}

/// [`Normalize::lrn`](crate::kernel::Normalize::lrn) on the host.
#[track_caller]
pub fn lrn<T: Element, D: Memory>(
    device: &D,
    op: &Lrn,
    x: View<'_, T, D>,
    mut scale: ViewMut<'_, T, D>,
    mut y: ViewMut<'_, T, D>,
) -> Result<()> {
    let _kernel = enter(device, "lrn", T::DTYPE.name())?;
    let (workers, x) = (device.host_workers(), x.host()?);
    y.host_overwrite(|y| scale.host_overwrite(|scale| host::lrn(workers, op, x, scale, y)))
}

/// [`Normalize::lrn_backward`](crate::kernel::Normalize::lrn_backward) on the host.
#[track_caller]
pub fn lrn_backward<T: Element, D: Memory>(
    device: &D,
    op: &Lrn,
    x: View<'_, T, D>,
    y: View<'_, T, D>,
    scale: View<'_, T, D>,
    dy: View<'_, T, D>,
    mut dx: ViewMut<'_, T, D>,
) -> Result<()> {
    let _kernel = enter(device, "lrn_backward", T::DTYPE.name())?;
    let (x, y, scale, dy) = (x.host()?, y.host()?, scale.host()?, dy.host()?);
    dx.host_overwrite(|dx| host::lrn_backward(device.host_workers(), op, x, y, scale, dy, dx))
}

/// [`Normalize::moments`](crate::kernel::Normalize::moments) on the host.
#[track_caller]
pub fn moments<T: Element, D: Memory>(
    device: &D,
    axis: &Axis,
    x: View<'_, T, D>,
    mut mean: ViewMut<'_, T, D>,
    mut variance: ViewMut<'_, T, D>,
) -> Result<()> {
    let _kernel = enter(device, "moments", T::DTYPE.name())?;
    let (workers, x) = (device.host_workers(), x.host()?);
    mean.host_overwrite(|mean| {
        variance.host_overwrite(|variance| host::moments(workers, axis, x, mean, variance))
    })
}

/// [`Normalize::standardize`](crate::kernel::Normalize::standardize) on the host.
#[track_caller]
pub fn standardize<T: Element, D: Memory>(
    device: &D,
    op: &Standardize,
    x: Src<'_, T, D>,
    mean: View<'_, T, D>,
    variance: View<'_, T, D>,
    mut y: ViewMut<'_, T, D>,
) -> Result<()> {
    let _kernel = enter(device, "standardize", T::DTYPE.name())?;
    let (workers, mean, variance) = (device.host_workers(), mean.host()?, variance.host()?);
    match x {
        Src::View(x) => {
            y.host_overwrite(|y| host::standardize(workers, op, x.host()?, mean, variance, y))
        }
        Src::InPlace => host::standardize_in_place(workers, op, mean, variance, y.host_mut()?),
    }
}

/// [`Normalize::standardize_backward`](crate::kernel::Normalize::standardize_backward) on the host.
#[track_caller]
pub fn standardize_backward<T: Element, D: Memory>(
    device: &D,
    op: &Standardize,
    x: View<'_, T, D>,
    mean: View<'_, T, D>,
    variance: View<'_, T, D>,
    dy: Src<'_, T, D>,
    mut dx: ViewMut<'_, T, D>,
) -> Result<()> {
    let _kernel = enter(device, "standardize_backward", T::DTYPE.name())?;
    let workers = device.host_workers();
    let (x, mean, variance) = (x.host()?, mean.host()?, variance.host()?);
    match dy {
        Src::View(dy) => dx.host_overwrite(|dx| {
            host::standardize_backward(workers, op, x, mean, variance, dy.host()?, dx)
        }),
        Src::InPlace => {
            let dx = dx.host_mut()?;
            host::standardize_backward_in_place(workers, op, x, mean, variance, dx)
        }
    }
}
