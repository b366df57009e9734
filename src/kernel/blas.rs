//! Basic linear algebra.

use crate::{
    element::Element,
    error::Result,
    kernel::fallback,
    memory::{Memory, View, ViewMut},
    op::{Gemm, GemmBatch, Gemv},
};

/// Basic linear algebra: BLAS names, row-major matrices, scalars and sums in `T::Acc`.
pub trait Blas: Memory {
    /// `y ← x`
    #[doc(alias = "caffe_copy")]
    #[track_caller]
    fn copy<T: Element>(&self, x: View<'_, T, Self>, y: ViewMut<'_, T, Self>) -> Result<()> {
        fallback::copy(self, x, y)
    }

    /// `x ← α·x`
    #[doc(alias = "caffe_scal")]
    #[track_caller]
    fn scal<T: Element>(&self, alpha: T::Acc, x: ViewMut<'_, T, Self>) -> Result<()> {
        fallback::scal(self, alpha, x)
    }

    /// `y ← α·x + y`
    #[doc(alias = "caffe_axpy")]
    #[track_caller]
    fn axpy<T: Element>(
        &self,
        alpha: T::Acc,
        x: View<'_, T, Self>,
        y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        fallback::axpy(self, alpha, x, y)
    }

    /// `y ← α·x + β·y`; β = 0 does not read `y`.
    #[doc(alias = "caffe_cpu_axpby")]
    #[track_caller]
    fn axpby<T: Element>(
        &self,
        alpha: T::Acc,
        x: View<'_, T, Self>,
        beta: T::Acc,
        y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        fallback::axpby(self, alpha, x, beta, y)
    }

    /// `Σ xᵢ·yᵢ`
    #[doc(alias = "caffe_cpu_dot")]
    #[track_caller]
    fn dot<T: Element>(&self, x: View<'_, T, Self>, y: View<'_, T, Self>) -> Result<T::Acc> {
        fallback::dot(self, x, y)
    }

    /// `Σ x[i·incx]·y[i·incy]` over `i < n`.
    #[doc(alias = "caffe_cpu_strided_dot")]
    #[track_caller]
    fn dot_strided<T: Element>(
        &self,
        n: usize,
        x: View<'_, T, Self>,
        incx: usize,
        y: View<'_, T, Self>,
        incy: usize,
    ) -> Result<T::Acc> {
        fallback::dot_strided(self, n, x, incx, y, incy)
    }

    /// `Σ |xᵢ|`
    #[doc(alias = "caffe_cpu_asum")]
    #[track_caller]
    fn asum<T: Element>(&self, x: View<'_, T, Self>) -> Result<T::Acc> {
        fallback::asum(self, x)
    }

    /// `Σ xᵢ²`
    #[track_caller]
    fn sumsq<T: Element>(&self, x: View<'_, T, Self>) -> Result<T::Acc> {
        fallback::sumsq(self, x)
    }

    /// `max |xᵢ|`; 0 of nothing.
    #[track_caller]
    fn amax<T: Element>(&self, x: View<'_, T, Self>) -> Result<T::Acc> {
        fallback::amax(self, x)
    }

    /// `y ← α·op(A)·x + β·y`; β = 0 does not read `y`.
    #[doc(alias = "caffe_cpu_gemv")]
    #[track_caller]
    fn gemv<T: Element>(
        &self,
        op: &Gemv<T>,
        a: View<'_, T, Self>,
        x: View<'_, T, Self>,
        y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        fallback::gemv(self, op, a, x, y)
    }

    /// `C ← α·op(A)·op(B) + β·C`; β = 0 does not read `C`.
    #[doc(alias = "caffe_cpu_gemm")]
    #[track_caller]
    fn gemm<T: Element>(
        &self,
        op: &Gemm<T>,
        a: View<'_, T, Self>,
        b: View<'_, T, Self>,
        c: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        fallback::gemm(self, op, a, b, c)
    }

    /// `Cᵢ ← α·op(Aᵢ)·op(Bᵢ) + β·Cᵢ` for each product of the batch.
    #[track_caller]
    fn gemm_batched<T: Element>(
        &self,
        op: &Gemm<T>,
        batch: &GemmBatch,
        a: View<'_, T, Self>,
        b: View<'_, T, Self>,
        c: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        fallback::gemm_batched(self, op, batch, a, b, c)
    }
}
