//! Basic linear algebra.

use super::enter;
use crate::{
    element::Element,
    error::Result,
    host,
    memory::{Memory, View, ViewMut},
    op::{Gemm, GemmBatch, Gemv},
};
use num_traits::Zero;

/// [`Blas::copy`](crate::kernel::Blas::copy) on the host.
#[track_caller]
pub fn copy<T: Element, D: Memory>(
    device: &D,
    x: View<'_, T, D>,
    mut y: ViewMut<'_, T, D>,
) -> Result<()> {
    let _kernel = enter(device, "copy", T::DTYPE.name())?;
    y.host_overwrite(|y| host::copy(device.host_workers(), x.host()?, y))
}

/// [`Blas::scal`](crate::kernel::Blas::scal) on the host.
#[track_caller]
pub fn scal<T: Element, D: Memory>(
    device: &D,
    alpha: T::Acc,
    mut x: ViewMut<'_, T, D>,
) -> Result<()> {
    let _kernel = enter(device, "scal", T::DTYPE.name())?;
    host::scal(device.host_workers(), alpha, x.host_mut()?)
}

/// [`Blas::axpy`](crate::kernel::Blas::axpy) on the host.
#[track_caller]
pub fn axpy<T: Element, D: Memory>(
    device: &D,
    alpha: T::Acc,
    x: View<'_, T, D>,
    mut y: ViewMut<'_, T, D>,
) -> Result<()> {
    let _kernel = enter(device, "axpy", T::DTYPE.name())?;
    host::axpy(device.host_workers(), alpha, x.host()?, y.host_mut()?)
}

/// [`Blas::axpby`](crate::kernel::Blas::axpby) on the host.
#[track_caller]
pub fn axpby<T: Element, D: Memory>(
    device: &D,
    alpha: T::Acc,
    x: View<'_, T, D>,
    beta: T::Acc,
    mut y: ViewMut<'_, T, D>,
) -> Result<()> {
    let _kernel = enter(device, "axpby", T::DTYPE.name())?;
    let x = x.host()?;
    let axpby = |y: &mut [T]| host::axpby(device.host_workers(), alpha, x, beta, y);
    if beta.is_zero() { y.host_overwrite(axpby) } else { axpby(y.host_mut()?) }
}

/// [`Blas::dot`](crate::kernel::Blas::dot) on the host.
#[track_caller]
pub fn dot<T: Element, D: Memory>(
    device: &D,
    x: View<'_, T, D>,
    y: View<'_, T, D>,
) -> Result<T::Acc> {
    let _kernel = enter(device, "dot", T::DTYPE.name())?;
    host::dot(device.host_workers(), x.host()?, y.host()?)
}

/// [`Blas::dot_strided`](crate::kernel::Blas::dot_strided) on the host.
#[track_caller]
pub fn dot_strided<T: Element, D: Memory>(
    device: &D,
    n: usize,
    x: View<'_, T, D>,
    incx: usize,
    y: View<'_, T, D>,
    incy: usize,
) -> Result<T::Acc> {
    let _kernel = enter(device, "dot_strided", T::DTYPE.name())?;
    host::dot_strided(device.host_workers(), n, x.host()?, incx, y.host()?, incy)
}

/// [`Blas::asum`](crate::kernel::Blas::asum) on the host.
#[track_caller]
pub fn asum<T: Element, D: Memory>(device: &D, x: View<'_, T, D>) -> Result<T::Acc> {
    let _kernel = enter(device, "asum", T::DTYPE.name())?;
    host::asum(device.host_workers(), x.host()?)
}

/// [`Blas::sumsq`](crate::kernel::Blas::sumsq) on the host.
#[track_caller]
pub fn sumsq<T: Element, D: Memory>(device: &D, x: View<'_, T, D>) -> Result<T::Acc> {
    let _kernel = enter(device, "sumsq", T::DTYPE.name())?;
    host::sumsq(device.host_workers(), x.host()?)
}

/// [`Blas::amax`](crate::kernel::Blas::amax) on the host.
#[track_caller]
pub fn amax<T: Element, D: Memory>(device: &D, x: View<'_, T, D>) -> Result<T::Acc> {
    let _kernel = enter(device, "amax", T::DTYPE.name())?;
    host::amax(device.host_workers(), x.host()?)
}

/// [`Blas::gemv`](crate::kernel::Blas::gemv) on the host.
#[track_caller]
pub fn gemv<T: Element, D: Memory>(
    device: &D,
    op: &Gemv<T>,
    a: View<'_, T, D>,
    x: View<'_, T, D>,
    mut y: ViewMut<'_, T, D>,
) -> Result<()> {
    let _kernel = enter(device, "gemv", T::DTYPE.name())?;
    let (a, x) = (a.host()?, x.host()?);
    let gemv = |y: &mut [T]| host::gemv(device.host_workers(), op, a, x, y);
    if op.beta.is_zero() { y.host_overwrite(gemv) } else { gemv(y.host_mut()?) }
}

/// [`Blas::gemm`](crate::kernel::Blas::gemm) on the host.
#[track_caller]
pub fn gemm<T: Element, D: Memory>(
    device: &D,
    op: &Gemm<T>,
    a: View<'_, T, D>,
    b: View<'_, T, D>,
    mut c: ViewMut<'_, T, D>,
) -> Result<()> {
    let _kernel = enter(device, "gemm", T::DTYPE.name())?;
    let (a, b) = (a.host()?, b.host()?);
    // Only a product that fills every element of the view may leave the old ones behind.
    let fills = op.overwrites() && op.m.checked_mul(op.n) == Some(c.len());
    let gemm = |c: &mut [T]| host::gemm(device.host_workers(), op, a, b, c);
    if fills { c.host_overwrite(gemm) } else { gemm(c.host_mut()?) }
}

/// [`Blas::gemm_batched`](crate::kernel::Blas::gemm_batched) on the host.
#[track_caller]
pub fn gemm_batched<T: Element, D: Memory>(
    device: &D,
    op: &Gemm<T>,
    batch: &GemmBatch,
    a: View<'_, T, D>,
    b: View<'_, T, D>,
    mut c: ViewMut<'_, T, D>,
) -> Result<()> {
    let _kernel = enter(device, "gemm_batched", T::DTYPE.name())?;
    host::gemm_batched(device.host_workers(), op, batch, a.host()?, b.host()?, c.host_mut()?)
}
