//! Local response normalisation.
//!
//! Both regions are a window along one axis: channels of an image, or rows of a plane, whose
//! rows are then summed along themselves as well. Windows are summed afresh for each element
//! rather than updated, so that a large response leaves no error behind it.

use crate::{
    element::Element,
    error::{Result, check_len},
    host::{
        cache::scratch::with_scratch,
        simd::{
            accumulator::{CHUNK, accumulator_buffer, narrow, widen, widened},
            vectorized,
        },
        threads::Workers,
    },
    op::{Axis, Lrn, LrnRegion},
};
use num_traits::Float;
use std::ops::Range;

/// Elements of one task, in whole positions along the axis.
const GRAIN: usize = 1 << 15;

/// Positions inside of the axis that are worked on at a time, to keep their terms in cache.
const BLOCK: usize = 128;

/// `scale ← k + α/n · Σ x²` over each element's region, `y ← x · scale^(−β)`: see [`Lrn`].
///
/// `scale` is for [`lrn_backward`]; `y` is computed from it before it is rounded to `T`.
/// `s^(−3/4)` is computed as `1 / (√s · √√s)`.
///
/// # Errors
/// [`Error::Length`](crate::Error::Length) names the operand; [`Error::InvalidInput`](crate::Error) a
/// region of even extent.
#[doc(alias = "LRNLayer")]
pub fn lrn<T: Element>(
    workers: &Workers,
    op: &Lrn,
    x: &[T],
    scale: &mut [T],
    y: &mut [T],
) -> Result<()> {
    op.check()?;
    check_len("lrn", "x", op.count(), x.len())?;
    check_len("lrn", "scale", op.count(), scale.len())?;
    check_len("lrn", "y", op.count(), y.len())?;
    let windows = LrnWindows::of(op);
    let (size, constants) = (windows.per_task(), Constants::<T::Acc>::of(op));
    workers.for_each_chunk_pair((scale, size), (y, size), |task, scale, y| {
        let start = task * size;
        let mut rooms = (accumulator_buffer(), accumulator_buffer());
        windows.sums(
            start..start + y.len(),
            #[inline(always)]
            |at, terms| {
                let x = widened(&x[at..][..terms.len()], &mut rooms.0);
                terms.iter_mut().zip(x).for_each(|(term, &x)| *term = x * x);
            },
            #[inline(always)]
            |at, sums| {
                let (x, local) = (&x[at..][..sums.len()], at - start..at - start + sums.len());
                let x = widened(x, &mut rooms.1);
                sums.iter_mut().for_each(|s| *s = constants.k + constants.factor * *s);
                narrow(sums, &mut scale[local.clone()]);
                constants.power(sums);
                sums.iter_mut().zip(x).for_each(|(s, &x)| *s = x * *s);
                narrow(sums, &mut y[local]);
            },
        );
    });
    Ok(())
}

/// `dx ← dy · s^(−β) − 2αβ/n · x · Σ dy·y/s`, where `s` is [`lrn`]'s `scale` and the sum is over
/// the elements whose region holds this one.
///
/// # Errors
/// [`Error::Length`](crate::Error::Length) names the operand; [`Error::InvalidInput`](crate::Error) a
/// region of even extent.
pub fn lrn_backward<T: Element>(
    workers: &Workers,
    op: &Lrn,
    x: &[T],
    y: &[T],
    scale: &[T],
    dy: &[T],
    dx: &mut [T],
) -> Result<()> {
    op.check()?;
    let given = [("x", x.len()), ("y", y.len()), ("scale", scale.len()), ("dy", dy.len())];
    for (operand, len) in given.into_iter().chain([("dx", dx.len())]) {
        check_len("lrn_backward", operand, op.count(), len)?;
    }
    let windows = LrnWindows::of(op);
    let (size, constants) = (windows.per_task(), Constants::<T::Acc>::of(op));
    let factor = T::acc(2.0) * constants.beta * constants.factor;
    workers.for_each_chunk(dx, size, |task, dx| {
        let start = task * size;
        let mut rooms = [accumulator_buffer(), accumulator_buffer(), accumulator_buffer()];
        let mut others = [accumulator_buffer(), accumulator_buffer(), accumulator_buffer()];
        windows.sums(
            start..start + dx.len(),
            #[inline(always)]
            |at, terms| {
                let here = at..at + terms.len();
                let [room_y, room_s, room_dy] = &mut rooms;
                let (y, s) =
                    (widened(&y[here.clone()], room_y), widened(&scale[here.clone()], room_s));
                let dy = widened(&dy[here], room_dy);
                for (term, ((&y, &s), &dy)) in terms.iter_mut().zip(y.iter().zip(s).zip(dy)) {
                    *term = dy * y / s;
                }
            },
            #[inline(always)]
            |at, sums| {
                let here = at..at + sums.len();
                let [room_x, room_dy, power] = &mut others;
                let (x, dy) =
                    (widened(&x[here.clone()], room_x), widened(&dy[here.clone()], room_dy));
                let power = &mut power[..sums.len()];
                widen(&scale[here], power);
                constants.power(power);
                let factors = power.iter().zip(x.iter().zip(dy));
                for (sum, (&power, (&x, &dy))) in sums.iter_mut().zip(factors) {
                    *sum = dy * power - factor * x * *sum;
                }
                narrow(sums, &mut dx[at - start..][..sums.len()]);
            },
        );
    });
    Ok(())
}

/// The windows that regions are made of.
struct LrnWindows {
    axis: Axis,
    /// Positions to either side of the middle.
    half: usize,
    /// Positions inside of the axis that are worked on at a time.
    block: usize,
    /// Whether windows reach as far to the sides, inside of the axis.
    square: bool,
}

impl LrnWindows {
    fn of(op: &Lrn) -> Self {
        let [height, width] = op.plane;
        let half = op.size / 2;
        match op.region {
            LrnRegion::AcrossChannels => {
                let inner = height * width;
                let axis = Axis { outer: op.batch, extent: op.channels, inner };
                Self { axis, half, block: inner.min(BLOCK), square: false }
            }
            LrnRegion::WithinChannel => {
                let outer = op.batch * op.channels;
                let axis = Axis { outer, extent: height, inner: width };
                Self { axis, half, block: width, square: true }
            }
        }
    }

    /// Elements of a task: whole positions along the axis, of however many outer ones.
    fn per_task(&self) -> usize {
        let inner = self.axis.inner.max(1);
        (GRAIN / inner).max(1) * inner
    }

    /// Positions in the window about `position`; both count through all outer ones.
    #[inline(always)]
    fn about(&self, position: usize) -> Range<usize> {
        let extent = self.axis.extent;
        let (first, at) = (position / extent * extent, position % extent);
        let end = at.saturating_add(self.half).saturating_add(1).min(extent);
        first + at.saturating_sub(self.half)..first + end
    }

    /// Calls `term(at, terms)` to have terms written from element `at` on, and `each(at, sums)`
    /// with their sums over the windows about the elements from `at` on, which may be changed.
    /// There is at least one element, and never is more than a chunk asked for at a time.
    fn sums<A: Element<Acc = A> + Float>(
        &self,
        elements: Range<usize>,
        mut term: impl FnMut(usize, &mut [A]),
        mut each: impl FnMut(usize, &mut [A]),
    ) {
        let inner = self.axis.inner;
        let positions = elements.start / inner..elements.end / inner;
        let first = self.about(positions.start).start;
        let needed = first..self.about(positions.end - 1).end;
        with_scratch::<A, _>((needed.len() + 2) * self.block, |scratch| {
            vectorized(
                #[inline(always)]
                || {
                    let (lines, terms) = scratch.split_at_mut(2 * self.block);
                    let (sums, room) = lines.split_at_mut(self.block);
                    for start in (0..inner).step_by(self.block) {
                        let len = self.block.min(inner - start);
                        let (sums, room) = (&mut sums[..len], &mut room[..len]);
                        for (position, terms) in needed.clone().zip(terms.chunks_mut(len)) {
                            in_chunks(position * inner + start, terms, &mut term);
                        }
                        for position in positions.clone() {
                            let window = self.about(position);
                            sum_lines(&terms[(window.start - first) * len..], window.len(), sums);
                            if self.square {
                                sum_sideways(self.half, sums, room);
                                sums.copy_from_slice(room);
                            }
                            in_chunks(position * inner + start, sums, &mut each);
                        }
                    }
                },
            );
        });
    }
}

/// Calls `body` with a chunk at a time of what lies from element `at` on.
#[inline(always)]
fn in_chunks<A>(at: usize, line: &mut [A], body: &mut impl FnMut(usize, &mut [A])) {
    for (i, part) in line.chunks_mut(CHUNK).enumerate() {
        body(at + i * CHUNK, part);
    }
}

/// `y ← Σ` of the first `count` lines of `x`, each as long as `y`; at least one.
#[inline(always)]
fn sum_lines<A: Element + Float>(x: &[A], count: usize, y: &mut [A]) {
    let (first, others) = x[..count * y.len()].split_at(y.len());
    y.copy_from_slice(first);
    for x in others.chunks_exact(y.len()) {
        y.iter_mut().zip(x).for_each(|(y, &x)| *y = *y + x);
    }
}

/// `y[i] ← Σ x[j]` over `|i − j| ≤ half`; equal lengths.
#[inline(always)]
fn sum_sideways<A: Element + Float>(half: usize, x: &[A], y: &mut [A]) {
    let len = x.len();
    y.copy_from_slice(x);
    for shift in 1..=half.min(len - 1) {
        y[shift..].iter_mut().zip(x).for_each(|(y, &x)| *y = *y + x);
        y[..len - shift].iter_mut().zip(&x[shift..]).for_each(|(y, &x)| *y = *y + x);
    }
}

/// What the formula is made of.
struct Constants<A> {
    k: A,
    /// `α/n`.
    factor: A,
    beta: A,
    /// Whether β is ¾.
    three_quarters: bool,
}

impl<A: Element + Float> Constants<A> {
    fn of(op: &Lrn) -> Self {
        let size = op.size as f64;
        let (k, n) = match op.region {
            LrnRegion::AcrossChannels => (op.k, size),
            LrnRegion::WithinChannel => (1.0, size * size),
        };
        Self {
            k: A::from_f64(k),
            factor: A::from_f64(op.alpha / n),
            beta: A::from_f64(op.beta),
            three_quarters: op.beta == 0.75,
        }
    }

    /// `s ← s^(−β)`.
    #[inline(always)]
    fn power(&self, s: &mut [A]) {
        if self.three_quarters {
            // Two roots and a division are vector instructions, and each is rounded correctly.
            s.iter_mut().for_each(|s| *s = A::one() / (s.sqrt() * s.sqrt().sqrt()));
        } else {
            s.iter_mut().for_each(|s| *s = s.powf(-self.beta));
        }
    }
}

#[cfg(test)]
mod tests;
