//! Functions of one and of two elements, along whole operands.
//!
//! Which function it is gets decided once per run of elements; each has a loop of its own, which
//! the compiler vectorises where the function allows it.

use super::{
    simd::vectorized,
    widen::{CHUNK, chunk, is_wide, overwrite, update, widen, widened},
    workers::Workers,
};
use crate::{
    element::Element,
    error::{Result, expect_len},
    op::{Axis, Binary, Unary},
};
use num_traits::{Float, Zero};
use std::borrow::Cow;

/// Elements of one task where memory is the limit: below twice this, a second thread costs more
/// than it saves.
const TASK: usize = 1 << 17;

/// Elements of one task where the function itself is the limit.
const SLOW_TASK: usize = 1 << 13;

/// Evaluates `$body`, vectorised, with `$known` bound to `$op`, in one copy for each variant.
///
/// The binding is inside the closure: only there does the compiler see which variant it is.
macro_rules! specialized {
    ($kind:ident: $op:expr, |$known:ident| $body:expr; $(
        $variant:ident $(($value:ident))? $({ $($field:ident),* })?
    ),*) => {
        match $op {
            $($kind::$variant $(($value))? $({ $($field),* })? => vectorized(
                #[inline(always)]
                move || {
                    let $known = $kind::$variant $(($value))? $({ $($field),* })?;
                    $body
                }
            ),)*
        }
    };
}

macro_rules! specialized_unary {
    ($op:expr, |$known:ident| $body:expr) => {
        specialized!(Unary: $op, |$known| $body;
            Abs, Neg, Exp, Ln, Sqr, Sqrt, Recip, Tanh, Sigmoid, Sign, SignBit, Pow(p),
            AddScalar(c), Scale(c), Relu { slope }, Clip { low, high })
    };
}

macro_rules! specialized_binary {
    ($op:expr, |$known:ident| $body:expr) => {
        specialized!(Binary: $op, |$known| $body;
            Add, Sub, Mul, Div, Max, Min, ReluGrad { slope }, SigmoidGrad, TanhGrad)
    };
}

/// `y ← value`, every element.
///
/// # Errors
/// None.
#[doc(alias = "caffe_set")]
pub fn fill<T: Element>(workers: &Workers, value: T, y: &mut [T]) -> Result<()> {
    workers.chunks(y, TASK, |_, y| y.fill(value));
    Ok(())
}

/// `yᵢ ← f(xᵢ)`.
///
/// # Errors
/// [`Error::Length`](crate::Error::Length) unless `y` is as long as `x`.
#[doc(alias = "caffe_exp")]
#[doc(alias = "caffe_powx")]
#[doc(alias = "caffe_abs")]
#[doc(alias = "caffe_sqr")]
pub fn unary<T: Element>(workers: &Workers, op: Unary<T::Acc>, x: &[T], y: &mut [T]) -> Result<()> {
    expect_len(op.name(), "y", x.len(), y.len())?;
    let task = unary_task(op);
    workers.chunks(y, task, |i, y| {
        let (mut room_x, mut room_y) = (chunk(), chunk());
        let x = x[i * task..][..y.len()].chunks(run::<T>());
        for (x, y) in x.zip(y.chunks_mut(run::<T>())) {
            let x = widened(x, &mut room_x);
            overwrite(y, &mut room_y, |y| unary_run(op, x, y));
        }
    });
    Ok(())
}

/// `yᵢ ← f(yᵢ)`.
///
/// # Errors
/// None.
#[doc(alias = "caffe_add_scalar")]
pub fn unary_in_place<T: Element>(workers: &Workers, op: Unary<T::Acc>, y: &mut [T]) -> Result<()> {
    workers.chunks(y, unary_task(op), |_, y| {
        let mut room = chunk();
        for y in y.chunks_mut(run::<T>()) {
            update(y, &mut room, |y| unary_run_in_place(op, y));
        }
    });
    Ok(())
}

/// `yᵢ ← f(aᵢ, bᵢ)`.
///
/// # Errors
/// [`Error::Length`](crate::Error::Length) unless `b` and `y` are as long as `a`.
#[doc(alias = "caffe_add")]
#[doc(alias = "caffe_sub")]
#[doc(alias = "caffe_mul")]
#[doc(alias = "caffe_div")]
pub fn binary<T: Element>(
    workers: &Workers,
    op: Binary<T::Acc>,
    a: &[T],
    b: &[T],
    y: &mut [T],
) -> Result<()> {
    expect_len(op.name(), "b", a.len(), b.len())?;
    expect_len(op.name(), "y", a.len(), y.len())?;
    workers.chunks(y, TASK, |i, y| {
        let (mut room_a, mut room_b, mut room_y) = (chunk(), chunk(), chunk());
        let start = i * TASK;
        let a = a[start..][..y.len()].chunks(run::<T>());
        let b = b[start..][..y.len()].chunks(run::<T>());
        for ((a, b), y) in a.zip(b).zip(y.chunks_mut(run::<T>())) {
            let (a, b) = (widened(a, &mut room_a), widened(b, &mut room_b));
            overwrite(y, &mut room_y, |y| binary_run(op, a, b, y));
        }
    });
    Ok(())
}

/// `yᵢ ← f(yᵢ, bᵢ)`.
///
/// # Errors
/// [`Error::Length`](crate::Error::Length) unless `b` is as long as `y`.
pub fn binary_in_place<T: Element>(
    workers: &Workers,
    op: Binary<T::Acc>,
    b: &[T],
    y: &mut [T],
) -> Result<()> {
    expect_len(op.name(), "b", y.len(), b.len())?;
    workers.chunks(y, TASK, |i, y| {
        let (mut room_b, mut room_y) = (chunk(), chunk());
        let b = b[i * TASK..][..y.len()].chunks(run::<T>());
        for (b, y) in b.zip(y.chunks_mut(run::<T>())) {
            let b = widened(b, &mut room_b);
            update(y, &mut room_y, |y| binary_run_in_place(op, b, y));
        }
    });
    Ok(())
}

/// `y[o, e, i] ← f(a[o, e, i], b[e])`: one operand for each index of an axis.
///
/// # Errors
/// [`Error::Length`](crate::Error::Length) unless `a` and `y` have the axis' count of elements
/// and `b` its extent.
pub fn broadcast<T: Element>(
    workers: &Workers,
    op: Binary<T::Acc>,
    axis: &Axis,
    a: &[T],
    b: &[T],
    y: &mut [T],
) -> Result<()> {
    expect_len(op.name(), "a", axis.count(), a.len())?;
    expect_len(op.name(), "b", axis.extent, b.len())?;
    expect_len(op.name(), "y", axis.count(), y.len())?;
    spread(workers, axis, b, y, |start, b, y, room_y| {
        let mut room_a = chunk();
        let a = widened(&a[start..][..y.len()], &mut room_a);
        overwrite(y, room_y, |y| binary_run(op, a, b, y));
    });
    Ok(())
}

/// `y[o, e, i] ← f(y[o, e, i], b[e])`.
///
/// # Errors
/// [`Error::Length`](crate::Error::Length) unless `y` has the axis' count of elements and `b`
/// its extent.
pub fn broadcast_in_place<T: Element>(
    workers: &Workers,
    op: Binary<T::Acc>,
    axis: &Axis,
    b: &[T],
    y: &mut [T],
) -> Result<()> {
    expect_len(op.name(), "b", axis.extent, b.len())?;
    expect_len(op.name(), "y", axis.count(), y.len())?;
    spread(workers, axis, b, y, |_, b, y, room_y| {
        update(y, room_y, |y| binary_run_in_place(op, b, y));
    });
    Ok(())
}

/// Elements handled at a time: all of them unless they have to be widened.
fn run<T: Element>() -> usize {
    if is_wide::<T>() { TASK } else { CHUNK }
}

fn unary_task<A>(op: Unary<A>) -> usize {
    match op {
        Unary::Exp | Unary::Ln | Unary::Tanh | Unary::Sigmoid | Unary::Pow(_) => SLOW_TASK,
        _ => TASK,
    }
}

fn unary_run<A: Element + Float>(op: Unary<A>, x: &[A], y: &mut [A]) {
    specialized_unary!(op, |op| y.iter_mut().zip(x).for_each(|(y, &x)| *y = op.eval(x)));
}

fn unary_run_in_place<A: Element + Float>(op: Unary<A>, y: &mut [A]) {
    specialized_unary!(op, |op| y.iter_mut().for_each(|y| *y = op.eval(*y)));
}

fn binary_run<A: Element + Float>(op: Binary<A>, a: &[A], b: &[A], y: &mut [A]) {
    specialized_binary!(op, |op| y
        .iter_mut()
        .zip(a)
        .zip(b)
        .for_each(|((y, &a), &b)| *y = op.eval(a, b)));
}

fn binary_run_in_place<A: Element + Float>(op: Binary<A>, b: &[A], y: &mut [A]) {
    specialized_binary!(op, |op| y.iter_mut().zip(b).for_each(|(y, &b)| *y = op.eval(*y, b)));
}

/// Calls `body` for chunks of `y` with the chunk's start, the elements of `b` that belong to it,
/// repeated as often as they apply, and room to widen `y`.
fn spread<T: Element>(
    workers: &Workers,
    axis: &Axis,
    b: &[T],
    y: &mut [T],
    body: impl Fn(usize, &[T::Acc], &mut [T], &mut [T::Acc]) + Send + Sync,
) {
    let period = axis.extent * axis.inner;
    if period == 0 {
        return;
    }
    // Chunks of whole periods, where they fit, all take the same operand.
    let repeats = period <= CHUNK;
    let step = if repeats { CHUNK / period * period } else { CHUNK };
    let b = wide(b);
    workers.chunks(y, TASK, |task, y| {
        let (mut operand, mut room) = (chunk(), chunk());
        for (i, y) in y.chunks_mut(step).enumerate() {
            let start = task * TASK + i * step;
            if i == 0 || !repeats {
                repeat(&b, axis.inner, start, &mut operand[..y.len()]);
            }
            body(start, &operand[..y.len()], y, &mut room);
        }
    });
}

/// `y[j] ← b[(start + j) / inner mod extent]`
fn repeat<A: Copy>(b: &[A], inner: usize, start: usize, y: &mut [A]) {
    let period = b.len() * inner;
    let mut at = start % period;
    let mut done = 0;
    while done < y.len().min(period) {
        let e = at / inner;
        let len = if inner == 1 { b.len() - e } else { inner - at % inner };
        let len = len.min(y.len().min(period) - done);
        match inner {
            1 => y[done..][..len].copy_from_slice(&b[e..][..len]),
            _ => y[done..][..len].fill(b[e]),
        }
        (done, at) = (done + len, (at + len) % period);
    }
    // From here on it repeats itself.
    while done < y.len() {
        let len = done.min(y.len() - done);
        y.copy_within(..len, done);
        done += len;
    }
}

/// `x` in the type it is computed in.
fn wide<T: Element>(x: &[T]) -> Cow<'_, [T::Acc]> {
    if is_wide::<T>() {
        return Cow::Borrowed(bytemuck::cast_slice(x));
    }
    let mut wide = vec![T::Acc::zero(); x.len()];
    widen(x, &mut wide);
    Cow::Owned(wide)
}

#[cfg(test)]
mod tests;
