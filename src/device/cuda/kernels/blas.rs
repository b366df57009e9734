//! Launches of BLAS kernels.

use super::{output_slice, reduce_launch::ReductionLaunch};
use crate::{
    device::CudaDevice,
    element::Element,
    error::{Result, check_len, check_min_len},
    kernel::{Blas, blas::gemm_then_bias, fallback},
    memory::{View, ViewMut, ledger},
    op::{Gemm, GemmBatch, Gemv, Unary},
};
use num_traits::Zero;

impl Blas for CudaDevice {
    fn copy<T: Element>(&self, x: View<'_, T, Self>, mut y: ViewMut<'_, T, Self>) -> Result<()> {
        check_len("copy", "y", x.len(), y.len())?;
        let n = y.len();
        self.kernel::<T>("copy")?.size(n).read(x.device()?).write(y.device_write_only()?).grid_1d(n)
    }

    fn scal<T: Element>(&self, alpha: T::Acc, mut x: ViewMut<'_, T, Self>) -> Result<()> {
        let n = x.len();
        self.kernel::<T>("scal")?.size(n).arg(alpha).write(x.device_mut()?).grid_1d(n)
    }

    fn axpy<T: Element>(
        &self,
        alpha: T::Acc,
        x: View<'_, T, Self>,
        mut y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        check_len("axpy", "y", x.len(), y.len())?;
        let n = y.len();
        let launch = self.kernel::<T>("axpy")?.size(n).arg(alpha);
        launch.read(x.device()?).write(y.device_mut()?).grid_1d(n)
    }

    fn axpby<T: Element>(
        &self,
        alpha: T::Acc,
        x: View<'_, T, Self>,
        beta: T::Acc,
        mut y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        check_len("axpby", "y", x.len(), y.len())?;
        let n = y.len();
        let launch = self.kernel::<T>("axpby")?.size(n).arg(alpha).read(x.device()?).arg(beta);
        let y = output_slice(&mut y, beta.is_zero())?;
        launch.write(y).grid_1d(n)
    }

    fn dot<T: Element>(&self, x: View<'_, T, Self>, y: View<'_, T, Self>) -> Result<T::Acc> {
        check_len("dot", "y", x.len(), y.len())?;
        self.reduce_to_number(ReductionLaunch::new("dot", "dot"), x.len(), (x, 1), Some((y, 1)))
    }

    fn dot_strided<T: Element>(
        &self,
        n: usize,
        x: View<'_, T, Self>,
        incx: usize,
        y: View<'_, T, Self>,
        incy: usize,
    ) -> Result<T::Acc> {
        if let Some(last) = n.checked_sub(1) {
            let span = |inc: usize| last.saturating_mul(inc).saturating_add(1);
            check_min_len("dot_strided", "x", span(incx), x.len())?;
            check_min_len("dot_strided", "y", span(incy), y.len())?;
        }
        self.reduce_to_number(
            ReductionLaunch::new("dot_strided", "dot"),
            n,
            (x, incx),
            Some((y, incy)),
        )
    }

    fn asum<T: Element>(&self, x: View<'_, T, Self>) -> Result<T::Acc> {
        self.reduce_to_number(ReductionLaunch::new("asum", "abs_sum"), x.len(), (x, 1), None)
    }

    fn sumsq<T: Element>(&self, x: View<'_, T, Self>) -> Result<T::Acc> {
        // Without a second operand, the kernel `dot` multiplies the first operand by itself.
        self.reduce_to_number(ReductionLaunch::new("sumsq", "dot"), x.len(), (x, 1), None)
    }

    fn amax<T: Element>(&self, x: View<'_, T, Self>) -> Result<T::Acc> {
        self.reduce_to_number(ReductionLaunch::new("amax", "amax"), x.len(), (x, 1), None)
    }

    fn gemv<T: Element>(
        &self,
        op: &Gemv<T>,
        a: View<'_, T, Self>,
        x: View<'_, T, Self>,
        y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        op.check(a.len(), x.len(), y.len())?;
        self.launch_gemv("gemv", op, a, x, y)
    }

    fn gemm<T: Element>(
        &self,
        op: &Gemm<T>,
        a: View<'_, T, Self>,
        b: View<'_, T, Self>,
        c: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let batch = GemmBatch::SINGLE;
        if !self.supports_gemm(op, &batch) {
            return fallback::gemm(self, op, a, b, c);
        }
        op.check(a.len(), b.len(), c.len())?;
        if let Some(gemv) = op.as_gemv() {
            return self.launch_gemv("gemm", &gemv, a, b.slice(0..op.k)?, c.slice(0..op.m)?);
        }
        if let Some(gemv) = op.as_transposed_gemv() {
            return self.launch_gemv("gemm", &gemv, b, a.slice(0..op.k)?, c.slice(0..op.n)?);
        }
        // The operand `C` is uploaded, unless the GEMM overwrites all elements of `C`.
        let _scope = ledger::enter_kernel("gemm", T::DTYPE.name());
        let overwrites_all = op.overwrites() && op.m.checked_mul(op.n) == Some(c.len());
        self.launch_gemm("gemm", op, &batch, a.device()?, b.device()?, (c, overwrites_all))
    }

    fn gemm_batched<T: Element>(
        &self,
        op: &Gemm<T>,
        batch: &GemmBatch,
        a: View<'_, T, Self>,
        b: View<'_, T, Self>,
        c: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        if !self.supports_gemm(op, batch) {
            return fallback::gemm_batched(self, op, batch, a, b, c);
        }
        batch.check(op, a.len(), b.len(), c.len())?;
        let _scope = ledger::enter_kernel("gemm_batched", T::DTYPE.name());
        self.launch_gemm("gemm_batched", op, batch, a.device()?, b.device()?, (c, false))
    }

    fn gemm_with_bias<T: Element>(
        &self,
        op: &Gemm<T>,
        a: View<'_, T, Self>,
        b: View<'_, T, Self>,
        bias: View<'_, T, Self>,
        function: Option<Unary<T::Acc>>,
        mut c: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        op.check_with_bias(a.len(), b.len(), bias.len(), c.len())?;
        let relu = match function {
            None => Some(false),
            Some(Unary::Relu { slope }) if slope.is_zero() => Some(true),
            Some(_) => None,
        };
        let is_gemv = op.as_gemv().is_some() || op.as_transposed_gemv().is_some();
        if let Some(relu) = relu.filter(|_| !is_gemv)
            && self.gemm_with_epilogue(op, (a, b), bias, relu, &mut c)?
        {
            return Ok(());
        }
        gemm_then_bias(self, op, (a, b), bias, function, c)
    }
}
