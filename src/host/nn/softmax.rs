//! Softmax along an axis, and its gradient.

use crate::{
    element::Element,
    error::Result,
    host::{
        cache::scratch::with_scratch,
        math::SimdMath,
        reduction::tree::{reducer, sum_reducer},
        simd::{
            accumulator::{accumulator_len, update_widened},
            vectorized,
        },
        threads::Workers,
    },
    op::{Axis, ElementaryFunctions},
};
use num_traits::{Float, Zero};
use std::convert::identity;

/// Approximate number of elements in one task. A softmax of fewer than `GRAIN` elements is slower
/// on several threads than on one.
const GRAIN: usize = 1 << 14;

/// `y ← eˣ⁻ᵐ / Σ eˣ⁻ᵐ` along an axis, where `m` is the maximum along that axis. If an element is
/// NaN, all softmax results along the axis through that element are NaN.
///
/// # Errors
/// Returns [`Error::Length`](crate::Error::Length), which names the operand, if an operand has the
/// wrong length.
pub(crate) fn softmax<T: Element>(
    workers: &Workers,
    axis: &Axis,
    x: &[T],
    y: &mut [T],
) -> Result<()> {
    axis.check_counts("softmax", &[("x", x.len()), ("y", y.len())])?;
    for_each_task(workers, axis, Some(x), y, |_, y| forward(axis, y));
    Ok(())
}

/// Like [`softmax`], but reads the scores from `y` and overwrites `y` with the softmax.
///
/// # Errors
/// Returns [`Error::Length`](crate::Error::Length), which names the operand, if an operand has the
/// wrong length.
pub(crate) fn softmax_in_place<T: Element>(
    workers: &Workers,
    axis: &Axis,
    y: &mut [T],
) -> Result<()> {
    axis.check_counts("softmax", &[("y", y.len())])?;
    for_each_task(workers, axis, None, y, |_, y| forward(axis, y));
    Ok(())
}

/// `dx ← (dy − Σ dy·y) · y` along an axis, where `y` is the result of [`softmax`].
///
/// # Errors
/// Returns [`Error::Length`](crate::Error::Length), which names the operand, if an operand has the
/// wrong length.
pub(crate) fn softmax_backward<T: Element>(
    workers: &Workers,
    axis: &Axis,
    y: &[T],
    dy: &[T],
    dx: &mut [T],
) -> Result<()> {
    let lens = [("dy", dy.len()), ("dx", dx.len()), ("y", y.len())];
    axis.check_counts("softmax_backward", &lens)?;
    for_each_task(workers, axis, Some(dy), dx, |start, dx| backward(axis, &y[start..], dx));
    Ok(())
}

/// Like [`softmax_backward`], but reads the gradient `dy` from `dx` and overwrites `dx`.
///
/// # Errors
/// Returns [`Error::Length`](crate::Error::Length), which names the operand, if an operand has the
/// wrong length.
pub(crate) fn softmax_backward_in_place<T: Element>(
    workers: &Workers,
    axis: &Axis,
    y: &[T],
    dx: &mut [T],
) -> Result<()> {
    axis.check_counts("softmax_backward", &[("dx", dx.len()), ("y", y.len())])?;
    for_each_task(workers, axis, None, dx, |start, dx| backward(axis, &y[start..], dx));
    Ok(())
}

/// Calls `body(start, part)` for each task, where `part` holds the task's elements of `y`, which
/// begin at index `start`. A task covers all elements of one or more outer indices. If `source` is
/// not `None`, its elements are copied to `y` before `body` is called.
fn for_each_task<T: Element>(
    workers: &Workers,
    axis: &Axis,
    source: Option<&[T]>,
    y: &mut [T],
    body: impl Fn(usize, &mut [T]) + Send + Sync,
) {
    let outer_len = axis.extent * axis.inner;
    if outer_len == 0 {
        return;
    }
    let task_len = workers.even_units(axis.outer, outer_len, GRAIN) * outer_len;
    workers.for_each_chunk(y, task_len, |task, y| {
        let start = task * task_len;
        if let Some(source) = source {
            y.copy_from_slice(&source[start..start + y.len()]);
        }
        body(start, y);
    });
}

/// Runs [`softmax_in_place`] for the outer indices of one task.
fn forward<T: Element>(axis: &Axis, y: &mut [T]) {
    let outer_len = axis.extent * axis.inner;
    let wide_len = accumulator_len::<T>(outer_len);
    with_scratch(wide_len + 2 * axis.inner, |scratch: &mut [T::Acc]| {
        let (wide_buffer, scratch) = scratch.split_at_mut(wide_len);
        let (maxima, sums) = scratch.split_at_mut(axis.inner);
        for y in y.chunks_exact_mut(outer_len) {
            update_widened(y, wide_buffer, |y| match axis.inner {
                1 => forward_contiguous(y),
                _ => forward_strided(y, maxima, sums),
            });
        }
    });
}

/// Computes the softmax of the contiguous elements `y` in place.
fn forward_contiguous<A: Element<Acc = A> + Float>(y: &mut [A]) {
    let max_of_two = |a: A, b: A| if b > a { b } else { a };
    let max = reducer(A::neg_infinity(), max_of_two).reduce_slice(y);
    vectorized(
        #[inline(always)]
        |_| {
            for y in y.iter_mut() {
                *y = SimdMath::exp(*y - max);
            }
        },
    );
    let sum = sum_reducer(identity).reduce_slice(y);
    vectorized(
        #[inline(always)]
        |_| {
            for y in y.iter_mut() {
                *y = *y / sum;
            }
        },
    );
}

/// Computes the softmax along each column of the matrix `y` in place. The buffers `maxima` and
/// `sums` have one element per column.
fn forward_strided<A: Element + Float>(y: &mut [A], maxima: &mut [A], sums: &mut [A]) {
    maxima.fill(A::neg_infinity());
    sums.fill(A::zero());
    let inner = maxima.len();
    vectorized(
        #[inline(always)]
        |_| {
            for row in y.chunks_exact(inner) {
                for (max, &x) in maxima.iter_mut().zip(row) {
                    *max = if x > *max { x } else { *max };
                }
            }
            for row in y.chunks_exact_mut(inner) {
                for ((y, &max), sum) in row.iter_mut().zip(&*maxima).zip(sums.iter_mut()) {
                    *y = SimdMath::exp(*y - max);
                    *sum = *sum + *y;
                }
            }
            for row in y.chunks_exact_mut(inner) {
                for (y, &sum) in row.iter_mut().zip(&*sums) {
                    *y = *y / sum;
                }
            }
        },
    );
}

/// Runs [`softmax_backward_in_place`] for the outer indices of one task.
fn backward<T: Element>(axis: &Axis, y: &[T], dx: &mut [T]) {
    let (inner, outer_len) = (axis.inner, axis.extent * axis.inner);
    with_scratch(inner, |dots: &mut [T::Acc]| {
        for (y, dx) in y.chunks_exact(outer_len).zip(dx.chunks_exact_mut(outer_len)) {
            dots.fill(T::Acc::zero());
            for (y, dy) in y.chunks_exact(inner).zip(dx.chunks_exact(inner)) {
                for ((y, dy), dot) in y.iter().zip(dy).zip(dots.iter_mut()) {
                    *dot = *dot + dy.to_acc() * y.to_acc();
                }
            }
            for (y, dx) in y.chunks_exact(inner).zip(dx.chunks_exact_mut(inner)) {
                for ((y, dx), dot) in y.iter().zip(dx).zip(dots.iter()) {
                    *dx = T::from_acc((dx.to_acc() - *dot) * y.to_acc());
                }
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::{
        nn::testing::expect_length_errors,
        testing::{for_each_element, fractions, nan, threads},
    };

    /// `[outer, extent, inner]` of the test axes: no elements, one element, odd extents, image
    /// channels, elements of one task, and elements of several tasks.
    const AXES: [[usize; 3]; 6] =
        [[0, 3, 2], [1, 1, 1], [3, 7, 1], [2, 5, 9], [64, 10, 1], [5000, 10, 1]];

    fn axis([outer, extent, inner]: [usize; 3]) -> Axis {
        Axis::new(outer, extent, inner).unwrap()
    }

    fn softmax_is_bit_identical_on_any_number_of_threads<T: Element>() {
        for axis in AXES.map(axis) {
            let (x, dy) = (fractions::<T>(1, axis.count()), fractions::<T>(3, axis.count()));
            let results = threads().map(|workers| {
                let mut y = nan(x.len());
                softmax(&workers, &axis, &x, &mut y).unwrap();
                let mut in_place = x.clone();
                softmax_in_place(&workers, &axis, &mut in_place).unwrap();
                assert!(y == in_place);
                let mut dx = nan(x.len());
                softmax_backward(&workers, &axis, &y, &dy, &mut dx).unwrap();
                let mut in_place = dy.clone();
                softmax_backward_in_place(&workers, &axis, &y, &mut in_place).unwrap();
                assert!(dx == in_place);
                (y, dx)
            });
            assert!(results[0] == results[1] && results[0] == results[2]);
        }
    }

    for_each_element!(softmax_is_bit_identical_on_any_number_of_threads);

    #[test]
    fn softmax_spreads_nan_along_its_axis_only() {
        let x = [f32::NAN, 1.0, 2.0, 2.0];
        let mut y = [0.0; 4];
        softmax(&Workers::sequential(), &axis([2, 2, 1]), &x, &mut y).unwrap();
        assert!(y[0].is_nan() && y[1].is_nan() && y[2..] == [0.5, 0.5]);
    }

    #[test]
    fn softmax_length_errors_name_the_operand() {
        let (w, axis) = (&Workers::sequential(), &axis([2, 3, 1]));
        let (name, backward) = ("softmax", "softmax_backward");
        let (x, y, dy, dx) = (("x", 6), ("y", 6), ("dy", 6), ("dx", 6));
        expect_length_errors(name, [x, y], |[x, mut y]| softmax(w, axis, &x, &mut y));
        expect_length_errors(name, [y], |[mut y]| softmax_in_place(w, axis, &mut y));
        expect_length_errors(backward, [y, dy, dx], |[y, dy, mut dx]| {
            softmax_backward(w, axis, &y, &dy, &mut dx)
        });
        expect_length_errors(backward, [y, dx], |[y, mut dx]| {
            softmax_backward_in_place(w, axis, &y, &mut dx)
        });
    }
}
