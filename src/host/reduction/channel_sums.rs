//! Sums, over all axes but one, of terms that are computed from two operands.
//!
//! Terms are added in the accumulator type. After at most [`FLUSH_INTERVAL`] additions, each
//! accumulator is added to a sum in `f64`, so that rounding errors stay small.

use crate::{
    element::Element,
    host::{
        reduction::tree::{GRAIN, LONG_RUN, reduce_lanes},
        simd::accumulator::{CHUNK, accumulator_buffer, widened},
    },
    op::Axis,
};
use num_traits::Zero;

/// Number of additions to one accumulator before the accumulator is added to a sum in `f64`.
pub(crate) const FLUSH_INTERVAL: usize = 64;

/// Number of accumulators that sum a long contiguous run.
const LANES: usize = 32;

/// Returns the number of axis positions whose sums one task computes.
pub(crate) fn positions_per_task(axis: &Axis) -> usize {
    // If contiguous runs are short, the column sums for all positions of a task must fit into one
    // accumulator buffer.
    let max = if axis.inner < LONG_RUN { CHUNK / LONG_RUN } else { usize::MAX };
    (GRAIN / axis.reduced_count().max(1)).clamp(1, max)
}

/// `sums[j] ← Σ term(a[o,e,i], b[o,e,i], c[e])` over all `o` and `i`, for `e = start + j`. The
/// number of positions `e` is at most [`positions_per_task`].
#[inline(always)]
pub(crate) fn sum_per_channel<T: Element, const N: usize>(
    axis: &Axis,
    (a, b): (&[T], &[T]),
    c: &[T::Acc],
    start: usize,
    sums: &mut [[f64; N]],
    term: impl Fn(T::Acc, T::Acc, T::Acc) -> [T::Acc; N] + Copy,
) {
    if axis.inner < LONG_RUN {
        sum_columns(axis, (a, b), c, start, sums, term);
    } else {
        for (e, sums) in (start..).zip(sums) {
            *sums = sum_runs(axis, (a, b), c[e], e, term);
        }
    }
}

/// Returns the sums of terms at position `e` of the axis; used for operands with long contiguous
/// runs.
#[inline(always)]
fn sum_runs<T: Element, const N: usize>(
    axis: &Axis,
    (a, b): (&[T], &[T]),
    c: T::Acc,
    e: usize,
    term: impl Fn(T::Acc, T::Acc, T::Acc) -> [T::Acc; N] + Copy,
) -> [f64; N] {
    let (mut buffer_a, mut buffer_b) = (accumulator_buffer(), accumulator_buffer());
    let mut sums = [0.0; N];
    for o in 0..axis.outer {
        let run = (o * axis.extent + e) * axis.inner..(o * axis.extent + e + 1) * axis.inner;
        for (a, b) in a[run.clone()].chunks(CHUNK).zip(b[run].chunks(CHUNK)) {
            let (a, b) = (widened(a, &mut buffer_a), widened(b, &mut buffer_b));
            let mut lanes = [[T::Acc::zero(); LANES]; N];
            let ((a, rest_a), (b, rest_b)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
            for (a, b) in a.iter().zip(b) {
                for i in 0..LANES {
                    let terms = term(a[i], b[i], c);
                    for n in 0..N {
                        lanes[n][i] = lanes[n][i] + terms[n];
                    }
                }
            }
            for (i, (&a, &b)) in rest_a.iter().zip(rest_b).enumerate() {
                let terms = term(a, b, c);
                for n in 0..N {
                    lanes[n][i] = lanes[n][i] + terms[n];
                }
            }
            for n in 0..N {
                sums[n] += reduce_lanes(lanes[n], |a, b| a + b).to_f64();
            }
        }
    }
    sums
}

/// Computes the sums of terms at the axis positions from `start` on; used for operands with short
/// contiguous runs. The runs of one outer index form a row, whose terms are added to a row of
/// accumulators.
#[inline(always)]
fn sum_columns<T: Element, const N: usize>(
    axis: &Axis,
    (a, b): (&[T], &[T]),
    c: &[T::Acc],
    start: usize,
    sums: &mut [[f64; N]],
    term: impl Fn(T::Acc, T::Acc, T::Acc) -> [T::Acc; N] + Copy,
) {
    let (inner, len) = (axis.inner, sums.len() * axis.inner);
    sums.fill([0.0; N]);
    if inner == 0 {
        return;
    }
    let (mut buffer_a, mut buffer_b, mut repeated_c) =
        (accumulator_buffer(), accumulator_buffer(), accumulator_buffer::<T::Acc>());
    for (i, repeated) in repeated_c[..len].iter_mut().enumerate() {
        *repeated = c[start + i / inner];
    }
    let mut columns = [accumulator_buffer::<T::Acc>(); N];
    for block in (0..axis.outer).step_by(FLUSH_INTERVAL) {
        columns.iter_mut().for_each(|column| column[..len].fill(T::Acc::zero()));
        for o in block..axis.outer.min(block + FLUSH_INTERVAL) {
            let row = (o * axis.extent + start) * inner;
            let a = widened(&a[row..][..len], &mut buffer_a);
            let b = widened(&b[row..][..len], &mut buffer_b);
            for i in 0..len {
                let terms = term(a[i], b[i], repeated_c[i]);
                for n in 0..N {
                    columns[n][i] = columns[n][i] + terms[n];
                }
            }
        }
        for (n, column) in columns.iter().enumerate() {
            for (i, value) in column[..len].iter().enumerate() {
                sums[i / inner][n] += value.to_f64();
            }
        }
    }
}
