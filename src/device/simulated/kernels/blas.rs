//! Basic linear algebra.

use crate::{
    device::SimulatedDevice,
    element::Element,
    error::{Result, check_len, check_min_len},
    host,
    kernel::Blas,
    memory::{View, ViewMut},
    op::{Gemm, GemmBatch, Gemv},
};
use num_traits::Zero;

impl Blas for SimulatedDevice {
    fn copy<T: Element>(&self, x: View<'_, T, Self>, y: ViewMut<'_, T, Self>) -> Result<()> {
        check_len("copy", "y", x.len(), y.len())?;
        let mut launch = self.launch::<T>("copy")?;
        let (x, y) = (launch.reads(x)?, launch.writes(y)?);
        launch.queue(move |workers| host::copy(workers, &x.read(), &mut y.write()))
    }

    fn scal<T: Element>(&self, alpha: T::Acc, x: ViewMut<'_, T, Self>) -> Result<()> {
        let mut launch = self.launch::<T>("scal")?;
        let x = launch.updates(x)?;
        launch.queue(move |workers| host::scal(workers, alpha, &mut x.write()))
    }

    fn axpy<T: Element>(
        &self,
        alpha: T::Acc,
        x: View<'_, T, Self>,
        y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        check_len("axpy", "y", x.len(), y.len())?;
        let mut launch = self.launch::<T>("axpy")?;
        let (x, y) = (launch.reads(x)?, launch.updates(y)?);
        launch.queue(move |workers| host::axpy(workers, alpha, &x.read(), &mut y.write()))
    }

    fn axpby<T: Element>(
        &self,
        alpha: T::Acc,
        x: View<'_, T, Self>,
        beta: T::Acc,
        y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        check_len("axpby", "y", x.len(), y.len())?;
        let mut launch = self.launch::<T>("axpby")?;
        let (x, y) = (launch.reads(x)?, launch.writes_if(beta.is_zero(), y)?);
        launch.queue(move |workers| host::axpby(workers, alpha, &x.read(), beta, &mut y.write()))
    }

    fn dot<T: Element>(&self, x: View<'_, T, Self>, y: View<'_, T, Self>) -> Result<T::Acc> {
        check_len("dot", "y", x.len(), y.len())?;
        let launch = self.launch::<T>("dot")?;
        let (x, y) = (launch.reads(x)?, launch.reads(y)?);
        launch.value(move |workers| host::dot(workers, &x.read(), &y.read()))
    }

    fn dot_strided<T: Element>(
        &self,
        n: usize,
        x: View<'_, T, Self>,
        incx: usize,
        y: View<'_, T, Self>,
        incy: usize,
    ) -> Result<T::Acc> {
        let Some(last) = n.checked_sub(1) else { return Ok(T::Acc::zero()) };
        let span = |step: usize| last.saturating_mul(step).saturating_add(1);
        check_min_len("dot_strided", "x", span(incx), x.len())?;
        check_min_len("dot_strided", "y", span(incy), y.len())?;
        let launch = self.launch::<T>("dot_strided")?;
        let (x, y) = (launch.reads(x)?, launch.reads(y)?);
        launch.value(move |workers| host::dot_strided(workers, n, &x.read(), incx, &y.read(), incy))
    }

    fn asum<T: Element>(&self, x: View<'_, T, Self>) -> Result<T::Acc> {
        let launch = self.launch::<T>("asum")?;
        let x = launch.reads(x)?;
        launch.value(move |workers| host::asum(workers, &x.read()))
    }

    fn sumsq<T: Element>(&self, x: View<'_, T, Self>) -> Result<T::Acc> {
        let launch = self.launch::<T>("sumsq")?;
        let x = launch.reads(x)?;
        launch.value(move |workers| host::sumsq(workers, &x.read()))
    }

    fn amax<T: Element>(&self, x: View<'_, T, Self>) -> Result<T::Acc> {
        let launch = self.launch::<T>("amax")?;
        let x = launch.reads(x)?;
        launch.value(move |workers| host::amax(workers, &x.read()))
    }

    fn gemv<T: Element>(
        &self,
        op: &Gemv<T>,
        a: View<'_, T, Self>,
        x: View<'_, T, Self>,
        y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        op.check(a.len(), x.len(), y.len())?;
        let mut launch = self.launch::<T>("gemv")?;
        let (a, x) = (launch.reads(a)?, launch.reads(x)?);
        let (op, y) = (*op, launch.writes_if(op.beta.is_zero(), y)?);
        launch.queue(move |workers| host::gemv(workers, &op, &a.read(), &x.read(), &mut y.write()))
    }

    fn gemm<T: Element>(
        &self,
        op: &Gemm<T>,
        a: View<'_, T, Self>,
        b: View<'_, T, Self>,
        c: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        op.check(a.len(), b.len(), c.len())?;
        let fills = op.overwrites() && op.m.checked_mul(op.n) == Some(c.len());
        let mut launch = self.launch::<T>("gemm")?;
        let (a, b) = (launch.reads(a)?, launch.reads(b)?);
        let (op, c) = (*op, launch.writes_if(fills, c)?);
        launch.queue(move |workers| host::gemm(workers, &op, &a.read(), &b.read(), &mut c.write()))
    }

    fn gemm_batched<T: Element>(
        &self,
        op: &Gemm<T>,
        batch: &GemmBatch,
        a: View<'_, T, Self>,
        b: View<'_, T, Self>,
        c: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        batch.check(op, a.len(), b.len(), c.len())?;
        let mut launch = self.launch::<T>("gemm_batched")?;
        let (a, b) = (launch.reads(a)?, launch.reads(b)?);
        let (op, batch, c) = (*op, *batch, launch.updates(c)?);
        launch.queue(move |workers| {
            host::gemm_batched(workers, &op, &batch, &a.read(), &b.read(), &mut c.write())
        })
    }
}
