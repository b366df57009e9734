//! Elementwise maps.

use super::enter;
use crate::{
    element::{Element, Storable},
    error::Result,
    host,
    memory::{Memory, Src, View, ViewMut},
    op::{Axis, Binary, Lstm, Unary},
};

/// [`Elementwise::fill`](crate::kernel::Elementwise::fill) on the host.
#[track_caller]
pub fn fill<T: Element, D: Memory>(device: &D, value: T, mut y: ViewMut<'_, T, D>) -> Result<()> {
    let _kernel = enter(device, "fill", T::DTYPE.name())?;
    y.host_overwrite(|y| host::fill(device.host_workers(), value, y))
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
        Src::View(x) => y.host_overwrite(|y| host::unary(device.host_workers(), op, x.host()?, y)),
        Src::InPlace => host::unary_in_place(device.host_workers(), op, y.host_mut()?),
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
    let (workers, b) = (device.host_workers(), b.host()?);
    match a {
        Src::View(a) => y.host_overwrite(|y| host::binary(workers, op, a.host()?, b, y)),
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
    let (workers, b) = (device.host_workers(), b.host()?);
    match a {
        Src::View(a) => y.host_overwrite(|y| host::broadcast(workers, op, axis, a.host()?, b, y)),
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
    let (workers, scale, shift) = (device.host_workers(), scale.host()?, shift.host()?);
    match x {
        Src::View(x) => {
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
    y.host_overwrite(|y| host::convert(device.host_workers(), x.host()?, y))
}

/// [`Elementwise::convert_integers`](crate::kernel::Elementwise::convert_integers) on the host.
#[track_caller]
pub fn convert_integers<N: Storable + Into<f64>, T: Element, D: Memory>(
    device: &D,
    x: View<'_, N, D>,
    mut y: ViewMut<'_, T, D>,
) -> Result<()> {
    let _kernel = enter(device, "convert_integers", T::DTYPE.name())?;
    y.host_overwrite(|y| host::convert_integers(device.host_workers(), x.host()?, y))
}

/// [`Elementwise::lstm`](crate::kernel::Elementwise::lstm) on the host.
#[track_caller]
pub fn lstm<T: Element, D: Memory>(
    device: &D,
    op: &Lstm,
    c_prev: View<'_, T, D>,
    cont: View<'_, T, D>,
    mut gates: ViewMut<'_, T, D>,
    mut c: ViewMut<'_, T, D>,
    mut h: ViewMut<'_, T, D>,
) -> Result<()> {
    let _kernel = enter(device, "lstm", T::DTYPE.name())?;
    let (workers, c_prev, cont) = (device.host_workers(), c_prev.host()?, cont.host()?);
    let gates = gates.host_mut()?;
    c.host_overwrite(|c| h.host_overwrite(|h| host::lstm(workers, op, c_prev, cont, gates, c, h)))
}

/// [`Elementwise::lstm_backward`](crate::kernel::Elementwise::lstm_backward) on the host.
#[track_caller]
pub fn lstm_backward<T: Element, D: Memory>(
    device: &D,
    op: &Lstm,
    c_prev: View<'_, T, D>,
    c: View<'_, T, D>,
    dh: View<'_, T, D>,
    mut dc: ViewMut<'_, T, D>,
    mut gates: ViewMut<'_, T, D>,
) -> Result<()> {
    let _kernel = enter(device, "lstm_backward", T::DTYPE.name())?;
    let (c_prev, c, dh) = (c_prev.host()?, c.host()?, dh.host()?);
    let (dc, gates) = (dc.host_mut()?, gates.host_mut()?);
    host::lstm_backward(device.host_workers(), op, c_prev, c, dh, dc, gates)
}
