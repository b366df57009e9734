//! Vectors: BLAS level 1.

use super::{
    simd::vectorized,
    widen::{CHUNK, chunk, overwrite, update, widened},
    workers::Workers,
};
use crate::{
    element::Element,
    error::{Result, expect_at_least, expect_len},
};
use num_traits::{Float, Zero};

/// Elements of one task: below twice this, a second thread costs more than it saves.
const TASK: usize = 1 << 17;

/// Accumulators of a row: a whole number of vectors of any width.
pub(super) const WIDTH: usize = 16;

/// Rows of accumulators, written out below: several chains hide the latency of an addition.
const ROWS: usize = 4;

/// `y ← x`.
///
/// # Errors
/// [`Error::Length`](crate::Error::Length) unless `y` is as long as `x`.
#[doc(alias = "caffe_copy")]
pub fn copy<T: Element>(workers: &Workers, x: &[T], y: &mut [T]) -> Result<()> {
    expect_len("copy", "y", x.len(), y.len())?;
    workers.chunks(y, TASK, |i, y| y.copy_from_slice(part(x, i, y.len())));
    Ok(())
}

/// `x ← α·x`.
#[doc(alias = "caffe_scal")]
pub fn scal<T: Element>(workers: &Workers, alpha: T::Acc, x: &mut [T]) -> Result<()> {
    workers.chunks(x, TASK, |_, x| {
        let mut room = chunk();
        vectorized(
            #[inline(always)]
            || {
                for x in x.chunks_mut(CHUNK) {
                    update(x, &mut room, |x| x.iter_mut().for_each(|x| *x = alpha * *x));
                }
            },
        );
    });
    Ok(())
}

/// `y ← α·x + y`.
///
/// # Errors
/// [`Error::Length`](crate::Error::Length) unless `y` is as long as `x`.
#[doc(alias = "caffe_axpy")]
pub fn axpy<T: Element>(workers: &Workers, alpha: T::Acc, x: &[T], y: &mut [T]) -> Result<()> {
    expect_len("axpy", "y", x.len(), y.len())?;
    each(
        workers,
        x,
        y,
        #[inline(always)]
        |x, y, room| {
            update(y, room, |y| y.iter_mut().zip(x).for_each(|(y, &x)| *y = alpha * x + *y));
        },
    );
    Ok(())
}

/// `y ← α·x + β·y`; β = 0 does not read `y`.
///
/// # Errors
/// [`Error::Length`](crate::Error::Length) unless `y` is as long as `x`.
#[doc(alias = "caffe_cpu_axpby")]
pub fn axpby<T: Element>(
    workers: &Workers,
    alpha: T::Acc,
    x: &[T],
    beta: T::Acc,
    y: &mut [T],
) -> Result<()> {
    expect_len("axpby", "y", x.len(), y.len())?;
    if beta.is_zero() {
        each(
            workers,
            x,
            y,
            #[inline(always)]
            |x, y, room| {
                overwrite(y, room, |y| y.iter_mut().zip(x).for_each(|(y, &x)| *y = alpha * x));
            },
        );
    } else {
        each(
            workers,
            x,
            y,
            #[inline(always)]
            |x, y, room| {
                let body = |(y, &x): (&mut T::Acc, &T::Acc)| *y = alpha * x + beta * *y;
                update(y, room, |y| y.iter_mut().zip(x).for_each(body));
            },
        );
    }
    Ok(())
}

/// `Σ xᵢ·yᵢ`, products and sum in `T::Acc`.
///
/// # Errors
/// [`Error::Length`](crate::Error::Length) unless `y` is as long as `x`.
#[doc(alias = "caffe_cpu_dot")]
pub fn dot<T: Element>(workers: &Workers, x: &[T], y: &[T]) -> Result<T::Acc> {
    expect_len("dot", "y", x.len(), y.len())?;
    Ok(sum_of_tasks(workers, x.len(), |i, len| {
        let (x, y) = (part(x, i, len), part(y, i, len));
        vectorized(
            #[inline(always)]
            || {
                let (mut room_x, mut room_y) = (chunk(), chunk());
                let mut sum = T::Acc::zero();
                for (x, y) in x.chunks(CHUNK).zip(y.chunks(CHUNK)) {
                    sum = sum + dot_chunk(widened(x, &mut room_x), widened(y, &mut room_y));
                }
                sum
            },
        )
    }))
}

/// `Σ x[i·incx]·y[i·incy]` over `n` elements; a step of 0 repeats the first.
///
/// # Errors
/// [`Error::Length`](crate::Error::Length) if `x` or `y` ends before the last element used.
#[doc(alias = "caffe_cpu_strided_dot")]
pub fn dot_strided<T: Element>(
    workers: &Workers,
    n: usize,
    x: &[T],
    incx: usize,
    y: &[T],
    incy: usize,
) -> Result<T::Acc> {
    let Some(last) = n.checked_sub(1) else { return Ok(T::Acc::zero()) };
    let span = |inc: usize| last.saturating_mul(inc).saturating_add(1);
    expect_at_least("dot_strided", "x", span(incx), x.len())?;
    expect_at_least("dot_strided", "y", span(incy), y.len())?;
    if (incx, incy) == (1, 1) {
        return dot(workers, &x[..n], &y[..n]);
    }
    Ok(sum_of_tasks(workers, n, |task, len| {
        let (mut room_x, mut room_y) = (chunk::<T::Acc>(), chunk::<T::Acc>());
        let (start, end) = (task * TASK, task * TASK + len);
        let mut sum = T::Acc::zero();
        for start in (start..end).step_by(CHUNK) {
            let len = CHUNK.min(end - start);
            for i in 0..len {
                room_x[i] = x[(start + i) * incx].to_acc();
                room_y[i] = y[(start + i) * incy].to_acc();
            }
            sum = sum
                + vectorized(
                    #[inline(always)]
                    || dot_chunk(&room_x[..len], &room_y[..len]),
                );
        }
        sum
    }))
}

/// `Σ |xᵢ|`.
#[doc(alias = "caffe_cpu_asum")]
pub fn asum<T: Element>(workers: &Workers, x: &[T]) -> Result<T::Acc> {
    Ok(sum_over(workers, x, |x| x.abs()))
}

/// `Σ xᵢ²`.
#[doc(alias = "sumsq_data")]
pub fn sumsq<T: Element>(workers: &Workers, x: &[T]) -> Result<T::Acc> {
    Ok(sum_over(workers, x, |x| x * x))
}

/// `max |xᵢ|`: 0 if there are no elements, NaN if one of them is NaN.
pub fn amax<T: Element>(workers: &Workers, x: &[T]) -> Result<T::Acc> {
    let tasks = x.len().div_ceil(TASK);
    let task = |i| {
        let x = part(x, i, TASK.min(x.len() - i * TASK));
        vectorized(
            #[inline(always)]
            || {
                let mut room = chunk();
                let mut max = T::Acc::zero();
                for x in x.chunks(CHUNK) {
                    max = larger(
                        max,
                        fold_chunk(widened(x, &mut room), |a, x| larger(a, x.abs()), larger),
                    );
                }
                max
            },
        )
    };
    if tasks == 1 {
        return Ok(task(0));
    }
    Ok(workers.map(tasks, task).into_iter().fold(T::Acc::zero(), larger))
}

/// The part of `x` that belongs to task `i`.
#[inline(always)]
fn part<T>(x: &[T], i: usize, len: usize) -> &[T] {
    &x[i * TASK..][..len]
}

/// Calls `body` with widened chunks of `x`, the same elements of `y`, and room to widen those.
#[inline(always)]
fn each<T: Element>(
    workers: &Workers,
    x: &[T],
    y: &mut [T],
    body: impl Fn(&[T::Acc], &mut [T], &mut [T::Acc]) + Send + Sync,
) {
    workers.chunks(y, TASK, |i, y| {
        let x = part(x, i, y.len());
        vectorized(
            #[inline(always)]
            || {
                let (mut room_x, mut room_y) = (chunk(), chunk());
                for (x, y) in x.chunks(CHUNK).zip(y.chunks_mut(CHUNK)) {
                    body(widened(x, &mut room_x), y, &mut room_y);
                }
            },
        );
    });
}

/// Adds `body(task, elements)` of every task of `n` elements, in order.
fn sum_of_tasks<A: Element + Float>(
    workers: &Workers,
    n: usize,
    body: impl Fn(usize, usize) -> A + Send + Sync,
) -> A {
    match n.div_ceil(TASK) {
        0 => A::zero(),
        1 => body(0, n),
        tasks => {
            let sums = workers.map(tasks, |i| body(i, TASK.min(n - i * TASK)));
            sums.into_iter().fold(A::zero(), |sum, part| sum + part)
        }
    }
}

/// `Σ term(xᵢ)`.
#[inline(always)]
fn sum_over<T: Element>(
    workers: &Workers,
    x: &[T],
    term: impl Fn(T::Acc) -> T::Acc + Send + Sync,
) -> T::Acc {
    sum_of_tasks(workers, x.len(), |i, len| {
        let x = part(x, i, len);
        vectorized(
            #[inline(always)]
            || {
                let mut room = chunk();
                let mut sum = T::Acc::zero();
                for x in x.chunks(CHUNK) {
                    sum = sum + fold_chunk(widened(x, &mut room), |a, x| a + term(x), |a, b| a + b);
                }
                sum
            },
        )
    })
}

/// Folds a chunk: `f(accumulator, x)` takes an element in, `combine` joins accumulators. Zeros
/// may be taken in besides.
#[inline(always)]
fn fold_chunk<A: Element + Float>(
    x: &[A],
    f: impl Fn(A, A) -> A,
    combine: impl Fn(A, A) -> A,
) -> A {
    let (whole, rest) = x.as_chunks();
    let mut lanes = [[A::zero(); WIDTH]; ROWS];
    for x in whole {
        lanes = step(lanes, x, x, |lane, x, _| f(lane, x));
    }
    if !rest.is_empty() {
        let rest = padded(rest);
        lanes = step(lanes, &rest, &rest, |lane, x, _| f(lane, x));
    }
    fold_rows(lanes, combine)
}

/// `Σ xᵢ·yᵢ` over a chunk: equal lengths.
#[inline(always)]
fn dot_chunk<A: Element + Float>(x: &[A], y: &[A]) -> A {
    let ((x, rest_x), (y, rest_y)) = (x.as_chunks(), y.as_chunks());
    let mut lanes = [[A::zero(); WIDTH]; ROWS];
    for (x, y) in x.iter().zip(y) {
        lanes = step(lanes, x, y, |lane, x, y| lane + x * y);
    }
    if !rest_x.is_empty() {
        lanes = step(lanes, &padded(rest_x), &padded(rest_y), |lane, x, y| lane + x * y);
    }
    fold_rows(lanes, |a, b| a + b)
}

/// Takes one element into each accumulator; by value, which keeps them in registers.
#[inline(always)]
fn step<A: Element>(
    mut lanes: [[A; WIDTH]; ROWS],
    x: &[A; WIDTH * ROWS],
    y: &[A; WIDTH * ROWS],
    f: impl Fn(A, A, A) -> A,
) -> [[A; WIDTH]; ROWS] {
    for i in 0..WIDTH {
        lanes[0][i] = f(lanes[0][i], x[i], y[i]);
        lanes[1][i] = f(lanes[1][i], x[WIDTH + i], y[WIDTH + i]);
        lanes[2][i] = f(lanes[2][i], x[2 * WIDTH + i], y[2 * WIDTH + i]);
        lanes[3][i] = f(lanes[3][i], x[3 * WIDTH + i], y[3 * WIDTH + i]);
    }
    lanes
}

/// `x`, of fewer elements, filled up with zeros.
#[inline(always)]
pub(super) fn padded<A: Element, const N: usize>(x: &[A]) -> [A; N] {
    let mut whole = [A::default(); N];
    whole[..x.len()].copy_from_slice(x);
    whole
}

/// Combines accumulators: rows first, then halves.
#[inline(always)]
fn fold_rows<A: Element>(lanes: [[A; WIDTH]; ROWS], f: impl Fn(A, A) -> A) -> A {
    let [mut a, b, c, d] = lanes;
    for i in 0..WIDTH {
        a[i] = f(f(a[i], b[i]), f(c[i], d[i]));
    }
    fold_lanes(a, f)
}

/// Combines those at half the distance until one is left.
#[inline(always)]
pub(super) fn fold_lanes<A: Element>(mut lanes: [A; WIDTH], f: impl Fn(A, A) -> A) -> A {
    let mut half = WIDTH / 2;
    while half > 0 {
        for i in 0..half {
            lanes[i] = f(lanes[i], lanes[i + half]);
        }
        half /= 2;
    }
    lanes[0]
}

/// The larger of two, or the first that is NaN.
#[inline(always)]
fn larger<A: Float>(a: A, b: A) -> A {
    if a >= b || a.is_nan() { a } else { b }
}

#[cfg(test)]
mod tests;
