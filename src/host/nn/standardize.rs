//! Taking the mean off and dividing by the deviation.

use crate::{
    element::Element,
    error::{Result, check_len},
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

/// `y ← (x − mean) · rate`, as [`Standardize`] says.
///
/// # Errors
/// [`Error::Length`](crate::Error::Length) unless `x` and `y` have the axis' count of elements
/// and `mean` and `variance` its extent.
pub fn standardize<T: Element>(
    workers: &Workers,
    op: &Standardize,
    x: &[T],
    mean: &[T],
    variance: &[T],
    y: &mut [T],
) -> Result<()> {
    check_len("standardize", "x", op.axis.count(), x.len())?;
    let constants = checked(op, mean, variance, y)?;
    for_broadcast_chunks(workers, &op.axis, constants.both(), y, |start, [mean, rate], y, room| {
        let mut room_x = accumulator_buffer();
        let x = widened(&x[start..][..y.len()], &mut room_x);
        overwrite_widened(y, room, |y| {
            vectorized(
                #[inline(always)]
                || {
                    for (((y, &x), &mean), &rate) in y.iter_mut().zip(x).zip(mean).zip(rate) {
                        *y = (x - mean) * rate;
                    }
                },
            );
        });
    });
    Ok(())
}

/// `y ← (y − mean) · rate`, as [`Standardize`] says.
///
/// # Errors
/// As [`standardize`].
pub fn standardize_in_place<T: Element>(
    workers: &Workers,
    op: &Standardize,
    mean: &[T],
    variance: &[T],
    y: &mut [T],
) -> Result<()> {
    let constants = checked(op, mean, variance, y)?;
    for_broadcast_chunks(workers, &op.axis, constants.both(), y, |_, [mean, rate], y, room| {
        update_widened(y, room, |y| {
            vectorized(
                #[inline(always)]
                || {
                    for ((y, &mean), &rate) in y.iter_mut().zip(mean).zip(rate) {
                        *y = (*y - mean) * rate;
                    }
                },
            );
        });
    });
    Ok(())
}

/// `dx ← the gradient of x`, whose own mean and variance these are, given `dy`, that of the
/// standardized; as [`Standardize`] says.
///
/// Passes twice over `x` and `dy`: for the sums, and for the result.
///
/// # Errors
/// [`Error::Length`](crate::Error::Length) unless `x`, `dy` and `dx` have the axis' count of
/// elements and `mean` and `variance` its extent.
pub fn standardize_backward<T: Element>(
    workers: &Workers,
    op: &Standardize,
    x: &[T],
    mean: &[T],
    variance: &[T],
    dy: &[T],
    dx: &mut [T],
) -> Result<()> {
    check_len(BACKWARD, "dy", op.axis.count(), dy.len())?;
    let line = LinearGradient::of(workers, op, x, mean, variance, dy, dx.len())?;
    for_broadcast_chunks(
        workers,
        &op.axis,
        line.parts(),
        dx,
        |start, [x0, slope, dy0, rate], dx, room| {
            let (mut room_x, mut room_dy) = (accumulator_buffer(), accumulator_buffer());
            let x = widened(&x[start..][..dx.len()], &mut room_x);
            let dy = widened(&dy[start..][..dx.len()], &mut room_dy);
            overwrite_widened(dx, room, |dx| {
                vectorized(
                    #[inline(always)]
                    || {
                        for i in 0..dx.len() {
                            dx[i] = ((dy[i] - dy0[i]) - (x[i] - x0[i]) * slope[i]) * rate[i];
                        }
                    },
                );
            });
        },
    );
    Ok(())
}

/// As [`standardize_backward`], with `dy` in `dx`.
///
/// # Errors
/// As [`standardize_backward`].
pub fn standardize_backward_in_place<T: Element>(
    workers: &Workers,
    op: &Standardize,
    x: &[T],
    mean: &[T],
    variance: &[T],
    dx: &mut [T],
) -> Result<()> {
    let line = LinearGradient::of(workers, op, x, mean, variance, dx, op.axis.count())?;
    for_broadcast_chunks(
        workers,
        &op.axis,
        line.parts(),
        dx,
        |start, [x0, slope, dy0, rate], dx, room| {
            let mut room_x = accumulator_buffer();
            let x = widened(&x[start..][..dx.len()], &mut room_x);
            update_widened(dx, room, |dx| {
                vectorized(
                    #[inline(always)]
                    || {
                        for i in 0..dx.len() {
                            dx[i] = ((dx[i] - dy0[i]) - (x[i] - x0[i]) * slope[i]) * rate[i];
                        }
                    },
                );
            });
        },
    );
    Ok(())
}

const BACKWARD: &str = "standardize_backward";

/// What differences are from, and what they are multiplied by, at each position.
struct MeanAndRate<A> {
    mean: Vec<A>,
    rate: Vec<A>,
}

impl<A: Element<Acc = A>> MeanAndRate<A> {
    fn of<T: Element<Acc = A>>(op: &Standardize, mean: &[T], variance: &[T]) -> Self
    where
        A: Float,
    {
        let epsilon = T::acc(op.epsilon);
        let rate = variance.iter().map(|variance| op.rate(variance.to_acc(), epsilon));
        Self { mean: mean.iter().map(|mean| mean.to_acc()).collect(), rate: rate.collect() }
    }

    fn both(&self) -> [&[A]; 2] {
        [&self.mean, &self.rate]
    }
}

fn checked<T: Element>(
    op: &Standardize,
    mean: &[T],
    variance: &[T],
    y: &[T],
) -> Result<MeanAndRate<T::Acc>> {
    check_len("standardize", "mean", op.axis.extent, mean.len())?;
    check_len("standardize", "variance", op.axis.extent, variance.len())?;
    check_len("standardize", "y", op.axis.count(), y.len())?;
    Ok(MeanAndRate::of(op, mean, variance))
}

/// The gradient as a linear function: `((dy − dy0) − (x − x0) · slope) · rate` at each position.
struct LinearGradient<A> {
    constants: MeanAndRate<A>,
    slope: Vec<A>,
    dy0: Vec<A>,
}

impl<A: Element<Acc = A> + num_traits::Float> LinearGradient<A> {
    fn of<T: Element<Acc = A>>(
        workers: &Workers,
        op: &Standardize,
        x: &[T],
        mean: &[T],
        variance: &[T],
        dy: &[T],
        dx_len: usize,
    ) -> Result<Self> {
        let axis = &op.axis;
        check_len(BACKWARD, "x", axis.count(), x.len())?;
        check_len(BACKWARD, "mean", axis.extent, mean.len())?;
        check_len(BACKWARD, "variance", axis.extent, variance.len())?;
        check_len(BACKWARD, "dx", axis.count(), dy.len())?;
        check_len(BACKWARD, "dx", axis.count(), dx_len)?;
        let constants = MeanAndRate::of(op, mean, variance);
        let (mut slope, mut dy0) = (vec![A::zero(); axis.extent], vec![A::zero(); axis.extent]);
        let (per, m) = (positions_per_task(axis), axis.reduced_count() as f64);
        workers.for_each_chunk_pair((&mut slope, per), (&mut dy0, per), |task, slope, dy0| {
            let (start, mut sums) = (task * per, vec![[0.0; 2]; slope.len()]);
            vectorized(
                #[inline(always)]
                || {
                    sum_per_channel(
                        axis,
                        (dy, x),
                        &constants.mean,
                        start,
                        &mut sums,
                        #[inline(always)]
                        |dy: A, x: A, mean: A| [dy, dy * (x - mean)],
                    );
                },
            );
            for (j, [first, second]) in sums.into_iter().enumerate() {
                let rate = constants.rate[start + j];
                slope[j] = T::acc(second / m) * rate * rate;
                dy0[j] = T::acc(first / m);
            }
        });
        Ok(Self { constants, slope, dy0 })
    }

    fn parts(&self) -> [&[A]; 4] {
        [&self.constants.mean, &self.slope, &self.dy0, &self.constants.rate]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        host::{
            reduction::moments::moments,
            testing::{for_each_element, fractions, operand, threads, wide},
        },
        op::{Axis, EpsilonPlacement},
    };

    const AXES: [(usize, usize, usize); 7] =
        [(3, 1, 1), (4, 3, 1), (300, 130, 1), (5, 200, 7), (3, 2, 16), (6, 5, 49), (2, 3, 2500)];

    fn op(outer: usize, extent: usize, inner: usize, place: EpsilonPlacement) -> Standardize {
        Standardize { axis: Axis::new(outer, extent, inner).unwrap(), epsilon: 1e-3, place }
    }

    fn near(got: &[f64], want: &[f64], epsilon: f64) {
        let greatest = want.iter().fold(0.0f64, |max, want| max.max(want.abs()));
        for (got, want) in got.iter().zip(want) {
            assert!((got - want).abs() <= epsilon * greatest, "{got}, not {want}");
        }
    }

    /// The formulas, in `f64`, for each position by itself.
    fn follows_its_formulas<T: Element>() {
        let epsilon = match T::DTYPE.name() {
            "f16" => 2f64.powi(-8),
            "bf16" => 2f64.powi(-5),
            "f32" => 2f64.powi(-18),
            _ => 2f64.powi(-46),
        };
        for (outer, extent, inner) in AXES {
            let op = op(
                outer,
                extent,
                inner,
                [EpsilonPlacement::AddedToVariance, EpsilonPlacement::AddedToDeviation][outer % 2],
            );
            let (x, dy) = (fractions::<T>(1, op.axis.count()), fractions::<T>(2, op.axis.count()));
            let (mut mean, mut variance) = (vec![T::default(); extent], vec![T::default(); extent]);
            moments(&Workers::sequential(), &op.axis, &x, &mut mean, &mut variance).unwrap();
            let (wide_x, wide_dy) = (wide(&x), wide(&dy));
            let (mut y, mut dx) = (vec![0.0; x.len()], vec![0.0; x.len()]);
            for e in 0..extent {
                let at: Vec<usize> = (0..x.len()).filter(|i| i / inner % extent == e).collect();
                let rate = op.rate(variance[e].to_f64(), op.epsilon);
                at.iter().for_each(|&i| y[i] = (wide_x[i] - mean[e].to_f64()) * rate);
                let m = at.len() as f64;
                let first = at.iter().map(|&i| wide_dy[i]).sum::<f64>() / m;
                let second = at.iter().map(|&i| wide_dy[i] * y[i]).sum::<f64>() / m;
                at.iter().for_each(|&i| dx[i] = (wide_dy[i] - first - y[i] * second) * rate);
            }
            let results = threads().map(|w| {
                let nan = vec![T::from_f64(f64::NAN); x.len()];
                let (mut to, mut place) = (nan.clone(), x.clone());
                standardize(&w, &op, &x, &mean, &variance, &mut to).unwrap();
                standardize_in_place(&w, &op, &mean, &variance, &mut place).unwrap();
                assert_eq!(wide(&to), wide(&place));
                near(&wide(&to), &y, epsilon);
                let (mut back, mut place) = (nan, dy.clone());
                standardize_backward(&w, &op, &x, &mean, &variance, &dy, &mut back).unwrap();
                standardize_backward_in_place(&w, &op, &x, &mean, &variance, &mut place).unwrap();
                assert_eq!(wide(&back), wide(&place));
                near(&wide(&back), &dx, epsilon);
                (wide(&to), wide(&back))
            });
            assert!(results.iter().all(|one| *one == results[0]));
        }
    }

    for_each_element!(follows_its_formulas);

    #[test]
    fn errors_name_the_operand() {
        let (w, op) = (Workers::sequential(), op(2, 3, 1, EpsilonPlacement::AddedToVariance));
        let v = |len: usize| vec![1.0f32; len];
        let forward = |[x, mean, variance, y]: [usize; 4]| {
            operand(standardize(&w, &op, &v(x), &v(mean), &v(variance), &mut v(y)))
        };
        assert_eq!(forward([5, 3, 3, 6]), ("standardize", "x"));
        assert_eq!(forward([6, 2, 3, 6]), ("standardize", "mean"));
        assert_eq!(forward([6, 3, 4, 6]), ("standardize", "variance"));
        assert_eq!(forward([6, 3, 3, 7]), ("standardize", "y"));
        let backward = |[x, mean, variance, dy, dx]: [usize; 5]| {
            let (x, mean, variance, dy) = (v(x), v(mean), v(variance), v(dy));
            operand(standardize_backward(&w, &op, &x, &mean, &variance, &dy, &mut v(dx)))
        };
        assert_eq!(backward([5, 3, 3, 6, 6]), (BACKWARD, "x"));
        assert_eq!(backward([6, 2, 3, 6, 6]), (BACKWARD, "mean"));
        assert_eq!(backward([6, 3, 2, 6, 6]), (BACKWARD, "variance"));
        assert_eq!(backward([6, 3, 3, 5, 6]), (BACKWARD, "dy"));
        assert_eq!(backward([6, 3, 3, 6, 5]), (BACKWARD, "dx"));
    }
}
