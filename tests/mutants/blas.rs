//! Mutants with bugs in vector and matrix kernels. The mutants run `scal` and `axpy` as native
//! kernels of the simulated device.

use crate::{
    bug::Bug,
    device::{Mutant, inner_view, inner_view_mut, output_span},
};
use cortado::{
    DType, Element, Result, View, ViewMut,
    kernel::{Blas, fallback},
    ledger,
    op::{Gemm, GemmBatch, Gemv, Transpose},
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
        fallback::copy(self, x, y.reborrow())?;
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
        let len = if self.is(Bug::ScalDropsTail) { x.len() / 4 * 4 } else { x.len() };
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
        let launched = self.inner.scal(alpha, x.reborrow());
        self.launched(launched, || self.inner.scal(alpha, x))
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
            return self.persist_error(fallback::axpy(self, alpha, x, y));
        }
        let _scope = self.enter::<T>("axpy");
        self.count_job();
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
        fallback::axpby(self, alpha, x, beta, y.reborrow())?;
        if self.is(Bug::AxpbyReadsAtZero) && beta.is_zero() {
            read_at_zero(&old, y.host_mut()?);
        }
        Ok(())
    }

    fn dot<T: Element>(&self, x: View<'_, T, Self>, y: View<'_, T, Self>) -> Result<T::Acc> {
        match self.bug {
            Bug::DotDropsTail if x.len() == y.len() && x.len() > 1024 => {
                let len = x.len() / 1024 * 1024;
                fallback::dot(self, x.slice(0..len)?, y.slice(0..len)?)
            }
            Bug::DotNarrow if T::DTYPE == DType::F16 && x.len() == y.len() => {
                let terms = x.host()?.iter().zip(y.host()?);
                let narrow =
                    |sum: T, (x, y): (&T, &T)| T::from_acc(sum.to_acc() + x.to_acc() * y.to_acc());
                Ok(terms.fold(T::default(), narrow).to_acc())
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
        if self.is(Bug::DotIgnoresIncy) && n <= y.len() {
            return fallback::dot_strided(self, n, x, incx, y.slice(0..n)?, 1);
        }
        fallback::dot_strided(self, n, x, incx, y, incy)
    }

    fn asum<T: Element>(&self, x: View<'_, T, Self>) -> Result<T::Acc> {
        if self.is(Bug::AsumWithoutAbs) {
            return Ok(x.host()?.iter().fold(T::Acc::zero(), |sum, x| sum + x.to_acc()));
        }
        let sum = fallback::asum(self, x);
        if self.is(Bug::NumberLosesFailure) {
            return sum.or_else(|_| fallback::asum(self, x));
        }
        sum
    }

    fn amax<T: Element>(&self, x: View<'_, T, Self>) -> Result<T::Acc> {
        if self.is(Bug::AmaxLosesNan) {
            return Ok(x.host()?.iter().fold(T::Acc::zero(), |max, x| max.max(x.to_acc().abs())));
        }
        fallback::amax(self, x)
    }

    fn gemv<T: Element>(
        &self,
        op: &Gemv<T>,
        a: View<'_, T, Self>,
        x: View<'_, T, Self>,
        y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let op = if self.is(Bug::GemvDropsAlpha) { op.alpha(T::acc(1.0)) } else { *op };
        fallback::gemv(self, &op, a, x, y)
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
        c: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let stride_b = if self.is(Bug::BatchReusesB) { 0 } else { batch.stride_b };
        fallback::gemm_batched(self, op, &GemmBatch { stride_b, ..*batch }, a, b, c)
    }
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
    let packed = Gemm::<T>::new(op.m, op.n, op.k).transpose(op.trans_a, op.trans_b);
    match bug {
        Bug::GemmBetaIgnored => op.beta(T::Acc::zero()),
        Bug::GemmDropsAlpha => op.alpha(T::acc(1.0)),
        Bug::GemmIgnoresLda => op.leading_dims(op.lda.min(packed.lda), op.ldb, op.ldc),
        Bug::GemmIgnoresLdc => op.leading_dims(op.lda, op.ldb, op.ldc.min(packed.ldc)),
        Bug::GemmSwapsSquareB if op.n == op.k => Gemm { trans_b: inverted(op.trans_b), ..op },
        Bug::GemmDropsTail if op.k > 8 => Gemm { k: op.k / 8 * 8, ..op },
        _ => op,
    }
}
