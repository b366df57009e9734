//! Reductions.

use super::enter;
use crate::{
    element::Element,
    error::Result,
    host,
    memory::{Memory, View, ViewMut},
    op::{Axis, Reduce, TopK},
};
use num_traits::Zero;

/// [`Reductions::reduce`](crate::kernel::Reductions::reduce) on the host.
#[track_caller]
pub fn reduce<T: Element, D: Memory>(
    device: &D,
    op: Reduce,
    axis: &Axis,
    x: View<'_, T, D>,
    mut y: ViewMut<'_, T, D>,
) -> Result<()> {
    let _kernel = enter(device, "reduce", T::DTYPE.name())?;
    y.host_overwrite(|y| host::reduce(device.host_workers(), op, axis, x.host()?, y))
}

/// [`Reductions::sum_to_axis`](crate::kernel::Reductions::sum_to_axis) on the host.
#[track_caller]
pub fn sum_to_axis<T: Element, D: Memory>(
    device: &D,
    axis: &Axis,
    beta: T::Acc,
    x: View<'_, T, D>,
    mut y: ViewMut<'_, T, D>,
) -> Result<()> {
    let _kernel = enter(device, "sum_to_axis", T::DTYPE.name())?;
    let x = x.host()?;
    let sum = |y: &mut [T]| host::sum_to_axis(device.host_workers(), axis, beta, x, y);
    if beta.is_zero() { y.host_overwrite(sum) } else { sum(y.host_mut()?) }
}

/// [`Reductions::dot_to_axis`](crate::kernel::Reductions::dot_to_axis) on the host.
#[track_caller]
pub fn dot_to_axis<T: Element, D: Memory>(
    device: &D,
    axis: &Axis,
    beta: T::Acc,
    a: View<'_, T, D>,
    b: View<'_, T, D>,
    mut y: ViewMut<'_, T, D>,
) -> Result<()> {
    let _kernel = enter(device, "dot_to_axis", T::DTYPE.name())?;
    let (workers, a, b) = (device.host_workers(), a.host()?, b.host()?);
    match beta.is_zero() {
        true => y.host_overwrite(|y| host::dot_to_axis(workers, axis, beta, a, b, y)),
        false => host::dot_to_axis(workers, axis, beta, a, b, y.host_mut()?),
    }
}

/// [`Reductions::arg_max`](crate::kernel::Reductions::arg_max) on the host.
#[track_caller]
pub fn arg_max<T: Element, D: Memory>(
    device: &D,
    axis: &Axis,
    x: View<'_, T, D>,
    mut y: ViewMut<'_, u32, D>,
) -> Result<()> {
    let _kernel = enter(device, "arg_max", T::DTYPE.name())?;
    y.host_overwrite(|y| host::arg_max(device.host_workers(), axis, x.host()?, y))
}

/// [`Reductions::top_k`](crate::kernel::Reductions::top_k) on the host.
#[track_caller]
pub fn top_k<T: Element, D: Memory>(
    device: &D,
    op: &TopK,
    x: View<'_, T, D>,
    mut values: ViewMut<'_, T, D>,
    mut places: ViewMut<'_, T, D>,
) -> Result<()> {
    let _kernel = enter(device, "top_k", T::DTYPE.name())?;
    let x = x.host()?;
    values.host_overwrite(|values| {
        places.host_overwrite(|places| host::top_k(device.host_workers(), op, x, values, places))
    })
}
