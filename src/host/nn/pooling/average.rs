//! Means of windows.

use crate::{
    element::Element,
    error::Result,
    host::{
        Workers,
        cache::scratch::with_scratch,
        nn::{
            polyphase::{LANES, PolyphasePlane, Tap},
            pooling::planes::{lanes, planes, planes_per_task, runs, with_rooms},
        },
        reduction::tree::{reduce_slice, sum_reducer},
        simd::{
            accumulator::{is_wide, narrow, overwrite_widened, widened},
            vectorized,
        },
    },
    op::Pool2d,
};
use num_traits::{Float, Zero};

/// `y ← the mean of each window`.
///
/// As in Caffe, what a window covers of the padding counts as zeros; what hangs over the padded
/// input does not count. A window that starts past the padded input has a mean of NaN or of zero.
///
/// # Errors
/// [`Error::Length`](crate::Error::Length) names the operand.
pub fn average_pool<T: Element>(
    workers: &Workers,
    op: &Pool2d,
    x: &[T],
    y: &mut [T],
) -> Result<()> {
    op.check("average_pool", ("x", x.len()), ("y", y.len()))?;
    if y.is_empty() {
        return Ok(());
    }
    let (from, to) = planes(op);
    if !PolyphasePlane::is_profitable(op) {
        return mean_one_by_one(workers, op, x, y);
    }
    let tiling = PolyphasePlane::new(op);
    let (taps, sizes) = (tiling.taps(), sizes::<T>(op, &tiling));
    let per_task = planes_per_task(op);
    workers.for_each_chunk(y, per_task * to, |i, y| {
        with_rooms::<T>(op, &tiling, |room_x, tiled, values| {
            tiled.fill(T::Acc::zero());
            for (p, y) in (i * per_task..).zip(y.chunks_exact_mut(to)) {
                let x = widened(&x[p * from..][..from], room_x);
                vectorized(
                    #[inline(always)]
                    || tiling.to_phases(x, tiled),
                );
                mean(tiled, &taps, &sizes, values);
                for (window, row) in tiling.rows() {
                    narrow(&values[window..][..row.len()], &mut y[row]);
                }
            }
        });
    });
    Ok(())
}

/// `dx ← dy` shared out evenly over its window, by the divisor of [`average_pool`].
///
/// `dx` is overwritten.
///
/// # Errors
/// [`Error::Length`](crate::Error::Length) names the operand.
pub fn average_pool_backward<T: Element>(
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
        return share_one_by_one(workers, op, dy, dx);
    }
    let (from, to) = planes(op);
    let tiling = PolyphasePlane::new(op);
    let (taps, sizes) = (tiling.taps(), sizes::<T>(op, &tiling));
    let per_task = planes_per_task(op);
    workers.for_each_chunk(dx, per_task * from, |i, dx| {
        with_rooms::<T>(op, &tiling, |room_dx, tiled, values| {
            values.fill(T::Acc::zero());
            for (p, dx) in (i * per_task..).zip(dx.chunks_exact_mut(from)) {
                for (window, row) in tiling.rows() {
                    let dy = &dy[p * to..][row];
                    let shares = values[window..].iter_mut().zip(&sizes[window..]).zip(dy);
                    shares.for_each(|((share, &size), dy)| *share = dy.to_acc() / size);
                }
                tiled.fill(T::Acc::zero());
                spread_out(values, &taps, tiled);
                overwrite_widened(dx, room_dx, |dx| {
                    dx.fill(T::Acc::zero());
                    vectorized(
                        #[inline(always)]
                        || tiling.from_phases(tiled, dx),
                    );
                });
            }
        });
    });
    Ok(())
}

fn mean_one_by_one<T: Element>(workers: &Workers, op: &Pool2d, x: &[T], y: &mut [T]) -> Result<()> {
    let ((from, to), per_task) = (planes(op), planes_per_task(op));
    workers.for_each_chunk(y, per_task * to, |i, y| {
        for (j, y) in (i * per_task * to..).zip(y) {
            let x = &x[j / to * from..][..from];
            let sums = runs(op, j % to).map(|run| reduce_slice(&x[run], sum_reducer(|x| x)));
            let sum = sums.fold(T::Acc::zero(), |sum, part| sum + part);
            *y = T::from_acc(sum / size(op, j % to));
        }
    });
    Ok(())
}

fn share_one_by_one<T: Element>(
    workers: &Workers,
    op: &Pool2d,
    dy: &[T],
    dx: &mut [T],
) -> Result<()> {
    let ((from, to), per_task) = (planes(op), planes_per_task(op));
    workers.for_each_chunk(dx, per_task * from, |i, dx| {
        with_scratch(if is_wide::<T>() { 0 } else { from }, |room| {
            for (p, dx) in (i * per_task..).zip(dx.chunks_exact_mut(from)) {
                overwrite_widened(dx, room, |dx| {
                    dx.fill(T::Acc::zero());
                    for (window, dy) in dy[p * to..][..to].iter().enumerate() {
                        let share = dy.to_acc() / size(op, window);
                        for run in runs(op, window) {
                            dx[run].iter_mut().for_each(|dx| *dx = *dx + share);
                        }
                    }
                });
            }
        });
    });
    Ok(())
}

/// The divisor of each window's mean.
fn sizes<T: Element>(op: &Pool2d, tiling: &PolyphasePlane) -> Vec<T::Acc> {
    tiling.per_window(T::acc(1.0), |row, column| size(op, row * op.output()[1] + column))
}

/// Elements of a window that count towards its mean; not positive past the edge.
fn size<A: Element>(op: &Pool2d, window: usize) -> A {
    let extent = |axis: usize, p: usize| {
        let start = p * op.stride[axis];
        let end = start.saturating_add(op.kernel[axis]).min(op.input[axis] + 2 * op.pad[axis]);
        end as f64 - start as f64
    };
    let width = op.output()[1];
    A::from_f64(extent(0, window / width) * extent(1, window % width))
}

/// The mean of each window of rearranged plane `x`.
fn mean<A: Element + Float>(x: &[A], taps: &[Tap], sizes: &[A], y: &mut [A]) {
    vectorized(
        #[inline(always)]
        || {
            let ((y, _), (sizes, _)) = (y.as_chunks_mut::<LANES>(), sizes.as_chunks::<LANES>());
            for (i, (y, sizes)) in y.iter_mut().zip(sizes).enumerate() {
                let mut sum = [A::zero(); LANES];
                for tap in taps {
                    let x = lanes(x, tap.offset + i * LANES);
                    for j in 0..LANES {
                        sum[j] = sum[j] + x[j];
                    }
                }
                for j in 0..LANES {
                    y[j] = sum[j] / sizes[j];
                }
            }
        },
    );
}

/// Adds each window's `y` to what its taps cover of rearranged plane `x`, in the order of windows.
fn spread_out<A: Element + Float>(y: &[A], taps: &[Tap], x: &mut [A]) {
    vectorized(
        #[inline(always)]
        || {
            // Of what covers an element, the last tap is the first window's.
            for tap in taps.iter().rev() {
                let x = &mut x[tap.offset..][..y.len()];
                x.iter_mut().zip(y).for_each(|(x, &y)| *x = *x + y);
            }
        },
    );
}
