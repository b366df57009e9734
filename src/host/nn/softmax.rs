//! Softmax along an axis, and its gradient.

use crate::{
    element::Element,
    error::{Result, check_len},
    host::{
        cache::scratch::with_scratch,
        math::SimdMath,
        reduction::tree::{Reducer, reduce_slice, sum_reducer},
        simd::{
            accumulator::{is_wide, update_widened},
            vectorized,
        },
        threads::Workers,
    },
    op::{Axis, ElementaryFunctions},
};
use num_traits::{Float, Zero};

/// Elements that a task covers, about: below this one thread is faster than several.
const BLOCK: usize = 1 << 14;

/// `y ← eˣ⁻ᵐ / Σ eˣ⁻ᵐ` along an axis, `m` being its maximum. NaN spreads along its axis.
///
/// # Errors
/// [`Error::Length`](crate::Error::Length).
pub fn softmax<T: Element>(workers: &Workers, axis: &Axis, x: &[T], y: &mut [T]) -> Result<()> {
    check_len("softmax", "x", axis.count(), x.len())?;
    check_len("softmax", "y", axis.count(), y.len())?;
    slabs(workers, axis, y, |start, y| {
        y.copy_from_slice(&x[start..start + y.len()]);
        normalize(axis, y);
    });
    Ok(())
}

/// As [`softmax`], with `y` for `x`.
///
/// # Errors
/// [`Error::Length`](crate::Error::Length).
pub fn softmax_in_place<T: Element>(workers: &Workers, axis: &Axis, y: &mut [T]) -> Result<()> {
    check_len("softmax", "y", axis.count(), y.len())?;
    slabs(workers, axis, y, |_, y| normalize(axis, y));
    Ok(())
}

/// `dx ← (dy − Σ dy·y) · y` along an axis; `y` is the softmax.
///
/// # Errors
/// [`Error::Length`](crate::Error::Length).
pub fn softmax_backward<T: Element>(
    workers: &Workers,
    axis: &Axis,
    y: &[T],
    dy: &[T],
    dx: &mut [T],
) -> Result<()> {
    check_len("softmax_backward", "dy", axis.count(), dy.len())?;
    check_len("softmax_backward", "dx", axis.count(), dx.len())?;
    check_len("softmax_backward", "y", axis.count(), y.len())?;
    slabs(workers, axis, dx, |start, dx| {
        dx.copy_from_slice(&dy[start..start + dx.len()]);
        backward(axis, &y[start..start + dx.len()], dx);
    });
    Ok(())
}

/// As [`softmax_backward`], with `dx` for `dy`.
///
/// # Errors
/// [`Error::Length`](crate::Error::Length).
pub fn softmax_backward_in_place<T: Element>(
    workers: &Workers,
    axis: &Axis,
    y: &[T],
    dx: &mut [T],
) -> Result<()> {
    check_len("softmax_backward", "dx", axis.count(), dx.len())?;
    check_len("softmax_backward", "y", axis.count(), y.len())?;
    slabs(workers, axis, dx, |start, dx| backward(axis, &y[start..start + dx.len()], dx));
    Ok(())
}

/// Calls `body(start, run)` for runs of whole slabs, a slab being an outer index's elements.
fn slabs<T: Element>(
    workers: &Workers,
    axis: &Axis,
    y: &mut [T],
    body: impl Fn(usize, &mut [T]) + Send + Sync,
) {
    let slab = axis.extent * axis.inner;
    if slab == 0 {
        return;
    }
    let run = (BLOCK / slab).max(1) * slab;
    workers.for_each_chunk(y, run, |index, y| body(index * run, y));
}

/// The softmax of whole slabs.
fn normalize<T: Element>(axis: &Axis, slabs: &mut [T]) {
    let slab = axis.extent * axis.inner;
    let room = if is_wide::<T>() { 0 } else { slab };
    with_scratch(room + 2 * axis.inner, |scratch: &mut [T::Acc]| {
        let (room, rest) = scratch.split_at_mut(room);
        let (peaks, sums) = rest.split_at_mut(axis.inner);
        for slab in slabs.chunks_exact_mut(slab) {
            update_widened(slab, room, |slab| match slab.len() == axis.extent {
                true => normalize_line(slab),
                false => normalize_lines(slab, peaks, sums),
            });
        }
    });
}

/// The softmax of a line that lies contiguously.
fn normalize_line<A: Element<Acc = A> + Float>(y: &mut [A]) {
    let larger = |a: A, b: A| if b > a { b } else { a };
    let peak =
        reduce_slice(y, Reducer { unit: A::neg_infinity(), term: |x| x, join: larger, sum: false });
    vectorized(
        #[inline(always)]
        || {
            for y in y.iter_mut() {
                *y = SimdMath::exp(*y - peak);
            }
        },
    );
    let sum = reduce_slice(y, sum_reducer(|e| e));
    vectorized(
        #[inline(always)]
        || {
            for y in y.iter_mut() {
                *y = *y / sum;
            }
        },
    );
}

/// The softmax of as many lines side by side as there are `peaks` and `sums`, which are scratch.
fn normalize_lines<A: Element + Float>(y: &mut [A], peaks: &mut [A], sums: &mut [A]) {
    peaks.fill(A::neg_infinity());
    sums.fill(A::zero());
    let inner = peaks.len();
    vectorized(
        #[inline(always)]
        || {
            for row in y.chunks_exact(inner) {
                for (peak, &x) in peaks.iter_mut().zip(row) {
                    *peak = if x > *peak { x } else { *peak };
                }
            }
            for row in y.chunks_exact_mut(inner) {
                for ((y, &peak), sum) in row.iter_mut().zip(&*peaks).zip(sums.iter_mut()) {
                    *y = SimdMath::exp(*y - peak);
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

fn backward<T: Element>(axis: &Axis, y: &[T], dx: &mut [T]) {
    let (inner, slab) = (axis.inner, axis.extent * axis.inner);
    with_scratch(inner, |dots: &mut [T::Acc]| {
        for (y, dx) in y.chunks_exact(slab).zip(dx.chunks_exact_mut(slab)) {
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
    use crate::host::testing::{for_each_element, fractions, operand, threads, wide};

    /// outer, extent, inner: empty, single, odd, spatial, and more than a block.
    const AXES: [[usize; 3]; 6] =
        [[0, 3, 2], [1, 1, 1], [3, 7, 1], [2, 5, 9], [64, 10, 1], [5000, 10, 1]];

    fn axis([outer, extent, inner]: [usize; 3]) -> Axis {
        Axis::new(outer, extent, inner).unwrap()
    }

    /// The definition, in `f64`, one line at a time.
    fn oracle(axis: &Axis, x: &[f64]) -> Vec<f64> {
        let mut y = vec![0.0; x.len()];
        for (o, i) in (0..axis.outer).flat_map(|o| (0..axis.inner).map(move |i| (o, i))) {
            let at = |e: usize| (o * axis.extent + e) * axis.inner + i;
            let sum: f64 = (0..axis.extent).map(|e| x[at(e)].exp()).sum();
            (0..axis.extent).for_each(|e| y[at(e)] = x[at(e)].exp() / sum);
        }
        y
    }

    fn unit<T: Element>() -> f64 {
        match T::DTYPE.size() {
            2 if T::DTYPE == crate::DType::Bf16 => 1.0 / 256.0,
            2 => 1.0 / 2048.0,
            4 => 1e-6,
            _ => 1e-14,
        }
    }

    fn close<T: Element>(got: &[T], want: &[f64]) {
        let near = |(got, want): (f64, &f64)| (got - want).abs() <= unit::<T>();
        assert!(wide(got).into_iter().zip(want).all(near), "{got:?}\n{want:?}");
    }

    fn forward_follows_the_definition<T: Element>() {
        for axis in AXES.map(axis) {
            let x: Vec<T> = fractions(1, axis.count());
            let want = oracle(&axis, &wide(&x));
            let mut first: Option<Vec<T>> = None;
            for workers in threads() {
                let mut y = vec![T::from_f64(f64::NAN); x.len()];
                softmax(&workers, &axis, &x, &mut y).unwrap();
                close(&y, &want);
                let mut z = x.clone();
                softmax_in_place(&workers, &axis, &mut z).unwrap();
                assert!(y == z);
                assert!(*first.get_or_insert(y.clone()) == y);
            }
        }
    }

    fn backward_follows_the_definition<T: Element>() {
        for axis in AXES.map(axis) {
            let (y, dy) = (fractions::<T>(2, axis.count()), fractions::<T>(3, axis.count()));
            let (wy, wdy) = (wide(&y), wide(&dy));
            let mut want = vec![0.0; y.len()];
            for (o, i) in (0..axis.outer).flat_map(|o| (0..axis.inner).map(move |i| (o, i))) {
                let at = |e: usize| (o * axis.extent + e) * axis.inner + i;
                let dot: f64 = (0..axis.extent).map(|e| wy[at(e)] * wdy[at(e)]).sum();
                (0..axis.extent).for_each(|e| want[at(e)] = (wdy[at(e)] - dot) * wy[at(e)]);
            }
            for workers in threads() {
                let mut dx = vec![T::from_f64(f64::NAN); y.len()];
                softmax_backward(&workers, &axis, &y, &dy, &mut dx).unwrap();
                let scale = 8.0 * unit::<T>();
                let near = |(got, want): (f64, &f64)| (got - want).abs() <= scale;
                assert!(wide(&dx).into_iter().zip(&want).all(near));
                let mut z = dy.clone();
                softmax_backward_in_place(&workers, &axis, &y, &mut z).unwrap();
                assert!(dx == z);
            }
        }
    }

    fn large_scores_do_not_overflow<T: Element>() {
        let x = [1000.0, 1000.0, -1000.0].map(T::from_f64);
        let mut y = x;
        softmax(&Workers::sequential(), &axis([1, 3, 1]), &x, &mut y).unwrap();
        assert_eq!(wide(&y), [0.5, 0.5, 0.0]);
    }

    for_each_element!(
        forward_follows_the_definition,
        backward_follows_the_definition,
        large_scores_do_not_overflow
    );

    #[test]
    fn nan_spreads_along_its_axis_alone() {
        let x = [f32::NAN, 1.0, 2.0, 2.0];
        let mut y = [0.0; 4];
        softmax(&Workers::sequential(), &axis([2, 2, 1]), &x, &mut y).unwrap();
        assert!(y[0].is_nan() && y[1].is_nan() && y[2..] == [0.5, 0.5]);
    }

    #[test]
    fn lengths_are_checked() {
        let (w, axis) = (&Workers::sequential(), &axis([2, 3, 1]));
        let (five, six) = (&mut [0.0f32; 5][..], &mut [0.0f32; 6][..]);
        assert_eq!(operand(softmax(w, axis, five, six)), ("softmax", "x"));
        assert_eq!(operand(softmax(w, axis, six, five)), ("softmax", "y"));
        assert_eq!(operand(softmax_in_place(w, axis, five)), ("softmax", "y"));
        let zeros = &[0.0f32; 6][..];
        let op = "softmax_backward";
        assert_eq!(operand(softmax_backward(w, axis, zeros, five, six)), (op, "dy"));
        assert_eq!(operand(softmax_backward(w, axis, five, zeros, six)), (op, "y"));
        assert_eq!(operand(softmax_backward(w, axis, zeros, zeros, five)), (op, "dx"));
        assert_eq!(operand(softmax_backward_in_place(w, axis, five, six)), (op, "y"));
    }
}
