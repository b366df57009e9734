//! Pooling.

use super::enter;
use crate::{
    element::Element,
    error::Result,
    host,
    memory::{Memory, View, ViewMut},
    op::Pool2d,
};

/// [`Pooling::max_pool`](crate::kernel::Pooling::max_pool) on the host.
#[track_caller]
pub fn max_pool<T: Element, D: Memory>(
    device: &D,
    op: &Pool2d,
    x: View<'_, T, D>,
    mut y: ViewMut<'_, T, D>,
    mut mask: ViewMut<'_, i32, D>,
) -> Result<()> {
    let _kernel = enter(device, "max_pool", T::DTYPE.name())?;
    let (workers, x) = (device.host_workers(), x.host()?);
    y.host_overwrite(|y| mask.host_overwrite(|mask| host::max_pool(workers, op, x, y, mask)))
}

/// [`Pooling::max_pool_backward`](crate::kernel::Pooling::max_pool_backward) on the host.
#[track_caller]
pub fn max_pool_backward<T: Element, D: Memory>(
    device: &D,
    op: &Pool2d,
    dy: View<'_, T, D>,
    mask: View<'_, i32, D>,
    mut dx: ViewMut<'_, T, D>,
) -> Result<()> {
    let _kernel = enter(device, "max_pool_backward", T::DTYPE.name())?;
    let (dy, mask) = (dy.host()?, mask.host()?);
    dx.host_overwrite(|dx| host::max_pool_backward(device.host_workers(), op, dy, mask, dx))
}

/// [`Pooling::average_pool`](crate::kernel::Pooling::average_pool) on the host.
#[track_caller]
pub fn average_pool<T: Element, D: Memory>(
    device: &D,
    op: &Pool2d,
    x: View<'_, T, D>,
    mut y: ViewMut<'_, T, D>,
) -> Result<()> {
    let _kernel = enter(device, "average_pool", T::DTYPE.name())?;
    y.host_overwrite(|y| host::average_pool(device.host_workers(), op, x.host()?, y))
}

/// [`Pooling::average_pool_backward`](crate::kernel::Pooling::average_pool_backward) on the host.
#[track_caller]
pub fn average_pool_backward<T: Element, D: Memory>(
    device: &D,
    op: &Pool2d,
    dy: View<'_, T, D>,
    mut dx: ViewMut<'_, T, D>,
) -> Result<()> {
    let _kernel = enter(device, "average_pool_backward", T::DTYPE.name())?;
    dx.host_overwrite(|dx| host::average_pool_backward(device.host_workers(), op, dy.host()?, dx))
}

/// [`Pooling::stochastic_pool`](crate::kernel::Pooling::stochastic_pool) on the host.
#[track_caller]
pub fn stochastic_pool<T: Element, D: Memory>(
    device: &D,
    op: &Pool2d,
    x: View<'_, T, D>,
    u: View<'_, f32, D>,
    mut y: ViewMut<'_, T, D>,
    mut mask: ViewMut<'_, i32, D>,
) -> Result<()> {
    let _kernel = enter(device, "stochastic_pool", T::DTYPE.name())?;
    let (workers, x, u) = (device.host_workers(), x.host()?, u.host()?);
    y.host_overwrite(|y| {
        mask.host_overwrite(|mask| host::stochastic_pool(workers, op, x, u, y, mask))
    })
}
