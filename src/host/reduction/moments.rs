//! Mean and variance of an operand over all axes but one.

use crate::{
    element::Element,
    error::Result,
    host::{
        reduction::{
            channel_sums::{FLUSH_INTERVAL, positions_per_task},
            tree::{LANES, LONG_RUN, reduce_lanes, zero_padded},
        },
        simd::{
            accumulator::{CHUNK, accumulator_buffer, widened},
            vectorized,
        },
        threads::Workers,
    },
    op::Axis,
};
use num_traits::{Float, Zero};

/// `mean[e] ← 1/m · Σ x[o, e, i]` and `variance[e] ← 1/m · Σ (x[o, e, i] − mean[e])²` over the `m =
/// outer·inner` elements at each position `e` of the axis. The variance is biased: the divisor
/// is `m`, not `m − 1`.
///
/// The second of two passes over `x` corrects the rounding error of the first pass (Chan, Golub,
/// LeVeque 1983, "Algorithms for computing the sample variance").
///
/// # Errors
/// [`Error::Length`](crate::Error::Length) if the length of an operand is wrong;
/// [`Error::InvalidInput`](crate::Error::InvalidInput) if there are no elements per position (m =
/// 0).
pub(crate) fn moments<T: Element>(
    workers: &Workers,
    axis: &Axis,
    x: &[T],
    mean: &mut [T],
    variance: &mut [T],
) -> Result<()> {
    axis.check_moments(x.len(), mean.len(), variance.len())?;
    let chunk_len = positions_per_task(axis);
    workers.for_each_chunk_pair(
        (mean, chunk_len),
        (variance, chunk_len),
        |task, mean, variance| {
            vectorized(
                #[inline(always)]
                |_| {
                    if axis.inner < LONG_RUN {
                        moments_of_columns(axis, x, task * chunk_len, mean, variance);
                    } else {
                        for (e, (mean, variance)) in mean.iter_mut().zip(variance).enumerate() {
                            (*mean, *variance) = moments_of_runs(axis, x, task * chunk_len + e);
                        }
                    }
                },
            );
        },
    );
    Ok(())
}

/// Sum of the deviations of elements from a pivot, and sum of the squared deviations.
#[derive(Clone, Copy, Default)]
struct Sums {
    deviations: f64,
    squares: f64,
}

impl Sums {
    /// Adds all lanes of `deviations` to one sum, and all lanes of `squares` to the other sum.
    #[inline(always)]
    fn add<A: Element + Float>(&mut self, deviations: [A; LANES], squares: [A; LANES]) {
        self.deviations += reduce_lanes(deviations, |a, b| a + b).to_f64();
        self.squares += reduce_lanes(squares, |a, b| a + b).to_f64();
    }

    /// Returns the mean and the variance of `m` elements, for which `self` holds the sums of
    /// deviations from `pivot`.
    #[inline(always)]
    fn moments<T: Element>(self, m: f64, pivot: f64) -> (T, T) {
        let shift = self.deviations / m;
        let variance = self.squares / m - shift * shift;
        // Rounding errors can make the variance negative. The comparison replaces a negative
        // variance by 0, but does not change NaN.
        let variance = if variance < 0.0 { 0.0 } else { variance };
        (T::from_f64(pivot + shift), T::from_f64(variance))
    }
}

/// Returns the mean and variance at position `e` of the axis; used for operands with long
/// contiguous runs.
#[inline(always)]
fn moments_of_runs<T: Element>(axis: &Axis, x: &[T], e: usize) -> (T, T) {
    let m = axis.reduced_count() as f64;
    let pivot = T::acc(sum_runs(axis, x, e, T::Acc::zero()).deviations / m);
    sum_runs(axis, x, e, pivot).moments(m, pivot.to_f64())
}

/// Returns the sums of deviations from `pivot` at position `e` of the axis.
#[inline(always)]
fn sum_runs<T: Element>(axis: &Axis, x: &[T], e: usize, pivot: T::Acc) -> Sums {
    let (mut buffer, mut sums) = (accumulator_buffer(), Sums::default());
    let zeros = [T::Acc::zero(); LANES];
    let (mut deviations, mut squares, mut count) = (zeros, zeros, 0);
    for o in 0..axis.outer {
        for x in x[(o * axis.extent + e) * axis.inner..][..axis.inner].chunks(CHUNK) {
            let (blocks, rest) = widened(x, &mut buffer).as_chunks::<LANES>();
            for x in blocks {
                (deviations, squares) = step(deviations, squares, x, &[pivot; LANES]);
            }
            if !rest.is_empty() {
                let pivot = zero_padded(&[pivot; LANES][..rest.len()]);
                (deviations, squares) = step(deviations, squares, &zero_padded(rest), &pivot);
            }
            count += blocks.len() + 1;
            if count >= FLUSH_INTERVAL {
                sums.add(deviations, squares);
                (deviations, squares, count) = (zeros, zeros, 0);
            }
        }
    }
    sums.add(deviations, squares);
    sums
}

/// Adds the deviations and squared deviations of [`LANES`] elements to the accumulators, one lane
/// per element. Accumulators that are passed by value stay in registers.
#[inline(always)]
fn step<A: Element + Float>(
    mut deviations: [A; LANES],
    mut squares: [A; LANES],
    x: &[A; LANES],
    pivot: &[A; LANES],
) -> ([A; LANES], [A; LANES]) {
    for i in 0..LANES {
        let d = x[i] - pivot[i];
        deviations[i] = deviations[i] + d;
        squares[i] = squares[i] + d * d;
    }
    (deviations, squares)
}

/// Computes the mean and variance at the axis positions from `start` on; used for operands with
/// short contiguous runs. The runs of one outer index form a row, whose deviations are added to a
/// row of accumulators.
#[inline(always)]
fn moments_of_columns<T: Element>(
    axis: &Axis,
    x: &[T],
    start: usize,
    mean: &mut [T],
    variance: &mut [T],
) {
    let (m, inner) = (axis.reduced_count() as f64, axis.inner);
    let mut sums = [Sums::default(); CHUNK];
    let sums = &mut sums[..mean.len() * inner];
    let mut pivots = accumulator_buffer::<T::Acc>();
    let pivots = &mut pivots[..sums.len()];
    // Adds up the sums of all columns that belong to one position of the axis.
    let total = |sums: &[Sums]| {
        sums.iter().fold(Sums::default(), |total, sums| Sums {
            deviations: total.deviations + sums.deviations,
            squares: total.squares + sums.squares,
        })
    };
    sum_rows(axis, x, start, pivots, sums);
    for (sums, pivots) in sums.chunks(inner).zip(pivots.chunks_mut(inner)) {
        pivots.fill(T::acc(total(sums).deviations / m));
    }
    sum_rows(axis, x, start, pivots, sums);
    let positions = sums.chunks(inner).zip(pivots.chunks(inner));
    for ((sums, pivots), (mean, variance)) in positions.zip(mean.iter_mut().zip(variance)) {
        (*mean, *variance) = total(sums).moments(m, pivots[0].to_f64());
    }
}

/// Computes, for each column, the sums of deviations from the column's pivot. The first column
/// belongs to position `start` of the axis.
#[inline(always)]
fn sum_rows<T: Element>(axis: &Axis, x: &[T], start: usize, pivots: &[T::Acc], sums: &mut [Sums]) {
    let len = sums.len();
    sums.fill(Sums::default());
    let (mut buffer, mut deviations, mut squares) =
        (accumulator_buffer(), accumulator_buffer::<T::Acc>(), accumulator_buffer::<T::Acc>());
    for block in (0..axis.outer).step_by(FLUSH_INTERVAL) {
        let (deviations, squares) = (&mut deviations[..len], &mut squares[..len]);
        deviations.fill(T::Acc::zero());
        squares.fill(T::Acc::zero());
        for o in block..axis.outer.min(block + FLUSH_INTERVAL) {
            let row = &x[(o * axis.extent + start) * axis.inner..][..len];
            let row = widened(row, &mut buffer);
            for i in 0..len {
                let d = row[i] - pivots[i];
                deviations[i] = deviations[i] + d;
                squares[i] = squares[i] + d * d;
            }
        }
        for (sums, (deviations, squares)) in sums.iter_mut().zip(deviations.iter().zip(&*squares)) {
            sums.deviations += deviations.to_f64();
            sums.squares += squares.to_f64();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::testing::{for_each_element, fractions, nan, operand, threads};

    const AXES: [(usize, usize, usize); 9] = [
        (1, 1, 1),
        (4, 3, 1),
        (700, 130, 1),
        (5, 200, 7),
        (3, 2, 16),
        (6, 5, 49),
        (2, 3, 2500),
        (300, 2, 300),
        (2, 0, 3),
    ];

    fn moments_are_bit_identical_on_any_number_of_threads<T: Element>() {
        for (outer, extent, inner) in AXES {
            let axis = Axis::new(outer, extent, inner).unwrap();
            let x = fractions::<T>(2, axis.count());
            let results = threads().map(|w| {
                let (mut mean, mut variance) = (nan::<T>(extent), nan::<T>(extent));
                moments(&w, &axis, &x, &mut mean, &mut variance).unwrap();
                (mean, variance)
            });
            assert!(results[0] == results[1] && results[0] == results[2], "{axis:?}");
        }
    }

    for_each_element!(moments_are_bit_identical_on_any_number_of_threads);

    #[test]
    fn nan_affects_only_the_moments_of_its_position() {
        for inner in [1, 20] {
            let axis = Axis::new(3, 2, inner).unwrap();
            let mut x = vec![1.0f32; axis.count()];
            x[inner] = f32::NAN;
            let (mut mean, mut variance) = ([5.0f32; 2], [5.0f32; 2]);
            moments(&Workers::sequential(), &axis, &x, &mut mean, &mut variance).unwrap();
            assert_eq!((mean[0], variance[0]), (1.0, 0.0));
            assert!(mean[1].is_nan() && variance[1].is_nan());
        }
    }

    #[test]
    fn moments_errors_name_the_operand() {
        let w = &Workers::sequential();
        let axis = Axis::new(2, 3, 1).unwrap();
        let x = [0.0f32; 6];
        let run = |x: &[f32], mean: usize, variance: usize| {
            operand(moments(w, &axis, x, &mut vec![0.0; mean], &mut vec![0.0; variance]))
        };
        assert_eq!(run(&x[1..], 3, 3), ("moments", "x"));
        assert_eq!(run(&x, 2, 3), ("moments", "mean"));
        assert_eq!(run(&x, 3, 2), ("moments", "variance"));
        let empty_axis = Axis::new(0, 3, 1).unwrap();
        let error = moments(w, &empty_axis, &[], &mut [0.0f32; 3], &mut [0.0; 3]).unwrap_err();
        assert!(matches!(error, crate::Error::InvalidInput { op: "moments", .. }));
    }
}
