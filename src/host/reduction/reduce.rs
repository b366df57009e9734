//! Sum, mean, maximum, minimum and `arg_max` along an axis, and sums over all axes but one.

use crate::{
    element::Element,
    error::Result,
    host::{
        cache::scratch::with_scratch,
        reduction::tree::{COLUMN_BLOCK, GRAIN, LONG_RUN, Reducer, pairwise, reducer, sum_reducer},
        simd::{accumulator::widened, vectorized},
        threads::Workers,
    },
    op::{Axis, Reduce},
};
use num_traits::{Float, Zero};
use std::convert::identity;

/// `y[o, i] ←` the reduction `op` of `x[o, e, i]` over all `e`.
///
/// Sums are computed by a tree reduction in `T::Acc`. The sign of a zero maximum or minimum is
/// unspecified.
///
/// # Errors
/// [`Error::Length`](crate::Error::Length) unless `x` has `axis.count()` elements and `y` has
/// `axis.reduced_count()` elements; [`Error::InvalidInput`](crate::Error::InvalidInput) for a
/// maximum or minimum along an empty axis.
pub(crate) fn reduce<T: Element>(
    workers: &Workers,
    op: Reduce,
    axis: &Axis,
    x: &[T],
    y: &mut [T],
) -> Result<()> {
    op.check(axis, x.len(), y.len())?;
    let nan = T::Acc::nan();
    let store = |sum, y: &mut T| *y = T::from_acc(sum);
    match op {
        Reduce::Sum => reduce_axis(workers, axis, x, y, sum_reducer(identity), store),
        Reduce::Mean => {
            let n = T::acc(axis.extent as f64);
            let store_mean = |sum: T::Acc, y: &mut T| *y = T::from_acc(sum / n);
            reduce_axis(workers, axis, x, y, sum_reducer(identity), store_mean);
        }
        Reduce::Max => reduce_axis(workers, axis, x, y, reducer(nan, max_ignoring_nan), store),
        Reduce::Min => reduce_axis(workers, axis, x, y, reducer(nan, min_ignoring_nan), store),
        Reduce::AbsSum => reduce_axis(workers, axis, x, y, sum_reducer(Float::abs), store),
        Reduce::SumSq => reduce_axis(workers, axis, x, y, sum_reducer(square), store),
    }
    Ok(())
}

/// `y[e] ← β·y[e] + Σ x[o, e, i]` over all `o` and `i`. The sum is the gradient of an operand that
/// was broadcast. `y` is not read if β = 0.
///
/// # Errors
/// [`Error::Length`](crate::Error::Length) unless `x` has `axis.count()` elements and `y` has
/// `axis.extent` elements.
pub(crate) fn sum_to_axis<T: Element>(
    workers: &Workers,
    axis: &Axis,
    beta: T::Acc,
    x: &[T],
    y: &mut [T],
) -> Result<()> {
    axis.check_counts("sum_to_axis", &[("x", x.len())])?;
    axis.check_extents("sum_to_axis", &[("y", y.len())])?;
    let store = |sum: T::Acc, y: &mut T| {
        *y = T::from_acc(if beta.is_zero() { sum } else { beta * y.to_acc() + sum });
    };
    sum_channels(workers, axis, x, y, store);
    Ok(())
}

/// Sets `y[o, i]` to the index `e` of the greatest `x[o, e, i]`. If several elements share the
/// greatest value, the index is that of the first. NaN elements are ignored. If all elements along
/// the axis are NaN, the index is 0.
///
/// # Errors
/// [`Error::Length`](crate::Error::Length) under the same conditions as [`reduce`];
/// [`Error::InvalidInput`](crate::Error::InvalidInput) if the axis is empty, or its extent does not
/// fit into a `u32`.
#[doc(alias = "ArgMax")]
pub(crate) fn arg_max<T: Element>(
    workers: &Workers,
    axis: &Axis,
    x: &[T],
    y: &mut [u32],
) -> Result<()> {
    axis.check_arg_max(x.len(), y.len())?;
    if axis.inner == 1 {
        let chunk_len = rows_per_task(axis.extent);
        workers.for_each_chunk(y, chunk_len, |i, y| {
            for (o, y) in (i * chunk_len..).zip(y) {
                *y = arg_max_slice(&x[o * axis.extent..][..axis.extent]);
            }
        });
    } else {
        for_columns(workers, axis, y, |start, y| arg_max_columns(axis, &x[start..], y));
    }
    Ok(())
}

/// Sums over all axes but `axis`, and calls `store(Σ x[o, e, i], y[e])` for each `e`.
fn sum_channels<T: Element>(
    workers: &Workers,
    axis: &Axis,
    x: &[T],
    y: &mut [T],
    store: impl Fn(T::Acc, &mut T) + Send + Sync,
) {
    let Axis { outer, extent, inner } = *axis;
    // Skip empty rows, because the number `outer` of empty rows may be arbitrarily large.
    let outer = if inner == 0 { 0 } else { outer };
    let sum = sum_reducer(identity);
    let chunk_len = rows_per_task(outer * inner);
    if inner >= LONG_RUN {
        // Sum each contiguous run separately, and then add the sums of all runs with the same index
        // `e`.
        let chunk_len = rows_per_task(inner);
        return with_scratch(outer * extent, |sums: &mut [T::Acc]| {
            workers.for_each_chunk(sums, chunk_len, |i, sums| {
                sum.reduce_rows((&x[i * chunk_len * inner..], inner), sums, |sum, y| *y = sum);
            });
            for (e, y) in y.iter_mut().enumerate() {
                let runs = (0..outer).map(|o| sums[o * extent + e]);
                store(pairwise(runs, sum.identity, sum.combine), y);
            }
        });
    }
    // Sum the columns of `x` as an `outer × (extent · inner)` matrix, and then add the `inner`
    // column sums of each `e`.
    let block_len = COLUMN_BLOCK / inner.max(1);
    let chunk_len = chunk_len.next_multiple_of(block_len);
    workers.for_each_chunk(y, chunk_len, |i, y| {
        let mut buffer = [sum.identity; COLUMN_BLOCK];
        for (block, y) in y.chunks_mut(block_len).enumerate() {
            let first = (i * chunk_len + block * block_len) * inner;
            let sums = &mut buffer[..y.len() * inner];
            sum.reduce_columns((x.get(first..).unwrap_or_default(), outer, extent * inner), sums);
            for (j, y) in y.iter_mut().enumerate() {
                let parts = sums[j * inner..][..inner].iter().copied();
                store(pairwise(parts, sum.identity, sum.combine), y);
            }
        }
    });
}

/// Reduces `x` along `axis`, and calls `store(r, y[o, i])`, where r is the reduction of `x[o, e,
/// i]` over all `e`.
fn reduce_axis<T, Map, Combine>(
    workers: &Workers,
    axis: &Axis,
    x: &[T],
    y: &mut [T],
    reducer: Reducer<T::Acc, Map, Combine>,
    store: impl Fn(T::Acc, &mut T) + Send + Sync,
) where
    T: Element,
    Map: Fn(T::Acc) -> T::Acc + Copy + Send + Sync,
    Combine: Fn(T::Acc, T::Acc) -> T::Acc + Copy + Send + Sync,
{
    let extent = axis.extent;
    if axis.inner != 1 {
        for_columns(workers, axis, y, |start, y| {
            let mut buffer = [reducer.identity; COLUMN_BLOCK];
            let results = &mut buffer[..y.len()];
            let matrix = (x.get(start..).unwrap_or_default(), extent, axis.inner);
            reducer.reduce_columns(matrix, results);
            y.iter_mut().zip(results).for_each(|(y, result)| store(*result, y));
        });
    } else if extent >= 2 * GRAIN {
        // Rows of at least `2 * GRAIN` elements are so long that several threads share each row.
        for (x, y) in x.chunks_exact(extent).zip(y) {
            let parts = workers.map(extent.div_ceil(GRAIN), |i| {
                reducer.reduce_slice(&x[i * GRAIN..extent.min((i + 1) * GRAIN)])
            });
            store(pairwise(parts.into_iter(), reducer.identity, reducer.combine), y);
        }
    } else {
        let chunk_len = rows_per_task(extent);
        workers.for_each_chunk(y, chunk_len, |i, y| {
            reducer.reduce_rows((&x[i * chunk_len * extent..], extent), y, &store);
        });
    }
}

/// Calls `body(start, part)` for each part of `y`, whose shape is `outer × inner`. A part of `y`
/// has up to [`COLUMN_BLOCK`] elements, all with the same outer index. `start` is the index of
/// `x[o, 0, i]`, where `y[o, i]` is the first element of the part.
fn for_columns<Y: Send>(
    workers: &Workers,
    axis: &Axis,
    y: &mut [Y],
    body: impl Fn(usize, &mut [Y]) + Send + Sync,
) {
    let Axis { extent, inner, .. } = *axis;
    let chunk_len = rows_per_task(extent).max(COLUMN_BLOCK);
    workers.for_each_chunk(y, chunk_len, |task, mut y| {
        let mut index = task * chunk_len;
        while !y.is_empty() {
            let (o, i) = (index / inner, index % inner);
            let len = (inner - i).min(COLUMN_BLOCK).min(y.len());
            let part;
            (part, y) = y.split_at_mut(len);
            body(o * extent * inner + i, part);
            index += len;
        }
    });
}

fn rows_per_task(row_len: usize) -> usize {
    (GRAIN / row_len.max(1)).max(1)
}

/// Returns x². `square` replaces a closure in [`reduce`], which would have a different type for
/// each element type. With `square`, `f32`, `f16` and `bf16` share the compiled kernel.
#[inline(always)]
fn square<A: Float>(x: A) -> A {
    x * x
}

/// Returns the greater of `a` and `b`. If one number is NaN, returns the other number.
#[inline(always)]
fn max_ignoring_nan<A: Float>(a: A, b: A) -> A {
    if b > a || a.is_nan() { b } else { a }
}

/// Returns the smaller of `a` and `b`. If one number is NaN, returns the other number.
#[inline(always)]
fn min_ignoring_nan<A: Float>(a: A, b: A) -> A {
    if b < a || a.is_nan() { b } else { a }
}

fn arg_max_slice<T: Element>(x: &[T]) -> u32 {
    let max = reducer(T::Acc::nan(), max_ignoring_nan).reduce_slice(x);
    x.iter().position(|x| x.to_acc() == max).unwrap_or(0) as u32
}

fn arg_max_columns<T: Element>(axis: &Axis, x: &[T], y: &mut [u32]) {
    let mut best = [T::Acc::nan(); COLUMN_BLOCK];
    let mut buffer = [T::Acc::zero(); COLUMN_BLOCK];
    y.fill(0);
    for e in 0..axis.extent {
        let x = widened(&x[e * axis.inner..][..y.len()], &mut buffer);
        let e = e as u32;
        vectorized(
            #[inline(always)]
            |_| {
                for ((&x, best), y) in x.iter().zip(&mut best).zip(y.iter_mut()) {
                    // The initial value of `best` is NaN, which the first element that is not NaN
                    // replaces.
                    let is_better = x > *best || (best.is_nan() && !x.is_nan());
                    *best = if is_better { x } else { *best };
                    *y = if is_better { e } else { *y };
                }
            },
        );
    }
}

#[cfg(test)]
mod tests;
