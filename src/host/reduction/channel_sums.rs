//! Sums, over all but an axis, of terms of two operands.
//!
//! Terms go through a fixed number of lanes, or columns, into accumulators that are emptied into
//! sums in double precision before their roundings add up.

use crate::{
    element::Element,
    host::{
        reduction::tree::reduce_lanes,
        simd::accumulator::{CHUNK, accumulator_buffer, widened},
    },
    op::Axis,
};
use num_traits::Zero;

/// Elements of one task, in whole positions along the axis.
const GRAIN: usize = 1 << 16;

/// Runs at least this long are summed along themselves, shorter ones side by side.
const LONG: usize = 16;

/// Rows added to a row of accumulators before it is emptied.
const BLOCK: usize = 64;

const LANES: usize = 32;

/// Positions of one task.
pub(crate) fn positions_per_task(axis: &Axis) -> usize {
    // Rows side by side take up no more than a chunk.
    let most = if axis.inner < LONG { CHUNK / LONG } else { usize::MAX };
    (GRAIN / axis.reduced_count().max(1)).clamp(1, most)
}

/// `sums[j] ← Σ over o, i of term(a[o,e,i], b[o,e,i], at[e])` at the positions `e = start + j`,
/// of which there are no more than [`positions_per_task`].
#[inline(always)]
pub(crate) fn sum_per_channel<T: Element, const N: usize>(
    axis: &Axis,
    (a, b): (&[T], &[T]),
    at: &[T::Acc],
    start: usize,
    sums: &mut [[f64; N]],
    term: impl Fn(T::Acc, T::Acc, T::Acc) -> [T::Acc; N] + Copy,
) {
    if axis.inner < LONG {
        side_by_side(axis, (a, b), at, start, sums, term);
    } else {
        for (e, sums) in (start..).zip(sums) {
            *sums = along(axis, (a, b), at[e], e, term);
        }
    }
}

/// The sums at position `e`, whose runs are long.
#[inline(always)]
fn along<T: Element, const N: usize>(
    axis: &Axis,
    (a, b): (&[T], &[T]),
    at: T::Acc,
    e: usize,
    term: impl Fn(T::Acc, T::Acc, T::Acc) -> [T::Acc; N] + Copy,
) -> [f64; N] {
    let (mut room_a, mut room_b, mut sums) = (accumulator_buffer(), accumulator_buffer(), [0.0; N]);
    for o in 0..axis.outer {
        let run = (o * axis.extent + e) * axis.inner..(o * axis.extent + e + 1) * axis.inner;
        for (a, b) in a[run.clone()].chunks(CHUNK).zip(b[run].chunks(CHUNK)) {
            let (a, b) = (widened(a, &mut room_a), widened(b, &mut room_b));
            let mut lanes = [[T::Acc::zero(); LANES]; N];
            let ((a, rest_a), (b, rest_b)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
            for (a, b) in a.iter().zip(b) {
                for i in 0..LANES {
                    let terms = term(a[i], b[i], at);
                    for n in 0..N {
                        lanes[n][i] = lanes[n][i] + terms[n];
                    }
                }
            }
            for (i, (&a, &b)) in rest_a.iter().zip(rest_b).enumerate() {
                let terms = term(a, b, at);
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

/// The sums at the positions from `start` on, whose runs are short: those of one `o` make up a
/// row, which is added to a row of accumulators.
#[inline(always)]
fn side_by_side<T: Element, const N: usize>(
    axis: &Axis,
    (a, b): (&[T], &[T]),
    at: &[T::Acc],
    start: usize,
    sums: &mut [[f64; N]],
    term: impl Fn(T::Acc, T::Acc, T::Acc) -> [T::Acc; N] + Copy,
) {
    let (inner, len) = (axis.inner, sums.len() * axis.inner);
    sums.fill([0.0; N]);
    if inner == 0 {
        return;
    }
    let (mut room_a, mut room_b, mut of) =
        (accumulator_buffer(), accumulator_buffer(), accumulator_buffer::<T::Acc>());
    for (i, of) in of[..len].iter_mut().enumerate() {
        *of = at[start + i / inner];
    }
    let mut columns = [accumulator_buffer::<T::Acc>(); N];
    for block in (0..axis.outer).step_by(BLOCK) {
        columns.iter_mut().for_each(|column| column[..len].fill(T::Acc::zero()));
        for o in block..axis.outer.min(block + BLOCK) {
            let row = (o * axis.extent + start) * inner;
            let a = widened(&a[row..][..len], &mut room_a);
            let b = widened(&b[row..][..len], &mut room_b);
            for i in 0..len {
                let terms = term(a[i], b[i], of[i]);
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
