//! Mutants with bugs in vector and matrix kernels. The mutants run `scal` and `axpy` as native
//! kernels of the simulated device.

use crate::{
    bug::Bug,
    device::{Mutant, inner_view, inner_view_mut, output_span, wait_forever},
    sizes::{BITS_20, stop, wrap},
};
use cortado::{
    DType, Element, Result, Src, View, ViewMut,
    kernel::{Blas, Elementwise, fallback},
    ledger,
    op::{Axis, Binary, Gemm, GemmBatch, Gemv, Transpose, Unary},
};
use num_traits::{Float, Zero};
use std::sync::atomic::Ordering::Relaxed;

/// Adds `0 · old` to the result `y`, like a kernel that reads its output at β = 0 instead of
/// overwriting it.
fn read_at_zero<T: Element>(old: &[T], y: &mut [T]) {
    for (y, old) in y.iter_mut().zip(old) {
        *y = T::from_acc(y.to_acc() + T::Acc::zero() * old.to_acc());
    }
}

impl Blas for Mutant {
    fn copy<T: Element>(&self, x: View<'_, T, Self>, mut y: ViewMut<'_, T, Self>) -> Result<()> {
        let old = y.as_view().host()?.to_vec();
        fallback::copy(self, x, y.reborrow())?;
        if self.is(Bug::CopyQuietsNan) {
            let is_nan = |y: &&mut T| y.to_acc().is_nan();
            y.host_mut()?.iter_mut().filter(is_nan).for_each(|y| *y = T::from_f64(f64::NAN));
        }
        if self.is(Bug::CopyStops) {
            stop(y.host_mut()?, &old, BITS_20);
        }
        if self.is(Bug::CopyNarrows) {
            let y = y.host_mut()?;
            y.iter_mut().for_each(|y| *y = T::from_f64(f64::from(y.to_f64() as f32)));
        }
        Ok(())
    }

    fn scal<T: Element>(&self, alpha: T::Acc, mut x: ViewMut<'_, T, Self>) -> Result<()> {
        let scope = self.enter::<T>("scal");
        self.count_job();
        if self.is(Bug::QueuedFailure) && x.len() > 4000 {
            self.fail_queued();
        }
        if self.is(Bug::ScalZeroes) && alpha.is_zero() {
            return fallback::fill(self, T::default(), x);
        }
        let len = match self.bug {
            Bug::ScalDropsTail => x.len() / 4 * 4,
            Bug::ScalStops => x.len().min(BITS_20),
            _ => x.len(),
        };
        let mut x = x.slice_mut(0..len)?;
        if self.is(Bug::HostNotInvalidated) {
            let slice = x.as_view().device()?;
            let mut memory = slice.buffer.write()?;
            let x = inner_view_mut::<T>(&mut memory, slice.offset, slice.bytes)?;
            return self.inner.scal(alpha, x);
        }
        let slice = x.device_mut()?;
        let _scope = scope.or_else(|| {
            self.is(Bug::ScopeLate).then(|| ledger::enter_kernel("scal", T::DTYPE.name()))
        });
        let (offset, bytes) = output_span::<T>(self.bug, &slice)?;
        slice.buffer.is_scaled.store(true, Relaxed);
        let mut memory = slice.buffer.write()?;
        let mut x = inner_view_mut::<T>(&mut memory, offset, bytes)?;
        let result = self.inner.scal(alpha, x.reborrow());
        self.launched(result, || self.inner.scal(alpha, x))
    }

    fn axpy<T: Element>(
        &self,
        alpha: T::Acc,
        mut x: View<'_, T, Self>,
        mut y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        if self.is(Bug::AcceptsAnyLength) {
            let len = x.len().min(y.len());
            (x, y) = (x.slice(0..len)?, y.slice(0..len)?);
        }
        if x.len() != y.len() {
            if self.is(Bug::AddsBeforeCheck) {
                let len = x.len().min(y.len());
                fallback::axpy(self, alpha, x.slice(0..len)?, y.reborrow().slice(0..len)?)?;
            }
            return self.persist_error(fallback::axpy(self, alpha, x, y));
        }
        let _scope = self.enter::<T>("axpy");
        self.count_job();
        if self.is(Bug::AxpyReturnsAtZero) && alpha.is_zero() {
            return Ok(());
        }
        let mut wrapped_x = Vec::new();
        if self.is(Bug::AxpyWraps) {
            wrapped_x.extend_from_slice(x.host()?);
            wrap(&mut wrapped_x, BITS_20);
        }
        let wrapped_x = self.scratch(&wrapped_x)?;
        let x = if self.is(Bug::AxpyWraps) { View::new(&wrapped_x, x.len())? } else { x };
        let (x, y) = (x.device()?, y.device_mut()?);
        let (offset, bytes) = output_span::<T>(self.bug, &y)?;
        let (x_memory, mut y_memory) = (x.buffer.read()?, y.buffer.write()?);
        let x = inner_view::<T>(&x_memory, &x)?;
        let y = inner_view_mut::<T>(&mut y_memory, offset, bytes)?;
        let len = x.len().min(y.len());
        self.persist_error(self.inner.axpy(alpha, x, y.slice(0..len)?))
    }

    fn axpby<T: Element>(
        &self,
        alpha: T::Acc,
        x: View<'_, T, Self>,
        beta: T::Acc,
        mut y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let old = y.as_view().host()?.to_vec();
        if self.is(Bug::AxpbyIgnoresX) && alpha.is_zero() && x.len() == y.len() {
            return match beta.is_zero() {
                true => fallback::fill(self, T::default(), y),
                false => fallback::scal(self, beta, y),
            };
        }
        fallback::axpby(self, alpha, x, beta, y.reborrow())?;
        if self.is(Bug::AxpbyReadsAtZero) && beta.is_zero() {
            read_at_zero(&old, y.host_mut()?);
        }
        Ok(())
    }

    fn dot<T: Element>(&self, x: View<'_, T, Self>, y: View<'_, T, Self>) -> Result<T::Acc> {
        match self.bug {
            Bug::DotLocksTwice if is_same(&x, &y)? => wait_forever(),
            Bug::DotLosesFailure => {
                fallback::dot(self, x, y).or_else(|_| fallback::dot(self, x, y))
            }
            Bug::DotDropsTail if x.len() == y.len() && x.len() > 1024 => {
                let len = x.len() / 1024 * 1024;
                fallback::dot(self, x.slice(0..len)?, y.slice(0..len)?)
            }
            Bug::DotStops if x.len() == y.len() && x.len() > BITS_20 => {
                fallback::dot(self, x.slice(0..BITS_20)?, y.slice(0..BITS_20)?)
            }
            Bug::DotNarrow if T::DTYPE == DType::F16 && x.len() == y.len() => {
                let terms = x.host()?.iter().zip(y.host()?);
                let add_in_f16 =
                    |sum: T, (x, y): (&T, &T)| T::from_acc(sum.to_acc() + x.to_acc() * y.to_acc());
                Ok(terms.fold(T::default(), add_in_f16).to_acc())
            }
            Bug::DotOfItself if is_same(&x, &y)? => {
                Ok(x.host()?.iter().fold(T::Acc::zero(), |sum, x| sum + x.to_acc()))
            }
            _ => {
                let sum = fallback::dot(self, x, y)?;
                let rounds_up = self.is_second_call(Bug::DotNotReproducible);
                Ok(if rounds_up { sum * (T::acc(1.0) + T::Acc::epsilon()) } else { sum })
            }
        }
    }

    fn dot_strided<T: Element>(
        &self,
        n: usize,
        x: View<'_, T, Self>,
        incx: usize,
        y: View<'_, T, Self>,
        incy: usize,
    ) -> Result<T::Acc> {
        if self.is(Bug::DotStridedOfItself) && is_same(&x, &y)? {
            return fallback::dot_strided(self, n, x, incx, y, incx);
        }
        let n = if self.is(Bug::DotStridedStops) { n.min(BITS_20) } else { n };
        if self.is(Bug::DotIgnoresIncy) && n <= y.len() {
            return fallback::dot_strided(self, n, x, incx, y.slice(0..n)?, 1);
        }
        fallback::dot_strided(self, n, x, incx, y, incy)
    }

    fn asum<T: Element>(&self, x: View<'_, T, Self>) -> Result<T::Acc> {
        if self.is(Bug::AsumWithoutAbs) {
            return Ok(x.host()?.iter().fold(T::Acc::zero(), |sum, x| sum + x.to_acc()));
        }
        if self.is(Bug::AsumLosesNan) {
            let numbers = x.host()?.iter().filter(|x| !x.to_acc().is_nan());
            return Ok(numbers.fold(T::Acc::zero(), |sum, x| sum + x.to_acc().abs()));
        }
        let sum = fallback::asum(self, x);
        if self.is(Bug::AsumLosesFailure) {
            return sum.or_else(|_| fallback::asum(self, x));
        }
        sum
    }

    fn sumsq<T: Element>(&self, x: View<'_, T, Self>) -> Result<T::Acc> {
        let sum = fallback::sumsq(self, x)?;
        Ok(if self.is(Bug::SumsqClamps) { sum.min(T::acc(65504.0)) } else { sum })
    }

    fn amax<T: Element>(&self, x: View<'_, T, Self>) -> Result<T::Acc> {
        if self.is(Bug::AmaxLosesNan) {
            return Ok(x.host()?.iter().fold(T::Acc::zero(), |max, x| max.max(x.to_acc().abs())));
        }
        let skips_elements = self.is(Bug::AmaxStops);
        fallback::amax(self, if skips_elements { x.slice(0..x.len().min(BITS_20))? } else { x })
    }

    fn gemv<T: Element>(
        &self,
        op: &Gemv<T>,
        a: View<'_, T, Self>,
        x: View<'_, T, Self>,
        y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let op = if self.is(Bug::GemvDropsAlpha) { op.alpha(T::acc(1.0)) } else { *op };
        if self.is(Bug::GemvOfPart) && op.trans == Transpose::Yes && is_part(&a, &x)? {
            return fallback::gemv(self, &Gemv { trans: Transpose::No, ..op }, a, x, y);
        }
        op.check(a.len(), x.len(), y.len())?;
        let mut y = y;
        fallback::gemv(self, &op, a, x, y.reborrow())?;
        match self.bug {
            Bug::GemvReadsAtZero if op.alpha.is_zero() && op.n > 0 => {
                y.host_mut()?.iter_mut().for_each(|y| {
                    *y = T::from_acc(
                        y.to_acc() + op.alpha * x.host().map_or(op.alpha, |x| x[0].to_acc()),
                    );
                });
            }
            Bug::GemvStops if op.trans == Transpose::No && op.n > 256 => {
                let short_op = Gemv { n: 256, ..op };
                fallback::gemv(self, &short_op, a, x.slice(0..256)?, y)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn gemm<T: Element>(
        &self,
        op: &Gemm<T>,
        a: View<'_, T, Self>,
        b: View<'_, T, Self>,
        mut c: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let old = c.as_view().host()?.to_vec();
        let mut op = wrong_gemm(self.bug, *op);
        if self.is(Bug::GemmOfItself) && is_same(&a, &b)? {
            op.trans_b = inverted(op.trans_b);
        }
        fallback::gemm(self, &op, a, b, c.reborrow())?;
        if self.is(Bug::GemmZeroesGaps) && op.alpha.is_zero() && op.beta.is_zero() {
            c.host_mut()?.fill(T::default());
        }
        if self.is(Bug::GemmZeroesTail) && op.overwrites() && op.m * op.n > 0 {
            c.host_mut()?[op.m * op.n..].fill(T::default());
        }
        if self.is(Bug::GemmStopsAtColumn) && op.n > 1024 {
            let rows = c.host_mut()?.chunks_mut(op.ldc).zip(old.chunks(op.ldc));
            rows.for_each(|(c, old)| c[1024..].copy_from_slice(&old[1024..]));
        }
        let starts_row = !c.is_empty() && op.m * op.n > 0;
        match self.bug {
            Bug::GemmReadsAtZero if op.beta.is_zero() => read_at_zero(&old, c.host_mut()?),
            Bug::GemmNotReproducible if starts_row && self.is_second_call(self.bug) => {
                T::bytes_of_mut(&mut c.host_mut()?[..1])[0] ^= 1;
            }
            Bug::GemmSkipsZeros if a.host()?.iter().all(|a| a.to_acc().is_zero()) => {
                let is_nan = |c: &&mut T| c.to_acc().is_nan();
                c.host_mut()?.iter_mut().filter(is_nan).for_each(|c| *c = T::default());
            }
            Bug::GemmClampsInfinity => {
                let is_infinite = |c: &&mut T| c.to_acc().is_infinite();
                c.host_mut()?
                    .iter_mut()
                    .filter(is_infinite)
                    .for_each(|c| *c = T::from_f64(65504.0));
            }
            _ => {}
        }
        Ok(())
    }

    fn gemm_batched<T: Element>(
        &self,
        op: &Gemm<T>,
        batch: &GemmBatch,
        a: View<'_, T, Self>,
        b: View<'_, T, Self>,
        mut c: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let stride_b = if self.is(Bug::BatchReusesB) { 0 } else { batch.stride_b };
        let mut op = *op;
        if self.is(Bug::BatchOfItself) && is_same(&a, &b)? {
            op.trans_b = inverted(op.trans_b);
        }
        let batch = GemmBatch { stride_b, ..*batch };
        if self.is(Bug::BatchOverlaps) && batch.count > 1 {
            for i in 0..batch.count {
                let a = a.slice(i * batch.stride_a..a.len())?;
                let b = b.slice(i * batch.stride_b..b.len())?;
                let (start, end) = (i * batch.stride_c, c.len());
                fallback::gemm(self, &op, a, b, c.slice_mut(start..end)?)?;
            }
            return Ok(());
        }
        batch.check(&op, a.len(), b.len(), c.len())?;
        if self.is(Bug::BatchZeroesGaps) && op.beta.is_zero() {
            fallback::fill(self, T::default(), c.reborrow())?;
        }
        fallback::gemm_batched(self, &op, &batch, a, b, c)
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
        self.gemm(op, a, b, c.reborrow())?;
        let add_bias = |c: &mut ViewMut<'_, T, Self>| {
            let columns = Axis::new(op.m, op.n, 1)?;
            match self.bug {
                Bug::GemmIgnoresBias => Ok(()),
                Bug::GemmRepeatsBias if op.n > 0 => {
                    let first = self.scratch(&vec![bias.host()?[0]; op.n])?;
                    let bias = View::new(&first, op.n)?;
                    self.broadcast(Binary::Add, &columns, Src::InPlace, bias, c.reborrow())
                }
                _ => self.broadcast(Binary::Add, &columns, Src::InPlace, bias, c.reborrow()),
            }
        };
        let activate = |c: &mut ViewMut<'_, T, Self>| {
            if self.is(Bug::GemmActivationLosesNan) && function.is_some() {
                let is_nan = |c: &&mut T| c.to_acc().is_nan();
                c.host_mut()?.iter_mut().filter(is_nan).for_each(|c| *c = T::default());
            }
            match function {
                Some(function) => self.unary(function, Src::InPlace, c.reborrow()),
                None => Ok(()),
            }
        };
        if self.is(Bug::GemmAddsBiasLast) {
            activate(&mut c)?;
            return add_bias(&mut c);
        }
        add_bias(&mut c)?;
        activate(&mut c)
    }
}

/// Returns whether `x` starts within `a`, after the first element of `a`.
fn is_part<T: Element>(a: &View<'_, T, Mutant>, x: &View<'_, T, Mutant>) -> Result<bool> {
    let (a, x) = (a.host()?.as_ptr_range(), x.host()?.as_ptr());
    Ok(a.contains(&x) && x != a.start)
}

/// Returns whether two operands are the same range of the same memory.
fn is_same<T: Element>(a: &View<'_, T, Mutant>, b: &View<'_, T, Mutant>) -> Result<bool> {
    Ok(std::ptr::eq(a.host()?, b.host()?))
}

fn inverted(trans: Transpose) -> Transpose {
    if trans == Transpose::No { Transpose::Yes } else { Transpose::No }
}

/// Returns the descriptor of the wrong GEMM that a bug computes instead of `op`.
fn wrong_gemm<T: Element>(bug: Bug, op: Gemm<T>) -> Gemm<T> {
    let packed_op = Gemm::<T>::new(op.m, op.n, op.k).transpose(op.trans_a, op.trans_b);
    match bug {
        Bug::GemmBetaIgnored => op.beta(T::Acc::zero()),
        Bug::GemmDropsAlpha => op.alpha(T::acc(1.0)),
        Bug::GemmIgnoresLda => op.leading_dims(op.lda.min(packed_op.lda), op.ldb, op.ldc),
        Bug::GemmIgnoresLdc => op.leading_dims(op.lda, op.ldb, op.ldc.min(packed_op.ldc)),
        Bug::GemmSwapsSquareB if op.n == op.k => Gemm { trans_b: inverted(op.trans_b), ..op },
        Bug::GemmStops => Gemm { k: op.k.min(256), ..op },
        Bug::GemmDropsLastBlock if op.k > 256 => Gemm { k: op.k / 256 * 256, ..op },
        Bug::GemmDropsLongTail if op.k > 1000 => Gemm { k: op.k / 4 * 4, ..op },
        Bug::GemmDropsTail if op.k > 8 => Gemm { k: op.k / 8 * 8, ..op },
        _ => op,
    }
}
