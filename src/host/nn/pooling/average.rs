//! Average pooling.

use crate::{
    element::Element,
    error::Result,
    host::{
        cache::scratch::with_scratch,
        nn::{
            polyphase::{LANES, PolyphasePlane, Tap},
            pooling::planes::{plane_lens, planes_per_task, window_ranges},
        },
        reduction::tree::sum_reducer,
        simd::{
            accumulator::{accumulator_len, narrow, overwrite_widened, widened},
            vectorized,
        },
        threads::Workers,
    },
    op::Pool2d,
};
use num_traits::{Float, Zero};
use std::convert::identity;

/// Writes the mean of each window to `y`.
///
/// As in Caffe, padding within a window counts as zeros, and elements of a window beyond the padded
/// input do not count. A window that starts at or beyond the end of the padded input has no
/// elements; its mean is NaN if the divisor is 0, else 0.
///
/// # Errors
/// Returns [`Error::Length`](crate::Error::Length), which names the operand, if an operand has the
/// wrong length.
pub(crate) fn average_pool<T: Element>(
    workers: &Workers,
    op: &Pool2d,
    x: &[T],
    y: &mut [T],
) -> Result<()> {
    op.check("average_pool", ("x", x.len()), ("y", y.len()))?;
    if y.is_empty() {
        return Ok(());
    }
    if !PolyphasePlane::is_profitable(op) {
        forward_by_window(workers, op, x, y);
        return Ok(());
    }
    let (in_len, out_len) = plane_lens(op);
    let layout = PolyphasePlane::new(op);
    let (taps, divisors) = (layout.taps(), divisors::<T>(op, &layout));
    let planes_per_task = planes_per_task(workers, op);
    workers.for_each_chunk(y, planes_per_task * out_len, |task, y| {
        with_buffers::<T>(op, &layout, |wide_buffer, phases, means| {
            phases.fill(T::Acc::zero());
            for (p, y) in (task * planes_per_task..).zip(y.chunks_exact_mut(out_len)) {
                let x = widened(&x[p * in_len..][..in_len], wide_buffer);
                vectorized(
                    #[inline(always)]
                    |_| layout.split_phases(x, phases),
                );
                average(phases, &taps, &divisors, means);
                for (slot, row) in layout.rows() {
                    narrow(&means[slot..][..row.len()], &mut y[row]);
                }
            }
        });
    });
    Ok(())
}

/// Sets each element of `dx` to the sum of `dy / divisor` over the windows that contain the
/// element. Each window has the same divisor as in [`average_pool`]. The previous contents of `dx`
/// are ignored.
///
/// # Errors
/// Returns [`Error::Length`](crate::Error::Length), which names the operand, if an operand has the
/// wrong length.
pub(crate) fn average_pool_backward<T: Element>(
    workers: &Workers,
    op: &Pool2d,
    dy: &[T],
    dx: &mut [T],
) -> Result<()> {
    op.check("average_pool_backward", ("dx", dx.len()), ("dy", dy.len()))?;
    if dx.is_empty() {
        return Ok(());
    }
    if !PolyphasePlane::is_profitable(op) {
        backward_by_window(workers, op, dy, dx);
        return Ok(());
    }
    let (in_len, out_len) = plane_lens(op);
    let layout = PolyphasePlane::new(op);
    let (taps, divisors) = (layout.taps(), divisors::<T>(op, &layout));
    let planes_per_task = planes_per_task(workers, op);
    workers.for_each_chunk(dx, planes_per_task * in_len, |task, dx| {
        with_buffers::<T>(op, &layout, |wide_buffer, phases, shares| {
            shares.fill(T::Acc::zero());
            for (p, dx) in (task * planes_per_task..).zip(dx.chunks_exact_mut(in_len)) {
                for (slot, row) in layout.rows() {
                    let dy = &dy[p * out_len..][row];
                    let row = shares[slot..].iter_mut().zip(&divisors[slot..]).zip(dy);
                    row.for_each(|((share, &divisor), dy)| *share = dy.to_acc() / divisor);
                }
                phases.fill(T::Acc::zero());
                add_to_taps(shares, &taps, phases);
                overwrite_widened(dx, wide_buffer, |dx| {
                    dx.fill(T::Acc::zero());
                    vectorized(
                        #[inline(always)]
                        |_| layout.merge_phases(phases, dx),
                    );
                });
            }
        });
    });
    Ok(())
}

/// Computes [`average_pool`] one window at a time.
fn forward_by_window<T: Element>(workers: &Workers, op: &Pool2d, x: &[T], y: &mut [T]) {
    let (in_len, out_len) = plane_lens(op);
    let task_len = planes_per_task(workers, op) * out_len;
    workers.for_each_chunk(y, task_len, |task, y| {
        for (j, y) in (task * task_len..).zip(y) {
            let (x, window) = (&x[j / out_len * in_len..][..in_len], j % out_len);
            let sums = window_ranges(op, window).map(|i| sum_reducer(identity).reduce_slice(&x[i]));
            let sum = sums.fold(T::Acc::zero(), |sum, part| sum + part);
            *y = T::from_acc(sum / divisor(op, window));
        }
    });
}

/// Computes [`average_pool_backward`] one window at a time.
fn backward_by_window<T: Element>(workers: &Workers, op: &Pool2d, dy: &[T], dx: &mut [T]) {
    let ((in_len, out_len), planes_per_task) = (plane_lens(op), planes_per_task(workers, op));
    workers.for_each_chunk(dx, planes_per_task * in_len, |task, dx| {
        with_scratch(accumulator_len::<T>(in_len), |wide_buffer| {
            for (p, dx) in (task * planes_per_task..).zip(dx.chunks_exact_mut(in_len)) {
                overwrite_widened(dx, wide_buffer, |dx| {
                    dx.fill(T::Acc::zero());
                    for (window, dy) in dy[p * out_len..][..out_len].iter().enumerate() {
                        let share = dy.to_acc() / divisor(op, window);
                        for range in window_ranges(op, window) {
                            dx[range].iter_mut().for_each(|dx| *dx = *dx + share);
                        }
                    }
                });
            }
        });
    });
}

/// Calls `body` with three buffers: one for a widened input plane (empty unless `T` has 16 bits),
/// one for a polyphase plane, and one for a value per window.
fn with_buffers<T: Element>(
    op: &Pool2d,
    layout: &PolyphasePlane,
    body: impl FnOnce(&mut [T::Acc], &mut [T::Acc], &mut [T::Acc]),
) {
    let wide_len = accumulator_len::<T>(plane_lens(op).0);
    with_scratch(wide_len + layout.len() + layout.window_slots(), |scratch: &mut [T::Acc]| {
        let (wide_buffer, scratch) = scratch.split_at_mut(wide_len);
        let (phases, values) = scratch.split_at_mut(layout.len());
        body(wide_buffer, phases, values);
    });
}

/// Returns the divisor of each window's mean, in the order of window slots.
fn divisors<T: Element>(op: &Pool2d, layout: &PolyphasePlane) -> Vec<T::Acc> {
    layout.per_window(T::acc(1.0), |row, column| divisor(op, row * op.output()[1] + column))
}

/// Returns the divisor of a window's mean: the number of elements of the window inside the padded
/// input. If the window starts at or beyond the end of the padded input, the divisor may be zero or
/// negative.
fn divisor<A: Element>(op: &Pool2d, window: usize) -> A {
    let extent = |axis: usize, p: usize| {
        let start = p * op.stride[axis];
        let end = start.saturating_add(op.kernel[axis]).min(op.input[axis] + 2 * op.pad[axis]);
        end as f64 - start as f64
    };
    let width = op.output()[1];
    A::from_f64(extent(0, window / width) * extent(1, window % width))
}

/// `y ← Σ x / divisor` for each window of the polyphase plane `x`.
fn average<A: Element + Float>(x: &[A], taps: &[Tap], divisors: &[A], y: &mut [A]) {
    vectorized(
        #[inline(always)]
        |_| {
            let (y, divisors) = (y.as_chunks_mut::<LANES>().0, divisors.as_chunks::<LANES>().0);
            for (i, (y, divisors)) in y.iter_mut().zip(divisors).enumerate() {
                let mut sum = [A::zero(); LANES];
                for tap in taps {
                    let x: &[A; LANES] = x[tap.offset + i * LANES..]
                        .first_chunk()
                        .expect("the polyphase layout ends with LANES elements of padding");
                    for j in 0..LANES {
                        sum[j] = sum[j] + x[j];
                    }
                }
                for j in 0..LANES {
                    y[j] = sum[j] / divisors[j];
                }
            }
        },
    );
}

/// For each window in order, adds the window's element of `y` to all elements of the window in the
/// polyphase plane `x`.
fn add_to_taps<A: Element + Float>(y: &[A], taps: &[Tap], x: &mut [A]) {
    vectorized(
        #[inline(always)]
        |_| {
            // Loop over taps in reverse order to add terms in the order of windows: an earlier
            // window reads an element of `x` with a later tap.
            for tap in taps.iter().rev() {
                let x = &mut x[tap.offset..][..y.len()];
                x.iter_mut().zip(y).for_each(|(x, &y)| *x = *x + y);
            }
        },
    );
}
