//! Elementwise maps.

use super::enter;
use crate::{
    element::Element,
    error::Result,
    host,
    memory::{Memory, Src, View, ViewMut},
    op::{Axis, Binary, Unary},
};

/// [`Elementwise::fill`](crate::kernel::Elementwise::fill) on the host.
#[track_caller]
pub fn fill<T: Element, D: Memory>(device: &D, value: T, mut y: ViewMut<'_, T, D>) -> Result<()> {
    let _kernel = enter(device, "fill", T::DTYPE.name())?;
    y.host_overwrite(|y| host::fill(device.workers(), value, y))
}

/// [`Elementwise::unary`](crate::kernel::Elementwise::unary) on the host.
#[track_caller]
pub fn unary<T: Element, D: Memory>(
    device: &D,
    op: Unary<T::Acc>,
    x: Src<'_, T, D>,
    mut y: ViewMut<'_, T, D>,
) -> Result<()> {
    let _kernel = enter(device, "unary", T::DTYPE.name())?;
    match x {
        Src::From(x) => y.host_overwrite(|y| host::unary(device.workers(), op, x.host()?, y)),
        Src::InPlace => host::unary_in_place(device.workers(), op, y.host_mut()?),
    }
}

/// [`Elementwise::binary`](crate::kernel::Elementwise::binary) on the host.
#[track_caller]
pub fn binary<T: Element, D: Memory>(
    device: &D,
    op: Binary<T::Acc>,
    a: Src<'_, T, D>,
    b: View<'_, T, D>,
    mut y: ViewMut<'_, T, D>,
) -> Result<()> {
    let _kernel = enter(device, "binary", T::DTYPE.name())?;
    let (workers, b) = (device.workers(), b.host()?);
    match a {
        Src::From(a) => y.host_overwrite(|y| host::binary(workers, op, a.host()?, b, y)),
        Src::InPlace => host::binary_in_place(workers, op, b, y.host_mut()?),
    }
}

/// [`Elementwise::broadcast`](crate::kernel::Elementwise::broadcast) on the host.
#[track_caller]
pub fn broadcast<T: Element, D: Memory>(
    device: &D,
    op: Binary<T::Acc>,
    axis: &Axis,
    a: Src<'_, T, D>,
    b: View<'_, T, D>,
    mut y: ViewMut<'_, T, D>,
) -> Result<()> {
    let _kernel = enter(device, "broadcast", T::DTYPE.name())?;
    let (workers, b) = (device.workers(), b.host()?);
    match a {
        Src::From(a) => y.host_overwrite(|y| host::broadcast(workers, op, axis, a.host()?, b, y)),
        Src::InPlace => host::broadcast_in_place(workers, op, axis, b, y.host_mut()?),
    }
}

/// [`Elementwise::affine`](crate::kernel::Elementwise::affine) on the host.
#[track_caller]
pub fn affine<T: Element, D: Memory>(
    device: &D,
    axis: &Axis,
    x: Src<'_, T, D>,
    scale: View<'_, T, D>,
    shift: View<'_, T, D>,
    mut y: ViewMut<'_, T, D>,
) -> Result<()> {
    let _kernel = enter(device, "affine", T::DTYPE.name())?;
    let (workers, scale, shift) = (device.workers(), scale.host()?, shift.host()?);
    match x {
        Src::From(x) => {
            y.host_overwrite(|y| host::affine(workers, axis, x.host()?, scale, shift, y))
        }
        Src::InPlace => host::affine_in_place(workers, axis, scale, shift, y.host_mut()?),
    }
}

/// [`Elementwise::convert`](crate::kernel::Elementwise::convert) on the host.
#[track_caller]
pub fn convert<T: Element, U: Element, D: Memory>(
    device: &D,
    x: View<'_, T, D>,
    mut y: ViewMut<'_, U, D>,
) -> Result<()> {
    let _kernel = enter(device, "convert", T::DTYPE.name())?;
    y.host_overwrite(|y| host::convert(device.workers(), x.host()?, y))
}
