//! Reductions along an axis.

use crate::{
    element::Element,
    error::{Error, Result, check_len},
    host::{
        cache::scratch::with_scratch,
        reduction::tree::{
            COLUMN_BLOCK, Reducer, pairwise, reduce_columns, reduce_rows, reduce_slice, sum_reducer,
        },
        simd::{accumulator::widened, vectorized},
        threads::Workers,
    },
    op::{Axis, Reduce},
};
use num_traits::{Float, Zero};

/// Elements of one task: below twice this, a second thread costs more than it saves.
const GRAIN: usize = 1 << 16;

/// From this length on, runs after the axis are folded one by one; shorter ones side by side.
const LONG: usize = 16;

/// `y[o, i] ← reduction over e of x[o, e, i]`.
///
/// Sums are taken pairwise in `T::Acc`. Of equal extremes the sign of zero is unspecified.
///
/// # Errors
/// [`Error::Length`] unless `x` has the axis' count of elements and `y` what remains without the
/// axis; [`Error::InvalidInput`] for an extreme of nothing.
pub fn reduce<T: Element>(
    workers: &Workers,
    op: Reduce,
    axis: &Axis,
    x: &[T],
    y: &mut [T],
) -> Result<()> {
    check_len(op.name(), "x", axis.count(), x.len())?;
    check_len(op.name(), "y", axis.reduced_count(), y.len())?;
    if matches!(op, Reduce::Max | Reduce::Min) {
        axis.check_non_empty(op.name())?;
    }
    let nan = T::Acc::nan();
    let store = |sum, y: &mut T| *y = T::from_acc(sum);
    match op {
        Reduce::Sum => fold_axis(workers, axis, x, y, sum_reducer(|x| x), store),
        Reduce::Mean => {
            let n = T::acc(axis.extent as f64);
            let divide = |sum: T::Acc, y: &mut T| *y = T::from_acc(sum / n);
            fold_axis(workers, axis, x, y, sum_reducer(|x| x), divide);
        }
        Reduce::Max => {
            let fold = Reducer { unit: nan, term: |x| x, join: greater, sum: false };
            fold_axis(workers, axis, x, y, fold, store);
        }
        Reduce::Min => {
            let fold = Reducer { unit: nan, term: |x| x, join: lesser, sum: false };
            fold_axis(workers, axis, x, y, fold, store);
        }
        Reduce::AbsSum => fold_axis(workers, axis, x, y, sum_reducer(Float::abs), store),
        Reduce::SumSq => fold_axis(workers, axis, x, y, sum_reducer(|x| x * x), store),
    }
    Ok(())
}

/// `y[e] ← β·y[e] + Σ x[o, e, i]` over all `o` and `i`: the gradient of what is broadcast.
///
/// β = 0 does not read `y`.
///
/// # Errors
/// [`Error::Length`] unless `x` has the axis' count of elements and `y` its extent.
pub fn sum_to_axis<T: Element>(
    workers: &Workers,
    axis: &Axis,
    beta: T::Acc,
    x: &[T],
    y: &mut [T],
) -> Result<()> {
    check_len("sum_to_axis", "x", axis.count(), x.len())?;
    check_len("sum_to_axis", "y", axis.extent, y.len())?;
    let store = |sum: T::Acc, y: &mut T| {
        *y = T::from_acc(if beta.is_zero() { sum } else { beta * y.to_acc() + sum });
    };
    sum_channels(workers, axis, x, y, store);
    Ok(())
}

/// `y[o, i] ← the e of the greatest x[o, e, i]`: the first of equals. NaN is passed over; where
/// there is nothing else, the result is 0.
///
/// # Errors
/// [`Error::Length`] as [`reduce`]; [`Error::InvalidInput`] if the axis has no elements, or more than a
/// `u32` can tell apart.
#[doc(alias = "ArgMax")]
pub fn arg_max<T: Element>(workers: &Workers, axis: &Axis, x: &[T], y: &mut [u32]) -> Result<()> {
    check_len("arg_max", "x", axis.count(), x.len())?;
    check_len("arg_max", "y", axis.reduced_count(), y.len())?;
    axis.check_non_empty("arg_max")?;
    if u32::try_from(axis.extent).is_err() {
        return Err(Error::invalid_input(
            "arg_max",
            format!("an axis of {} elements", axis.extent),
        ));
    }
    if axis.inner == 1 {
        let per_task = rows_per_task(axis.extent);
        workers.for_each_chunk(y, per_task, |i, y| {
            for (o, y) in (i * per_task..).zip(y) {
                *y = arg_max_of(&x[o * axis.extent..][..axis.extent]);
            }
        });
    } else {
        for_columns(workers, axis, y, |start, y| arg_max_columns(axis, &x[start..], y));
    }
    Ok(())
}

/// Sums over all but the axis: `store(Σ x[o, e, i], y[e])`.
fn sum_channels<T: Element>(
    workers: &Workers,
    axis: &Axis,
    x: &[T],
    y: &mut [T],
    store: impl Fn(T::Acc, &mut T) + Send + Sync,
) {
    let Axis { outer, extent, inner } = *axis;
    // Rows of nothing add nothing, however many there are said to be.
    let outer = if inner == 0 { 0 } else { outer };
    let sum = sum_reducer(|x| x);
    let per_task = rows_per_task(outer * inner);
    if inner >= LONG {
        // Runs in the order of memory, then those of each e.
        let per_task = rows_per_task(inner);
        return with_scratch(outer * extent, |sums: &mut [T::Acc]| {
            workers.for_each_chunk(sums, per_task, |i, sums| {
                reduce_rows((&x[i * per_task * inner..], inner), sum, sums, |sum, y| *y = sum);
            });
            for (e, y) in y.iter_mut().enumerate() {
                let runs = (0..outer).map(|o| sums[o * extent + e]);
                store(pairwise(runs, sum.unit, sum.join), y);
            }
        });
    }
    // Side by side: sum the rows of `outer × (extent · inner)`, then the few after the axis.
    let per_block = COLUMN_BLOCK / inner.max(1);
    let per_task = per_task.next_multiple_of(per_block);
    workers.for_each_chunk(y, per_task, |i, y| {
        let mut room = [sum.unit; COLUMN_BLOCK];
        for (block, y) in y.chunks_mut(per_block).enumerate() {
            let first = (i * per_task + block * per_block) * inner;
            let sums = &mut room[..y.len() * inner];
            reduce_columns((x.get(first..).unwrap_or_default(), outer, extent * inner), sum, sums);
            for (j, y) in y.iter_mut().enumerate() {
                let parts = sums[j * inner..][..inner].iter().copied();
                store(pairwise(parts, sum.unit, sum.join), y);
            }
        }
    });
}

/// `store(fold over e of x[o, e, i], y[o, i])`
fn fold_axis<T, Term, Join>(
    workers: &Workers,
    axis: &Axis,
    x: &[T],
    y: &mut [T],
    fold: Reducer<T::Acc, Term, Join>,
    store: impl Fn(T::Acc, &mut T) + Send + Sync,
) where
    T: Element,
    Term: Fn(T::Acc) -> T::Acc + Copy + Send + Sync,
    Join: Fn(T::Acc, T::Acc) -> T::Acc + Copy + Send + Sync,
{
    let extent = axis.extent;
    if axis.inner != 1 {
        for_columns(workers, axis, y, |start, y| {
            let mut room = [fold.unit; COLUMN_BLOCK];
            let results = &mut room[..y.len()];
            let matrix = (x.get(start..).unwrap_or_default(), extent, axis.inner);
            reduce_columns(matrix, fold, results);
            y.iter_mut().zip(results).for_each(|(y, result)| store(*result, y));
        });
    } else if extent >= 2 * GRAIN {
        // Few long rows: each is folded by several threads.
        for (x, y) in x.chunks_exact(extent).zip(y) {
            let parts = workers.map(extent.div_ceil(GRAIN), |i| {
                reduce_slice(&x[i * GRAIN..extent.min((i + 1) * GRAIN)], fold)
            });
            store(pairwise(parts.into_iter(), fold.unit, fold.join), y);
        }
    } else {
        let per_task = rows_per_task(extent);
        workers.for_each_chunk(y, per_task, |i, y| {
            reduce_rows((&x[i * per_task * extent..], extent), fold, y, &store);
        });
    }
}

/// Calls `body` for parts of `y`, `outer × inner` elements in all, of at most [`WIDTH`] elements
/// and not across `outer`, with the place in `x` of what belongs to their first element.
fn for_columns<Y: Send>(
    workers: &Workers,
    axis: &Axis,
    y: &mut [Y],
    body: impl Fn(usize, &mut [Y]) + Send + Sync,
) {
    let Axis { extent, inner, .. } = *axis;
    let per_task = rows_per_task(extent).max(COLUMN_BLOCK);
    workers.for_each_chunk(y, per_task, |task, mut y| {
        let mut at = task * per_task;
        while !y.is_empty() {
            let (o, i) = (at / inner, at % inner);
            let len = (inner - i).min(COLUMN_BLOCK).min(y.len());
            let part;
            (part, y) = y.split_at_mut(len);
            body(o * extent * inner + i, part);
            at += len;
        }
    });
}

fn rows_per_task(row: usize) -> usize {
    (GRAIN / row.max(1)).max(1)
}

/// The greater; the other if one is NaN.
#[inline(always)]
fn greater<A: Float>(a: A, b: A) -> A {
    if b > a || a.is_nan() { b } else { a }
}

/// The lesser; the other if one is NaN.
#[inline(always)]
fn lesser<A: Float>(a: A, b: A) -> A {
    if b < a || a.is_nan() { b } else { a }
}

fn arg_max_of<T: Element>(x: &[T]) -> u32 {
    let max =
        reduce_slice(x, Reducer { unit: T::Acc::nan(), term: |x| x, join: greater, sum: false });
    x.iter().position(|x| x.to_acc() == max).unwrap_or(0) as u32
}

fn arg_max_columns<T: Element>(axis: &Axis, x: &[T], y: &mut [u32]) {
    let mut best = [T::Acc::nan(); COLUMN_BLOCK];
    let mut room = [T::Acc::zero(); COLUMN_BLOCK];
    y.fill(0);
    for e in 0..axis.extent {
        let x = widened(&x[e * axis.inner..][..y.len()], &mut room);
        let e = e as u32;
        vectorized(
            #[inline(always)]
            || {
                for ((&x, best), y) in x.iter().zip(&mut best).zip(y.iter_mut()) {
                    // A first number replaces the NaN that stands for nothing.
                    let better = x > *best || (best.is_nan() && !x.is_nan());
                    *best = if better { x } else { *best };
                    *y = if better { e } else { *y };
                }
            },
        );
    }
}

#[cfg(test)]
mod tests;
