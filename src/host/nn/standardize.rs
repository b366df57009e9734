//! Standardization for batch normalization, which subtracts the mean and divides by the standard
//! deviation.

use crate::{
    element::Element,
    error::Result,
    host::{
        elementwise::broadcast::for_broadcast_chunks,
        reduction::channel_sums::{positions_per_task, sum_per_channel},
        simd::{
            accumulator::{accumulator_buffer, overwrite_widened, update_widened, widened},
            vectorized,
        },
        threads::Workers,
    },
    op::Standardize,
};
use num_traits::Float;

/// `y ← (x − mean) · rate`, where `rate` is the inverse standard deviation; see [`Standardize`].
///
/// # Errors
/// [`Error::Length`](crate::Error::Length) unless `x` and `y` have `axis.count()` elements, and
/// `mean` and `variance` have `axis.extent` elements.
pub(crate) fn standardize<T: Element>(
    workers: &Workers,
    op: &Standardize,
    x: &[T],
    mean: &[T],
    variance: &[T],
    y: &mut [T],
) -> Result<()> {
    op.check(Some(x.len()), mean.len(), variance.len(), y.len())?;
    let mean_and_rate = MeanAndRate::new(op, mean, variance);
    for_broadcast_chunks(
        workers,
        &op.axis,
        [&mean_and_rate.mean, &mean_and_rate.rate],
        y,
        |start, [mean, rate], y, wide_buffer| {
            let mut wide_x = accumulator_buffer();
            let x = widened(&x[start..][..y.len()], &mut wide_x);
            overwrite_widened(y, wide_buffer, |y| {
                vectorized(
                    #[inline(always)]
                    |_| {
                        for (((y, &x), &mean), &rate) in y.iter_mut().zip(x).zip(mean).zip(rate) {
                            *y = (x - mean) * rate;
                        }
                    },
                );
            });
        },
    );
    Ok(())
}

/// `y ← (y − mean) · rate`, where `rate` is the inverse standard deviation; see [`Standardize`].
///
/// # Errors
/// Returns any error from [`standardize`].
pub(crate) fn standardize_in_place<T: Element>(
    workers: &Workers,
    op: &Standardize,
    mean: &[T],
    variance: &[T],
    y: &mut [T],
) -> Result<()> {
    op.check(None, mean.len(), variance.len(), y.len())?;
    let mean_and_rate = MeanAndRate::new(op, mean, variance);
    for_broadcast_chunks(
        workers,
        &op.axis,
        [&mean_and_rate.mean, &mean_and_rate.rate],
        y,
        |_, [mean, rate], y, wide_buffer| {
            update_widened(y, wide_buffer, |y| {
                vectorized(
                    #[inline(always)]
                    |_| {
                        for ((y, &mean), &rate) in y.iter_mut().zip(mean).zip(rate) {
                            *y = (*y - mean) * rate;
                        }
                    },
                );
            });
        },
    );
    Ok(())
}

/// Computes the gradient `dx` of `x` from the gradient `dy` of the standardized elements. `mean`
/// and `variance` must be the moments of `x`; see [`Standardize`].
///
/// `standardize_backward` reads `x` and `dy` twice: once to compute sums, and once to compute `dx`.
///
/// # Errors
/// [`Error::Length`](crate::Error::Length) unless `x`, `dy` and `dx` have `axis.count()` elements,
/// and `mean` and `variance` have `axis.extent` elements.
pub(crate) fn standardize_backward<T: Element>(
    workers: &Workers,
    op: &Standardize,
    x: &[T],
    mean: &[T],
    variance: &[T],
    dy: &[T],
    dx: &mut [T],
) -> Result<()> {
    op.check_backward(x.len(), mean.len(), variance.len(), Some(dy.len()), dx.len())?;
    let gradient = LinearGradient::new(workers, op, x, mean, variance, dy);
    gradient.write::<T, false>(workers, op, x, dy, dx);
    Ok(())
}

/// Like [`standardize_backward`], but reads the gradient `dy` from `dx` and overwrites `dx`.
///
/// # Errors
/// Returns any error from [`standardize_backward`].
pub(crate) fn standardize_backward_in_place<T: Element>(
    workers: &Workers,
    op: &Standardize,
    x: &[T],
    mean: &[T],
    variance: &[T],
    dx: &mut [T],
) -> Result<()> {
    op.check_backward(x.len(), mean.len(), variance.len(), None, dx.len())?;
    let gradient = LinearGradient::new(workers, op, x, mean, variance, dx);
    gradient.write::<T, true>(workers, op, x, &[], dx);
    Ok(())
}

/// Mean and inverse standard deviation at each position of the axis.
struct MeanAndRate<A> {
    mean: Vec<A>,
    rate: Vec<A>,
}

impl<A: Element<Acc = A> + Float> MeanAndRate<A> {
    fn new<T: Element<Acc = A>>(op: &Standardize, mean: &[T], variance: &[T]) -> Self {
        let epsilon = T::acc(op.epsilon);
        let rate = variance.iter().map(|variance| op.rate(variance.to_acc(), epsilon));
        Self { mean: mean.iter().map(|mean| mean.to_acc()).collect(), rate: rate.collect() }
    }
}

/// Coefficients of the gradient `dx = ((dy − dy0) − (x − mean) · slope) · rate`, one set per
/// position of the axis.
struct LinearGradient<A> {
    mean_and_rate: MeanAndRate<A>,
    slope: Vec<A>,
    dy0: Vec<A>,
}

impl<A: Element<Acc = A> + Float> LinearGradient<A> {
    fn new<T: Element<Acc = A>>(
        workers: &Workers,
        op: &Standardize,
        x: &[T],
        mean: &[T],
        variance: &[T],
        dy: &[T],
    ) -> Self {
        let axis = &op.axis;
        let mean_and_rate = MeanAndRate::new(op, mean, variance);
        let (mut slope, mut dy0) = (vec![A::zero(); axis.extent], vec![A::zero(); axis.extent]);
        let (positions_per_task, m) = (positions_per_task(axis), axis.reduced_count() as f64);
        let operands = ((&mut slope[..], positions_per_task), (&mut dy0[..], positions_per_task));
        workers.for_each_chunk_pair(operands.0, operands.1, |task, slope, dy0| {
            let (start, mut sums) = (task * positions_per_task, vec![[0.0; 2]; slope.len()]);
            vectorized(
                #[inline(always)]
                |_| {
                    sum_per_channel(
                        axis,
                        (dy, x),
                        &mean_and_rate.mean,
                        start,
                        &mut sums,
                        #[inline(always)]
                        |dy: A, x: A, mean: A| [dy, dy * (x - mean)],
                    );
                },
            );
            for (j, [dy_sum, product_sum]) in sums.into_iter().enumerate() {
                let rate = mean_and_rate.rate[start + j];
                slope[j] = T::acc(product_sum / m) * rate * rate;
                dy0[j] = T::acc(dy_sum / m);
            }
        });
        Self { mean_and_rate, slope, dy0 }
    }

    /// Writes the gradient of `x` to `dx`. If `IN_PLACE` is true, `write` reads the gradient of `y`
    /// from `dx` instead of `dy`.
    fn write<T: Element<Acc = A>, const IN_PLACE: bool>(
        &self,
        workers: &Workers,
        op: &Standardize,
        x: &[T],
        dy: &[T],
        dx: &mut [T],
    ) {
        let Self { mean_and_rate: MeanAndRate { mean, rate }, slope, dy0 } = self;
        let coefficients = [&mean[..], slope, dy0, rate];
        for_broadcast_chunks(
            workers,
            &op.axis,
            coefficients,
            dx,
            |start, coefficients, dx, wide_buffer| {
                let [mean, slope, dy0, rate] = coefficients;
                let (mut wide_x, mut wide_dy) = (accumulator_buffer(), accumulator_buffer());
                let x = widened(&x[start..][..dx.len()], &mut wide_x);
                let dy = match IN_PLACE {
                    true => &[],
                    false => widened(&dy[start..][..dx.len()], &mut wide_dy),
                };
                let kernel = |dx: &mut [A]| {
                    vectorized(
                        #[inline(always)]
                        |_| {
                            for i in 0..dx.len() {
                                let dy = if IN_PLACE { dx[i] } else { dy[i] };
                                dx[i] = ((dy - dy0[i]) - (x[i] - mean[i]) * slope[i]) * rate[i];
                            }
                        },
                    );
                };
                if IN_PLACE {
                    update_widened(dx, wide_buffer, kernel)
                } else {
                    overwrite_widened(dx, wide_buffer, kernel)
                }
            },
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        host::{
            nn::testing::expect_length_errors,
            reduction::moments::moments,
            testing::{for_each_element, fractions, nan, threads},
        },
        op::{Axis, EpsilonPlacement},
    };

    const AXES: [(usize, usize, usize); 7] =
        [(3, 1, 1), (4, 3, 1), (300, 130, 1), (5, 200, 7), (3, 2, 16), (6, 5, 49), (2, 3, 2500)];

    fn op(outer: usize, extent: usize, inner: usize, place: EpsilonPlacement) -> Standardize {
        Standardize {
            axis: Axis::new(outer, extent, inner).unwrap(),
            epsilon: 1e-3,
            epsilon_placement: place,
        }
    }

    fn standardize_is_bit_identical_on_any_number_of_threads<T: Element>() {
        for (outer, extent, inner) in AXES {
            let op = op(outer, extent, inner, EpsilonPlacement::AddedToVariance);
            let (x, dy) = (fractions::<T>(1, op.axis.count()), fractions::<T>(2, op.axis.count()));
            let (mut mean, mut variance) = (nan(extent), nan(extent));
            moments(&Workers::sequential(), &op.axis, &x, &mut mean, &mut variance).unwrap();
            let results = threads().map(|w| {
                let (mut y, mut y_in_place) = (nan(x.len()), x.clone());
                standardize(&w, &op, &x, &mean, &variance, &mut y).unwrap();
                standardize_in_place(&w, &op, &mean, &variance, &mut y_in_place).unwrap();
                let (mut dx, mut dx_in_place) = (nan(x.len()), dy.clone());
                standardize_backward(&w, &op, &x, &mean, &variance, &dy, &mut dx).unwrap();
                standardize_backward_in_place(&w, &op, &x, &mean, &variance, &mut dx_in_place)
                    .unwrap();
                assert!(y == y_in_place && dx == dx_in_place);
                (y, dx)
            });
            assert!(results[0] == results[1] && results[0] == results[2]);
        }
    }

    for_each_element!(standardize_is_bit_identical_on_any_number_of_threads);

    #[test]
    fn standardize_length_errors_name_the_operand() {
        let (w, op) = (&Workers::sequential(), &op(2, 3, 1, EpsilonPlacement::AddedToVariance));
        let (x, mean, variance) = (("x", 6), ("mean", 3), ("variance", 3));
        let operands = [x, mean, variance, ("y", 6)];
        expect_length_errors("standardize", operands, |[x, mean, variance, mut y]| {
            standardize(w, op, &x, &mean, &variance, &mut y)
        });
        let operands = [x, mean, variance, ("dy", 6), ("dx", 6)];
        expect_length_errors(
            "standardize_backward",
            operands,
            |[x, mean, variance, dy, mut dx]| {
                standardize_backward(w, op, &x, &mean, &variance, &dy, &mut dx)
            },
        );
    }
}
