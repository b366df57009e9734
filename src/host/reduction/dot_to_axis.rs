//! Sums of products, over all but an axis.

use crate::{
    element::Element,
    error::{Result, check_len},
    host::{
        reduction::channel_sums::{positions_per_task, sum_per_channel},
        simd::vectorized,
        threads::Workers,
    },
    op::Axis,
};
use num_traits::Zero;

/// `y[e] ← β·y[e] + Σ a[o, e, i] · b[o, e, i]` over all `o` and `i`: the gradient of a factor
/// that is broadcast.
///
/// β = 0 does not read `y`.
///
/// # Errors
/// [`Error::Length`](crate::Error::Length) unless `a` and `b` have the axis' count of elements
/// and `y` its extent.
pub fn dot_to_axis<T: Element>(
    workers: &Workers,
    axis: &Axis,
    beta: T::Acc,
    a: &[T],
    b: &[T],
    y: &mut [T],
) -> Result<()> {
    check_len("dot_to_axis", "a", axis.count(), a.len())?;
    check_len("dot_to_axis", "b", axis.count(), b.len())?;
    check_len("dot_to_axis", "y", axis.extent, y.len())?;
    let per = positions_per_task(axis);
    let none = vec![T::Acc::zero(); axis.extent];
    workers.for_each_chunk(y, per, |task, y| {
        let mut sums = vec![[0.0]; y.len()];
        vectorized(
            #[inline(always)]
            || {
                sum_per_channel(
                    axis,
                    (a, b),
                    &none,
                    task * per,
                    &mut sums,
                    #[inline(always)]
                    |a, b, _| [a * b],
                );
            },
        );
        for (y, [sum]) in y.iter_mut().zip(sums) {
            let sum = T::acc(sum);
            *y = T::from_acc(if beta.is_zero() { sum } else { beta * y.to_acc() + sum });
        }
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::testing::{for_each_element, integers, operand, threads, wide};

    const AXES: [(usize, usize, usize); 10] = [
        (1, 1, 1),
        (4, 3, 1),
        (700, 130, 1),
        (5, 200, 7),
        (3, 2, 16),
        (6, 5, 49),
        (2, 3, 2500),
        (0, 3, 2),
        (2, 0, 3),
        (1 << 50, 3, 0),
    ];

    /// Sums of products of small integers are exact, up to where the element ends.
    fn small_integers_are_exact<T: Element>() {
        for (outer, extent, inner) in AXES {
            let axis = Axis::new(outer, extent, inner).unwrap();
            let (a, b) = (integers::<T>(1, axis.count()), integers::<T>(2, axis.count()));
            let mut want = vec![0.0; extent];
            for (i, (a, b)) in a.iter().zip(&b).enumerate() {
                want[i / inner % extent] += a.to_f64() * b.to_f64();
            }
            for workers in threads() {
                let mut y = vec![T::from_f64(f64::NAN); extent];
                dot_to_axis(&workers, &axis, T::acc(0.0), &a, &b, &mut y).unwrap();
                let rounded: Vec<T> = want.iter().map(|&want| T::from_f64(want)).collect();
                assert_eq!(wide(&y), wide(&rounded), "{axis:?}");
                let mut y = vec![T::from_f64(3.0); extent];
                dot_to_axis(&workers, &axis, T::acc(2.0), &a, &b, &mut y).unwrap();
                let rounded: Vec<T> = want.iter().map(|&want| T::from_f64(6.0 + want)).collect();
                assert_eq!(wide(&y), wide(&rounded), "{axis:?}");
            }
        }
    }

    for_each_element!(small_integers_are_exact);

    #[test]
    fn errors_name_the_operand() {
        let (w, axis) = (Workers::sequential(), Axis::new(2, 3, 1).unwrap());
        let run = |a: usize, b: usize, y: usize| {
            let (a, b) = (vec![1.0f32; a], vec![1.0; b]);
            operand(dot_to_axis(&w, &axis, 0.0, &a, &b, &mut vec![0.0; y]))
        };
        assert_eq!(run(5, 6, 3), ("dot_to_axis", "a"));
        assert_eq!(run(6, 7, 3), ("dot_to_axis", "b"));
        assert_eq!(run(6, 6, 2), ("dot_to_axis", "y"));
    }
}
