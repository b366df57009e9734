//! Basic linear algebra.

use crate::{
    element::Element,
    error::Result,
    host,
    memory::{Memory, View, ViewMut},
    op::{Batch, Gemm, Gemv},
};
use num_traits::Zero;

/// Basic linear algebra: BLAS names, row-major matrices, scalars and sums in `T::Acc`.
pub trait Blas: Memory {
    /// `y ← x`
    #[doc(alias = "caffe_copy")]
    fn copy<T: Element>(&self, x: View<'_, T, Self>, mut y: ViewMut<'_, T, Self>) -> Result<()> {
        host::copy(self.workers(), x.host()?, y.host_write_only()?)
    }

    /// `x ← α·x`
    #[doc(alias = "caffe_scal")]
    fn scal<T: Element>(&self, alpha: T::Acc, mut x: ViewMut<'_, T, Self>) -> Result<()> {
        host::scal(self.workers(), alpha, x.host_mut()?)
    }

    /// `y ← α·x + y`
    #[doc(alias = "caffe_axpy")]
    fn axpy<T: Element>(
        &self,
        alpha: T::Acc,
        x: View<'_, T, Self>,
        mut y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        host::axpy(self.workers(), alpha, x.host()?, y.host_mut()?)
    }

    /// `y ← α·x + β·y`; β = 0 does not read `y`.
    #[doc(alias = "caffe_cpu_axpby")]
    fn axpby<T: Element>(
        &self,
        alpha: T::Acc,
        x: View<'_, T, Self>,
        beta: T::Acc,
        mut y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let x = x.host()?;
        let y = if beta.is_zero() { y.host_write_only()? } else { y.host_mut()? };
        host::axpby(self.workers(), alpha, x, beta, y)
    }

    /// `Σ xᵢ·yᵢ`
    #[doc(alias = "caffe_cpu_dot")]
    fn dot<T: Element>(&self, x: View<'_, T, Self>, y: View<'_, T, Self>) -> Result<T::Acc> {
        host::dot(self.workers(), x.host()?, y.host()?)
    }

    /// `Σ x[i·incx]·y[i·incy]` over `i < n`.
    #[doc(alias = "caffe_cpu_strided_dot")]
    fn dot_strided<T: Element>(
        &self,
        n: usize,
        x: View<'_, T, Self>,
        incx: usize,
        y: View<'_, T, Self>,
        incy: usize,
    ) -> Result<T::Acc> {
        host::dot_strided(self.workers(), n, x.host()?, incx, y.host()?, incy)
    }

    /// `Σ |xᵢ|`
    #[doc(alias = "caffe_cpu_asum")]
    fn asum<T: Element>(&self, x: View<'_, T, Self>) -> Result<T::Acc> {
        host::asum(self.workers(), x.host()?)
    }

    /// `Σ xᵢ²`
    fn sumsq<T: Element>(&self, x: View<'_, T, Self>) -> Result<T::Acc> {
        host::sumsq(self.workers(), x.host()?)
    }

    /// `max |xᵢ|`; 0 of nothing.
    fn amax<T: Element>(&self, x: View<'_, T, Self>) -> Result<T::Acc> {
        host::amax(self.workers(), x.host()?)
    }

    /// `y ← α·op(A)·x + β·y`; β = 0 does not read `y`.
    #[doc(alias = "caffe_cpu_gemv")]
    fn gemv<T: Element>(
        &self,
        op: &Gemv<T>,
        a: View<'_, T, Self>,
        x: View<'_, T, Self>,
        mut y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let (a, x) = (a.host()?, x.host()?);
        let y = if op.beta.is_zero() { y.host_write_only()? } else { y.host_mut()? };
        host::gemv(self.workers(), op, a, x, y)
    }

    /// `C ← α·op(A)·op(B) + β·C`; β = 0 does not read `C`.
    #[doc(alias = "caffe_cpu_gemm")]
    fn gemm<T: Element>(
        &self,
        op: &Gemm<T>,
        a: View<'_, T, Self>,
        b: View<'_, T, Self>,
        mut c: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let (a, b) = (a.host()?, b.host()?);
        // Only a product that fills every element of the view may leave the old ones behind.
        let fills = op.overwrites() && op.m.checked_mul(op.n) == Some(c.len());
        let c = if fills { c.host_write_only()? } else { c.host_mut()? };
        host::gemm(self.workers(), op, a, b, c)
    }

    /// `Cᵢ ← α·op(Aᵢ)·op(Bᵢ) + β·Cᵢ` for each product of the batch.
    fn gemm_batched<T: Element>(
        &self,
        op: &Gemm<T>,
        batch: &Batch,
        a: View<'_, T, Self>,
        b: View<'_, T, Self>,
        mut c: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        host::gemm_batched(self.workers(), op, batch, a.host()?, b.host()?, c.host_mut()?)
    }
}
