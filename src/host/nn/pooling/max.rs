//! Maxima of windows and where they were found.

use crate::{
    element::{DType, Element, bf16, f16},
    error::{Error, Result, check_len},
    host::{
        Workers,
        cache::scratch::with_scratch,
        nn::{
            polyphase::{PolyphasePlane, Tap},
            pooling::planes::{planes, planes_per_task, runs, with_rooms},
        },
        reduction::tree::{Reducer, reduce_slice},
        simd::{
            accumulator::{is_wide, overwrite_widened, widened},
            vectorized,
        },
    },
    op::Pool2d,
};
use num_traits::Float;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// `y ← the greatest of each window`, and in `mask` where it was found.
///
/// A window starts out with the least finite value (of `f32` for `f64`) and takes what is greater:
/// so of equals the first in row-major order is found, NaN never is, and a window without
/// anything greater, such as one wholly in the padding, yields that least value and a mask of −1.
/// Other masks are `row · width + column` within the input plane.
///
/// # Errors
/// [`Error::Length`] names the operand; [`Error::InvalidInput`] if a plane has more elements than a mask
/// can tell apart.
#[doc(alias = "PoolForward")]
pub fn max_pool<T: Element>(
    workers: &Workers,
    op: &Pool2d,
    x: &[T],
    y: &mut [T],
    mask: &mut [i32],
) -> Result<()> {
    op.check("max_pool", ("x", x.len()), ("y", y.len()))?;
    check_len("max_pool", "mask", op.output_len(), mask.len())?;
    let (from, to) = planes(op);
    if i32::try_from(from).is_err() {
        return Err(Error::invalid_input("max_pool", format!("a plane of {from} elements")));
    }
    if y.is_empty() {
        return Ok(());
    }
    if op.kernel == [2, 2]
        && op.stride == [2, 2]
        && (0..2).all(|i| 2 * op.output()[i] <= op.input[i])
    {
        return max_of_fours(workers, op, x, y, mask);
    }
    if !PolyphasePlane::is_profitable(op) {
        return max_one_by_one(workers, op, x, y, mask);
    }
    let (tiling, lowest) = (PolyphasePlane::new(op), lowest::<T>());
    let (taps, per_task) = (tiling.taps(), planes_per_task(op));
    workers.for_each_chunk_pair((y, per_task * to), (mask, per_task * to), |i, y, mask| {
        with_rooms::<T>(op, &tiling, |room_x, tiled, values| {
            tiled.fill(lowest);
            let planes = y.chunks_exact_mut(to).zip(mask.chunks_exact_mut(to));
            for (p, (y, mask)) in (i * per_task..).zip(planes) {
                let x = widened(&x[p * from..][..from], room_x);
                overwrite_widened(y, &mut values[..to], |y| {
                    vectorized(
                        #[inline(always)]
                        || {
                            tiling.to_phases(x, tiled);
                            greatest(op, &tiling, tiled, &taps, lowest, y, mask);
                        },
                    );
                });
            }
        });
    });
    Ok(())
}

/// `dx ← dy` put where `mask` says that it came from; what several windows took is summed.
///
/// `dx` is overwritten. A mask of −1 is passed over. On an error `dx` holds no useful values.
///
/// # Errors
/// [`Error::Length`] names the operand; [`Error::InvalidInput`] names a mask outside the input plane.
#[doc(alias = "PoolBackward")]
pub fn max_pool_backward<T: Element>(
    workers: &Workers,
    op: &Pool2d,
    dy: &[T],
    mask: &[i32],
    dx: &mut [T],
) -> Result<()> {
    op.check("max_pool_backward", ("dx", dx.len()), ("dy", dy.len()))?;
    check_len("max_pool_backward", "mask", op.output_len(), mask.len())?;
    if dx.is_empty() {
        return Ok(());
    }
    let (from, to) = planes(op);
    let first_bad = AtomicUsize::new(usize::MAX);
    let per_task = planes_per_task(op);
    workers.for_each_chunk(dx, per_task * from, |i, dx| {
        let len = |plane| if is_wide::<T>() { 0 } else { plane };
        with_scratch(len(from) + len(to), |room: &mut [T::Acc]| {
            let (room_dx, room_dy) = room.split_at_mut(len(from));
            for (p, dx) in (i * per_task..).zip(dx.chunks_exact_mut(from)) {
                let dy = widened(&dy[p * to..][..to], room_dy);
                let mask = &mask[p * to..][..to];
                overwrite_widened(dx, room_dx, |dx| {
                    if let Some(bad) = scatter(dy, mask, dx) {
                        first_bad.fetch_min(p * to + bad, Relaxed);
                    }
                });
            }
        });
    });
    match mask.get(first_bad.into_inner()) {
        None => Ok(()),
        Some(bad) => {
            let why = format!("mask {bad} is outside an input plane of {from} elements");
            Err(Error::invalid_input("max_pool_backward", why))
        }
    }
}

fn max_one_by_one<T: Element>(
    workers: &Workers,
    op: &Pool2d,
    x: &[T],
    y: &mut [T],
    mask: &mut [i32],
) -> Result<()> {
    let ((from, to), per_task, lowest) = (planes(op), planes_per_task(op), lowest::<T>());
    let greater =
        Reducer { unit: lowest, term: |x| x, join: |a, b| if b > a { b } else { a }, sum: false };
    workers.for_each_chunk_pair((y, per_task * to), (mask, per_task * to), |i, y, mask| {
        for (j, (y, mask)) in (i * per_task * to..).zip(y.iter_mut().zip(mask)) {
            let x = &x[j / to * from..][..from];
            let (mut best, mut place) = (lowest, None);
            for run in runs(op, j % to) {
                let max = reduce_slice(&x[run.clone()], greater);
                if max > best {
                    best = max;
                    place = run.clone().find(|&at| x[at].to_acc() == max);
                }
            }
            // The first of equals may be a zero of another sign.
            *y = place.map_or(T::from_acc(lowest), |place| x[place]);
            *mask = place.map_or(-1, |place| place as i32);
        }
    });
    Ok(())
}

/// Windows of two by two that do not overlap, straight from the plane.
fn max_of_fours<T: Element>(
    workers: &Workers,
    op: &Pool2d,
    x: &[T],
    y: &mut [T],
    mask: &mut [i32],
) -> Result<()> {
    let ((from, to), per_task, lowest) = (planes(op), planes_per_task(op), lowest::<T>());
    let (width, out) = (op.input[1], op.output()[1]);
    workers.for_each_chunk_pair((y, per_task * to), (mask, per_task * to), |i, y, mask| {
        let wide = if is_wide::<T>() { 0 } else { from + to };
        with_scratch(wide, |room: &mut [T::Acc]| {
            let (room_x, room_y) = room.split_at_mut(wide.min(from));
            let planes = y.chunks_exact_mut(to).zip(mask.chunks_exact_mut(to));
            for (p, (y, mask)) in (i * per_task..).zip(planes) {
                let x = widened(&x[p * from..][..from], room_x);
                overwrite_widened(y, room_y, |y| {
                    vectorized(
                        #[inline(always)]
                        || {
                            let rows = y.chunks_exact_mut(out).zip(mask.chunks_exact_mut(out));
                            for (row, (y, mask)) in rows.enumerate() {
                                fours_of_row(x, (2 * row * width, width), lowest, y, mask);
                            }
                        },
                    );
                });
            }
        });
    });
    Ok(())
}

/// One row of [`max_of_fours`], of the rows of `x` from `start` on.
#[inline(always)]
fn fours_of_row<A: Element + Float>(
    x: &[A],
    (start, width): (usize, usize),
    lowest: A,
    y: &mut [A],
    mask: &mut [i32],
) {
    let mut column = 0;
    while column < y.len() {
        // Where the rest is too short, the last are computed a second time with it.
        column = match y.len() {
            8.. => fours::<A, 8, 16>(x, (start, width), column.min(y.len() - 8), lowest, y, mask),
            4.. => fours::<A, 4, 8>(x, (start, width), column.min(y.len() - 4), lowest, y, mask),
            _ => fours::<A, 1, 2>(x, (start, width), column, lowest, y, mask),
        };
    }
}

/// `N` windows from `column` on; returns where they end.
#[inline(always)]
fn fours<A: Element + Float, const N: usize, const TWO_N: usize>(
    x: &[A],
    (start, width): (usize, usize),
    column: usize,
    lowest: A,
    y: &mut [A],
    mask: &mut [i32],
) -> usize {
    let (mut best, mut place) = ([lowest; N], [-1; N]);
    for row in 0..2 {
        let start = start + row * width + 2 * column;
        let x: &[A; TWO_N] = x[start..].first_chunk().expect("windows lie in the plane");
        for tap in 0..2 {
            for j in 0..N {
                let better = -i32::from(x[2 * j + tap] > best[j]);
                let here = (start + 2 * j + tap) as i32;
                best[j] = if x[2 * j + tap] > best[j] { x[2 * j + tap] } else { best[j] };
                place[j] = (place[j] & !better) | (here & better);
            }
        }
    }
    y[column..][..N].copy_from_slice(&best);
    mask[column..][..N].copy_from_slice(&place);
    column + N
}

/// What a window has found that found nothing.
const NOTHING: i32 = i32::MIN;

/// The greatest of each window of rearranged plane `x`, and its place.
#[inline(always)]
fn greatest<A: Element + Float>(
    op: &Pool2d,
    tiling: &PolyphasePlane,
    x: &[A],
    taps: &[Tap],
    lowest: A,
    y: &mut [A],
    mask: &mut [i32],
) {
    let (width, [_, right]) = (op.output()[1], op.stride);
    let down = op.stride[0] * op.input[1];
    let rows = y.chunks_exact_mut(width).zip(mask.chunks_exact_mut(width));
    for (row, (y, mask)) in rows.enumerate() {
        let first = (row * tiling.pitch(), row * down, right);
        let mut column = 0;
        while column < width {
            // Where the rest is too short, the last are computed a second time with it.
            column = match width {
                16.. => side_by_side::<A, 16>(x, taps, lowest, first, column, y, mask),
                8.. => side_by_side::<A, 8>(x, taps, lowest, first, column, y, mask),
                4.. => side_by_side::<A, 4>(x, taps, lowest, first, column, y, mask),
                _ => side_by_side::<A, 1>(x, taps, lowest, first, column, y, mask),
            };
        }
    }
}

/// `N` windows of a row, from `column` on or a little before; returns where they end. The row's
/// first window has a number, it finds place 0 at `place`, and the next as much further `right`.
#[inline(always)]
fn side_by_side<A: Element + Float, const N: usize>(
    x: &[A],
    taps: &[Tap],
    lowest: A,
    (number, place, right): (usize, usize, usize),
    column: usize,
    y: &mut [A],
    mask: &mut [i32],
) -> usize {
    let column = column.min(y.len() - N);
    let (mut best, mut found) = ([lowest; N], [NOTHING; N]);
    for tap in taps {
        let x: &[A; N] = x[tap.offset + number + column..].first_chunk().expect("a whole window");
        for j in 0..N {
            // A mask, since a choice of places becomes a branch.
            let better = -i32::from(x[j] > best[j]);
            best[j] = if x[j] > best[j] { x[j] } else { best[j] };
            found[j] = (found[j] & !better) | (tap.place & better);
        }
    }
    // In 32 bits: vectors of longer products are slow.
    let (first, right) = ((place + column * right) as i32, right as i32);
    for (j, found) in found.iter_mut().enumerate() {
        // All bits set are −1.
        let nothing = -i32::from(*found == NOTHING);
        let here = first.wrapping_add((j as i32).wrapping_mul(right));
        *found = found.wrapping_add(here) | nothing;
    }
    y[column..][..N].copy_from_slice(&best);
    mask[column..][..N].copy_from_slice(&found);
    column + N
}

/// Adds `dy` into a zeroed `dx` at `mask`; tells where the first mask outside is.
fn scatter<A: Float>(dy: &[A], mask: &[i32], dx: &mut [A]) -> Option<usize> {
    dx.fill(A::zero());
    let mut bad = None;
    for (j, (&dy, &place)) in dy.iter().zip(mask).enumerate() {
        match dx.get_mut(place as usize) {
            Some(dx) => *dx = *dx + dy,
            None if place == -1 => {}
            None => bad = bad.or(Some(j)),
        }
    }
    bad
}

fn lowest<T: Element>() -> T::Acc {
    T::acc(match T::DTYPE {
        DType::F16 => f16::MIN.to_f64(),
        DType::Bf16 => bf16::MIN.to_f64(),
        DType::F32 | DType::F64 => f64::from(f32::MIN),
    })
}
