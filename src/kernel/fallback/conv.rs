//! Sliding windows.

use super::enter;
use crate::{
    element::Element,
    error::Result,
    host,
    memory::{Memory, View, ViewMut},
    op::{Convolution, Unary, Window},
};

/// [`Windows::im2col`](crate::kernel::Windows::im2col) on the host.
#[track_caller]
pub fn im2col<T: Element, D: Memory>(
    device: &D,
    op: &Window,
    x: View<'_, T, D>,
    mut columns: ViewMut<'_, T, D>,
) -> Result<()> {
    let _kernel = enter(device, "im2col", T::DTYPE.name())?;
    columns.host_overwrite(|columns| host::im2col(device.host_workers(), op, x.host()?, columns))
}

/// [`Windows::col2im`](crate::kernel::Windows::col2im) on the host.
#[track_caller]
pub fn col2im<T: Element, D: Memory>(
    device: &D,
    op: &Window,
    columns: View<'_, T, D>,
    mut x: ViewMut<'_, T, D>,
) -> Result<()> {
    let _kernel = enter(device, "col2im", T::DTYPE.name())?;
    x.host_overwrite(|x| host::col2im(device.host_workers(), op, columns.host()?, x))
}

/// [`Windows::convolve`](crate::kernel::Windows::convolve) on the host.
#[track_caller]
pub fn convolve<T: Element, D: Memory>(
    device: &D,
    op: &Convolution,
    x: View<'_, T, D>,
    filters: View<'_, T, D>,
    bias: Option<View<'_, T, D>>,
    mut y: ViewMut<'_, T, D>,
) -> Result<()> {
    let _kernel = enter(device, "convolve", T::DTYPE.name())?;
    let bias = bias.map(View::host).transpose()?;
    y.host_overwrite(|y| {
        host::convolve(device.host_workers(), op, x.host()?, filters.host()?, bias, y)
    })
}

/// [`Windows::convolve_with_activation`](crate::kernel::Windows::convolve_with_activation) on the host, for
/// devices whose convolutions and functions both run there: it is accounted as `convolve`.
#[track_caller]
pub fn convolve_with_activation<T: Element, D: Memory>(
    device: &D,
    op: &Convolution,
    x: View<'_, T, D>,
    filters: View<'_, T, D>,
    bias: Option<View<'_, T, D>>,
    function: Unary<T::Acc>,
    mut y: ViewMut<'_, T, D>,
) -> Result<()> {
    let _kernel = enter(device, "convolve", T::DTYPE.name())?;
    let (x, filters, bias) = (x.host()?, filters.host()?, bias.map(View::host).transpose()?);
    y.host_overwrite(|y| {
        host::convolve_with_activation(device.host_workers(), op, x, filters, bias, function, y)
    })
}

/// [`Windows::convolve_backward_input`](crate::kernel::Windows::convolve_backward_input) on the host.
#[track_caller]
pub fn convolve_backward_input<T: Element, D: Memory>(
    device: &D,
    op: &Convolution,
    filters: View<'_, T, D>,
    dy: View<'_, T, D>,
    mut dx: ViewMut<'_, T, D>,
) -> Result<()> {
    let _kernel = enter(device, "convolve_backward_input", T::DTYPE.name())?;
    let (filters, dy) = (filters.host()?, dy.host()?);
    dx.host_overwrite(|dx| {
        host::convolve_backward_input(device.host_workers(), op, filters, dy, dx)
    })
}

/// [`Windows::convolve_backward_filters`](crate::kernel::Windows::convolve_backward_filters) on the host.
#[track_caller]
pub fn convolve_backward_filters<T: Element, D: Memory>(
    device: &D,
    op: &Convolution,
    x: View<'_, T, D>,
    dy: View<'_, T, D>,
    mut dfilters: ViewMut<'_, T, D>,
) -> Result<()> {
    let _kernel = enter(device, "convolve_backward_filters", T::DTYPE.name())?;
    let (x, dy) = (x.host()?, dy.host()?);
    host::convolve_backward_filters(device.host_workers(), op, x, dy, dfilters.host_mut()?)
}
