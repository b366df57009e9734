//! Max pooling, which also stores the index of each maximum in a mask.

use crate::{
    element::Element,
    error::{Error, Result, check_len},
    host::{
        cache::scratch::with_scratch,
        nn::{
            polyphase::{PolyphasePlane, Tap},
            pooling::planes::{check_mask_range, plane_lens, planes_per_task, window_ranges},
        },
        reduction::tree::reducer,
        simd::{
            accumulator::{accumulator_len, overwrite_widened, widened},
            vectorized,
        },
        threads::Workers,
    },
    op::Pool2d,
};
use num_traits::Float;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Writes the maximum of each window to `y`, and the index `row · width + column` of the maximum in
/// the input plane to `mask`.
///
/// The initial maximum is the lowest finite value of `T`, or of `f32` if `T` is `f64`. Only a
/// greater element replaces the maximum. Because only a greater element replaces the maximum, the
/// maximum is never NaN, and is the first of several equal elements in row-major order. A window
/// without an element above the lowest finite value, such as a window within the padding, yields
/// the lowest finite value and a mask of −1.
///
/// # Errors
/// Returns [`Error::Length`], which names the operand, if an operand has the wrong length. Returns
/// [`Error::InvalidInput`] for an input plane with too many elements for the indices in `mask`.
#[doc(alias = "PoolForward")]
pub(crate) fn max_pool<T: Element>(
    workers: &Workers,
    op: &Pool2d,
    x: &[T],
    y: &mut [T],
    mask: &mut [i32],
) -> Result<()> {
    op.check("max_pool", ("x", x.len()), ("y", y.len()))?;
    check_len("max_pool", "mask", op.output_len(), mask.len())?;
    check_mask_range("max_pool", op)?;
    if y.is_empty() {
        return Ok(());
    }
    let lowest_value = Pool2d::initial_max::<T>();
    if op.kernel == [2, 2]
        && op.stride == [2, 2]
        && (0..2).all(|i| 2 * op.output()[i] <= op.input[i])
    {
        forward_by_plane(
            workers,
            op,
            0,
            x,
            y,
            mask,
            #[inline(always)]
            |x, _, y, mask| max_2x2(op, x, lowest_value, y, mask),
        );
    } else if PolyphasePlane::is_profitable(op) {
        let layout = PolyphasePlane::new(op);
        let taps = layout.taps();
        forward_by_plane(
            workers,
            op,
            layout.len(),
            x,
            y,
            mask,
            #[inline(always)]
            |x, phases, y, mask| {
                layout.split_phases(x, phases);
                max_by_taps(op, &layout, phases, &taps, lowest_value, y, mask);
            },
        );
    } else {
        forward_by_window(workers, op, x, y, mask);
    }
    Ok(())
}

/// `dx[mask] ← Σ dy` over all windows with the same `mask`. Elements of `dx` whose index is not in
/// `mask` become 0.
///
/// The gradient of a window whose mask is −1, which has no maximum, is not added to `dx`. After an
/// error, the contents of `dx` are unspecified.
///
/// # Errors
/// Returns [`Error::Length`], which names the operand, if an operand has the wrong length. Returns
/// [`Error::InvalidInput`], which names the index, for an index in `mask` outside the input plane.
#[doc(alias = "PoolBackward")]
pub(crate) fn max_pool_backward<T: Element>(
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
    let (in_len, out_len) = plane_lens(op);
    let (wide_dx_len, wide_dy_len) = (accumulator_len::<T>(in_len), accumulator_len::<T>(out_len));
    let first_invalid = AtomicUsize::new(usize::MAX);
    let planes_per_task = planes_per_task(workers, op);
    workers.for_each_chunk(dx, planes_per_task * in_len, |task, dx| {
        with_scratch(wide_dx_len + wide_dy_len, |scratch: &mut [T::Acc]| {
            let (wide_dx, wide_dy) = scratch.split_at_mut(wide_dx_len);
            for (p, dx) in (task * planes_per_task..).zip(dx.chunks_exact_mut(in_len)) {
                let dy = widened(&dy[p * out_len..][..out_len], wide_dy);
                let mask = &mask[p * out_len..][..out_len];
                overwrite_widened(dx, wide_dx, |dx| {
                    if let Some(invalid) = scatter(dy, mask, dx) {
                        first_invalid.fetch_min(p * out_len + invalid, Relaxed);
                    }
                });
            }
        });
    });
    match mask.get(first_invalid.into_inner()) {
        None => Ok(()),
        Some(invalid) => {
            let reason = format!("mask {invalid} is outside an input plane of {in_len} elements");
            Err(Error::invalid_input("max_pool_backward", reason))
        }
    }
}

/// Returns `b` if `b` is greater than `a`, else `a`.
#[inline(always)]
fn greater<A: Float>(a: A, b: A) -> A {
    if b > a { b } else { a }
}

/// Computes [`max_pool`] one window at a time.
fn forward_by_window<T: Element>(
    workers: &Workers,
    op: &Pool2d,
    x: &[T],
    y: &mut [T],
    mask: &mut [i32],
) {
    let ((in_len, out_len), lowest_value) = (plane_lens(op), Pool2d::initial_max::<T>());
    let task_len = planes_per_task(workers, op) * out_len;
    let max_reducer = reducer(lowest_value, greater);
    workers.for_each_chunk_pair((y, task_len), (mask, task_len), |task, y, mask| {
        for (j, (y, mask)) in (task * task_len..).zip(y.iter_mut().zip(mask)) {
            let x = &x[j / out_len * in_len..][..in_len];
            let (mut max, mut index) = (lowest_value, None);
            for range in window_ranges(op, j % out_len) {
                let range_max = max_reducer.reduce_slice(&x[range.clone()]);
                if range_max > max {
                    max = range_max;
                    index = range.clone().find(|&i| x[i].to_acc() == range_max);
                }
            }
            // Store the first element that equals `max`, because `max` may be a zero of the
            // opposite sign.
            *y = index.map_or(T::from_acc(lowest_value), |index| x[index]);
            *mask = index.map_or(-1, |index| index as i32);
        }
    });
}

/// Computes [`max_pool`] one plane at a time. For each plane, calls `kernel(x, phases, y, mask)`
/// with the plane's operands in the accumulator type. `phases` is a buffer of `phases_len`
/// elements, initialized with the lowest finite value.
fn forward_by_plane<T: Element>(
    workers: &Workers,
    op: &Pool2d,
    phases_len: usize,
    x: &[T],
    y: &mut [T],
    mask: &mut [i32],
    kernel: impl Fn(&[T::Acc], &mut [T::Acc], &mut [T::Acc], &mut [i32]) + Send + Sync,
) {
    let ((in_len, out_len), planes_per_task) = (plane_lens(op), planes_per_task(workers, op));
    let (wide_x_len, wide_y_len) = (accumulator_len::<T>(in_len), accumulator_len::<T>(out_len));
    let task_len = planes_per_task * out_len;
    workers.for_each_chunk_pair((y, task_len), (mask, task_len), |task, y, mask| {
        with_scratch(wide_x_len + wide_y_len + phases_len, |scratch: &mut [T::Acc]| {
            let (wide_x, scratch) = scratch.split_at_mut(wide_x_len);
            let (wide_y, phases) = scratch.split_at_mut(wide_y_len);
            phases.fill(Pool2d::initial_max::<T>());
            let planes = y.chunks_exact_mut(out_len).zip(mask.chunks_exact_mut(out_len));
            for (p, (y, mask)) in (task * planes_per_task..).zip(planes) {
                let x = widened(&x[p * in_len..][..in_len], wide_x);
                overwrite_widened(y, wide_y, |y| {
                    vectorized(
                        #[inline(always)]
                        |_| kernel(x, phases, y, mask),
                    );
                });
            }
        });
    });
}

/// Computes the maxima of a plane of non-overlapping 2×2 windows.
#[inline(always)]
fn max_2x2<A: Element + Float>(
    op: &Pool2d,
    x: &[A],
    lowest_value: A,
    y: &mut [A],
    mask: &mut [i32],
) {
    let (width, out_width) = (op.input[1], op.output()[1]);
    let rows = y.chunks_exact_mut(out_width).zip(mask.chunks_exact_mut(out_width));
    for (row, (y, mask)) in rows.enumerate() {
        let input = (2 * row * width, width);
        let mut column = 0;
        while column < out_width {
            // If the number of windows in a row is not a multiple of the block size, the last block
            // overlaps the previous block.
            column = match out_width {
                8.. => windows_2x2::<A, 8, 16>(
                    x,
                    input,
                    column.min(out_width - 8),
                    lowest_value,
                    y,
                    mask,
                ),
                4.. => windows_2x2::<A, 4, 8>(
                    x,
                    input,
                    column.min(out_width - 4),
                    lowest_value,
                    y,
                    mask,
                ),
                _ => windows_2x2::<A, 1, 2>(x, input, column, lowest_value, y, mask),
            };
        }
    }
}

/// Computes the maxima of `N` neighbouring 2×2 windows in a row of windows, from `column` on.
/// Returns the column of the next window.
#[inline(always)]
fn windows_2x2<A: Element + Float, const N: usize, const TWO_N: usize>(
    x: &[A],
    (row_start, width): (usize, usize),
    column: usize,
    lowest_value: A,
    y: &mut [A],
    mask: &mut [i32],
) -> usize {
    let (mut max, mut index) = ([lowest_value; N], [-1; N]);
    for row in 0..2 {
        let start = row_start + row * width + 2 * column;
        let x: &[A; TWO_N] = x[start..].first_chunk().expect("2x2 windows lie inside the plane");
        for tap in 0..2 {
            for j in 0..N {
                let greater_mask = -i32::from(x[2 * j + tap] > max[j]);
                let tap_index = (start + 2 * j + tap) as i32;
                max[j] = if x[2 * j + tap] > max[j] { x[2 * j + tap] } else { max[j] };
                index[j] = (index[j] & !greater_mask) | (tap_index & greater_mask);
            }
        }
    }
    y[column..][..N].copy_from_slice(&max);
    mask[column..][..N].copy_from_slice(&index);
    column + N
}

/// Index that marks a window in which no element is greater than the lowest finite value.
const NOT_FOUND: i32 = i32::MIN;

/// Computes the maxima of all windows of the polyphase plane `x`.
#[inline(always)]
fn max_by_taps<A: Element + Float>(
    op: &Pool2d,
    layout: &PolyphasePlane,
    x: &[A],
    taps: &[Tap],
    lowest_value: A,
    y: &mut [A],
    mask: &mut [i32],
) {
    let (width, [_, column_step]) = (op.output()[1], op.stride);
    let row_step = op.stride[0] * op.input[1];
    let rows = y.chunks_exact_mut(width).zip(mask.chunks_exact_mut(width));
    for (row, (y, mask)) in rows.enumerate() {
        let first = (row * layout.slot_row_stride(), row * row_step, column_step);
        let mut column = 0;
        while column < width {
            column = match width {
                16.. => windows_by_taps::<A, 16>(x, taps, lowest_value, first, column, y, mask),
                8.. => windows_by_taps::<A, 8>(x, taps, lowest_value, first, column, y, mask),
                4.. => windows_by_taps::<A, 4>(x, taps, lowest_value, first, column, y, mask),
                _ => windows_by_taps::<A, 1>(x, taps, lowest_value, first, column, y, mask),
            };
        }
    }
}

/// Computes the maxima of `N` neighbouring pooling windows in a row of windows. Returns the column
/// of the next window.
///
/// The block of `N` windows starts at `column`, or earlier if the block would exceed the row. The
/// first window of the row has the slot `slot`, and that window's first element has the index
/// `row_index` in the plane. The index of a window's first element grows by `column_step` from one
/// window to the next.
#[inline(always)]
fn windows_by_taps<A: Element + Float, const N: usize>(
    x: &[A],
    taps: &[Tap],
    lowest_value: A,
    (slot, row_index, column_step): (usize, usize, usize),
    column: usize,
    y: &mut [A],
    mask: &mut [i32],
) -> usize {
    let column = column.min(y.len() - N);
    let (mut max, mut index) = ([lowest_value; N], [NOT_FOUND; N]);
    for tap in taps {
        let x: &[A; N] = x[tap.offset + slot + column..].first_chunk().expect("N windows");
        for j in 0..N {
            // Select the index with a bit mask, because the compiler would turn an `if` on indices
            // into a branch.
            let greater_mask = -i32::from(x[j] > max[j]);
            max[j] = if x[j] > max[j] { x[j] } else { max[j] };
            index[j] = (index[j] & !greater_mask) | (tap.index & greater_mask);
        }
    }
    // Multiply indices in 32 bits, because 64-bit vector multiplication is slow.
    let (first, step) = ((row_index + column * column_step) as i32, column_step as i32);
    for (j, index) in index.iter_mut().enumerate() {
        // If no element exceeds the lowest finite value, all bits of `not_found` are set, so that
        // the mask is −1.
        let not_found = -i32::from(*index == NOT_FOUND);
        let window_index = first.wrapping_add((j as i32).wrapping_mul(step));
        *index = index.wrapping_add(window_index) | not_found;
    }
    y[column..][..N].copy_from_slice(&max);
    mask[column..][..N].copy_from_slice(&index);
    column + N
}

/// Sets `dx` to zero and adds `dy` to `dx` at the indices in `mask`. Returns the position of the
/// first invalid index in `mask`, if any.
fn scatter<A: Float>(dy: &[A], mask: &[i32], dx: &mut [A]) -> Option<usize> {
    dx.fill(A::zero());
    let mut first_invalid = None;
    for (j, (&dy, &index)) in dy.iter().zip(mask).enumerate() {
        match dx.get_mut(index as usize) {
            Some(dx) => *dx = *dx + dy,
            None if index == -1 => {}
            None => first_invalid = first_invalid.or(Some(j)),
        }
    }
    first_invalid
}
