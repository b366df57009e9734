//! BLAS kernels: vector operations, GEMV and GEMM.

use super::{
    float, gemm,
    reduce_launch::{Layout, Reducer, ReductionShape, reduce, sum_reducer},
    scratch::Scratch,
};
use crate::{
    device::WgpuDevice,
    kernel::{EACH, Kernel},
};
use cortado::{
    Element, Result, View, ViewMut,
    error::{check_len, check_min_len},
    kernel::{Blas, fallback},
    ledger,
    op::{Gemm, GemmBatch, Gemv, Transpose},
};
use num_traits::Zero;

const COPY: Kernel = Kernel {
    name: "copy",
    // The shader copies `u32` words, because a copy of `f32` values may change the bits of a NaN.
    reads: &["x: u32"],
    writes: &["y: u32"],
    scalars: &[],
    body: &["fn each(i: u32) { y[p.y + i] = x[p.x + i]; }", EACH],
};

const SCAL: Kernel = Kernel {
    name: "scal",
    reads: &[],
    writes: &["x"],
    scalars: &["alpha: f32"],
    body: &["fn each(i: u32) { x[p.x + i] = p.alpha * x[p.x + i]; }", EACH],
};

const AXPY: Kernel = Kernel {
    name: "axpy",
    reads: &["x"],
    writes: &["y"],
    scalars: &["alpha: f32"],
    body: &["fn each(i: u32) { y[p.y + i] = p.alpha * x[p.x + i] + y[p.y + i]; }", EACH],
};

const AXPBY: Kernel = Kernel {
    name: "axpby",
    reads: &["x"],
    writes: &["y"],
    scalars: &["alpha: f32", "beta: f32"],
    body: &["fn each(i: u32) { y[p.y + i] = p.alpha * x[p.x + i] + p.beta * y[p.y + i]; }", EACH],
};

const SCALED: Kernel = Kernel {
    name: "scaled",
    reads: &["x"],
    writes: &["y"],
    scalars: &["alpha: f32"],
    body: &["fn each(i: u32) { y[p.y + i] = p.alpha * x[p.x + i]; }", EACH],
};

impl WgpuDevice {
    /// Reduces one strided vector, or two strided vectors as in a dot product, to one number, and
    /// returns this number to the host.
    #[track_caller]
    fn reduce_to_host<T: Element>(
        &self,
        reducer: Reducer<'_>,
        n: usize,
        (x, incx): (View<'_, T, Self>, usize),
        y: Option<(View<'_, T, Self>, usize)>,
    ) -> Result<T::Acc> {
        let shape = ReductionShape {
            outputs: 1,
            items: n,
            q: Layout::strided(0),
            t: Layout::strided(incx),
        };
        let y = match y {
            Some((y, incy)) => Some((y.device()?, incy)),
            None => None,
        };
        let result = Scratch::new(self, 1)?;
        reduce(self, reducer, shape, x.device()?, y, [0.0; 2], (&result, 0))?;
        Ok(T::acc(result.first()?.into()))
    }
}

impl Blas for WgpuDevice {
    fn copy<T: Element>(&self, x: View<'_, T, Self>, mut y: ViewMut<'_, T, Self>) -> Result<()> {
        let words = T::DTYPE.size() / 4;
        if words == 0 {
            return fallback::copy(self, x, y);
        }
        let _scope = ledger::enter_kernel("copy", T::DTYPE.name());
        check_len("copy", "y", x.len(), y.len())?;
        let n = words * x.len();
        COPY.on(self).read(x.device()?).write(y.device_write_only()?).each(n)
    }

    fn scal<T: Element>(&self, alpha: T::Acc, mut x: ViewMut<'_, T, Self>) -> Result<()> {
        let Some(_scope) = self.native::<T>("scal") else {
            return fallback::scal(self, alpha, x);
        };
        let n = x.len();
        SCAL.on(self).write(x.device_mut()?).floats([float(alpha)]).each(n)
    }

    fn axpy<T: Element>(
        &self,
        alpha: T::Acc,
        x: View<'_, T, Self>,
        mut y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let Some(_scope) = self.native::<T>("axpy") else {
            return fallback::axpy(self, alpha, x, y);
        };
        check_len("axpy", "y", x.len(), y.len())?;
        let launch = AXPY.on(self).read(x.device()?).write(y.device_mut()?);
        launch.floats([float(alpha)]).each(x.len())
    }

    fn axpby<T: Element>(
        &self,
        alpha: T::Acc,
        x: View<'_, T, Self>,
        beta: T::Acc,
        mut y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let Some(_scope) = self.native::<T>("axpby") else {
            return fallback::axpby(self, alpha, x, beta, y);
        };
        check_len("axpby", "y", x.len(), y.len())?;
        if beta.is_zero() {
            let launch = SCALED.on(self).read(x.device()?).write(y.device_write_only()?);
            return launch.floats([float(alpha)]).each(x.len());
        }
        let launch = AXPBY.on(self).read(x.device()?).write(y.device_mut()?);
        launch.floats([float(alpha), float(beta)]).each(x.len())
    }

    fn dot<T: Element>(&self, x: View<'_, T, Self>, y: View<'_, T, Self>) -> Result<T::Acc> {
        let Some(_scope) = self.native::<T>("dot") else {
            return fallback::dot(self, x, y);
        };
        check_len("dot", "y", x.len(), y.len())?;
        self.reduce_to_host(sum_reducer("dot", "x * z"), x.len(), (x, 1), Some((y, 1)))
    }

    fn dot_strided<T: Element>(
        &self,
        n: usize,
        x: View<'_, T, Self>,
        incx: usize,
        y: View<'_, T, Self>,
        incy: usize,
    ) -> Result<T::Acc> {
        let Some(_scope) = self.native::<T>("dot_strided") else {
            return fallback::dot_strided(self, n, x, incx, y, incy);
        };
        if let Some(last) = n.checked_sub(1) {
            let required_len = |inc: usize| last.saturating_mul(inc).saturating_add(1);
            check_min_len("dot_strided", "x", required_len(incx), x.len())?;
            check_min_len("dot_strided", "y", required_len(incy), y.len())?;
        }
        self.reduce_to_host(sum_reducer("dot", "x * z"), n, (x, incx), Some((y, incy)))
    }

    fn asum<T: Element>(&self, x: View<'_, T, Self>) -> Result<T::Acc> {
        let Some(_scope) = self.native::<T>("asum") else {
            return fallback::asum(self, x);
        };
        self.reduce_to_host(sum_reducer("abs_sum", "abs(x)"), x.len(), (x, 1), None)
    }

    fn sumsq<T: Element>(&self, x: View<'_, T, Self>) -> Result<T::Acc> {
        let Some(_scope) = self.native::<T>("sumsq") else {
            return fallback::sumsq(self, x);
        };
        self.reduce_to_host(sum_reducer("sum_sq", "x * x"), x.len(), (x, 1), None)
    }

    fn amax<T: Element>(&self, x: View<'_, T, Self>) -> Result<T::Acc> {
        let Some(_scope) = self.native::<T>("amax") else {
            return fallback::amax(self, x);
        };
        // `amax` treats NaN as greater than every number.
        let combine = "select(b, a, a >= b || is_nan(a))";
        let reducer = Reducer { combine, ..sum_reducer("amax", "abs(x)") };
        self.reduce_to_host(reducer, x.len(), (x, 1), None)
    }

    fn gemv<T: Element>(
        &self,
        op: &Gemv<T>,
        a: View<'_, T, Self>,
        x: View<'_, T, Self>,
        mut y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let Some(_scope) = self.native::<T>("gemv") else {
            return fallback::gemv(self, op, a, x, y);
        };
        op.check(a.len(), x.len(), y.len())?;
        let (items, outputs) = op.lengths();
        let (q, t) = match op.trans {
            Transpose::No => (Layout::strided(op.lda), Layout::CONTIGUOUS),
            Transpose::Yes => (Layout::CONTIGUOUS, Layout::strided(op.lda)),
        };
        // Like the BLAS, the kernel reads neither `A` nor `x` if α = 0.
        let items = if op.alpha.is_zero() { 0 } else { items };
        let (a, x) = (a.device()?, Some((x.device()?, 1)));
        let (reducer, y) = match op.beta.is_zero() {
            true => {
                let reducer = Reducer { finish: "p.a * v", ..sum_reducer("gemv", "x * z") };
                (reducer, y.device_write_only()?)
            }
            false => {
                let finish = "p.a * v + p.b * y[at]";
                (Reducer { finish, ..sum_reducer("gemv accumulate", "x * z") }, y.device_mut()?)
            }
        };
        let scalars = [float(op.alpha), float(op.beta)];
        let shape = ReductionShape { outputs, items, q, t };
        reduce(self, reducer, shape, a, x, scalars, (y.buffer, y.offset / 4))
    }

    fn gemm<T: Element>(
        &self,
        op: &Gemm<T>,
        a: View<'_, T, Self>,
        b: View<'_, T, Self>,
        mut c: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let Some(_scope) = self.native::<T>("gemm") else {
            return fallback::gemm(self, op, a, b, c);
        };
        op.check(a.len(), b.len(), c.len())?;
        let batch = GemmBatch { count: 1, stride_a: 0, stride_b: 0, stride_c: 0 };
        // Write-only access requires that the GEMM overwrites every element of the view.
        let fills_view = op.overwrites() && op.m.checked_mul(op.n) == Some(c.len());
        let (a, b) = (a.device()?, b.device()?);
        let c = if fills_view { c.device_write_only()? } else { c.device_mut()? };
        gemm::multiply(self, op, &batch, a, b, c)
    }

    fn gemm_batched<T: Element>(
        &self,
        op: &Gemm<T>,
        batch: &GemmBatch,
        a: View<'_, T, Self>,
        b: View<'_, T, Self>,
        mut c: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let Some(_scope) = self.native::<T>("gemm_batched") else {
            return fallback::gemm_batched(self, op, batch, a, b, c);
        };
        batch.check(op, a.len(), b.len(), c.len())?;
        gemm::multiply(self, op, batch, a.device()?, b.device()?, c.device_mut()?)
    }
}
