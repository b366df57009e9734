//! Dot products of two operands over all axes but one.

use crate::{
    element::Element,
    error::Result,
    host::{
        reduction::channel_sums::{positions_per_task, sum_per_channel},
        simd::vectorized,
        threads::Workers,
    },
    op::Axis,
};
use num_traits::Zero;

/// `y[e] ← β·y[e] + Σ a[o, e, i] · b[o, e, i]` over all `o` and `i`. For example, the sum is the
/// gradient of a factor that was broadcast along the outer and inner axes. `y` is not read if β =
/// 0.
///
/// # Errors
/// [`Error::Length`](crate::Error::Length) unless `a` and `b` have `axis.count()` elements and `y`
/// has `axis.extent` elements.
pub(crate) fn dot_to_axis<T: Element>(
    workers: &Workers,
    axis: &Axis,
    beta: T::Acc,
    a: &[T],
    b: &[T],
    y: &mut [T],
) -> Result<()> {
    axis.check_counts("dot_to_axis", &[("a", a.len()), ("b", b.len())])?;
    axis.check_extents("dot_to_axis", &[("y", y.len())])?;
    let chunk_len = positions_per_task(axis);
    let unused_operand = vec![T::Acc::zero(); axis.extent];
    workers.for_each_chunk(y, chunk_len, |task, y| {
        let mut sums = vec![[0.0]; y.len()];
        vectorized(
            #[inline(always)]
            |_| {
                sum_per_channel(
                    axis,
                    (a, b),
                    &unused_operand,
                    task * chunk_len,
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
    use crate::host::testing::operand;

    #[test]
    fn dot_to_axis_errors_name_the_operand() {
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
