//! Local response normalization.
//!
//! The region of an element spans neighbouring channels, or a square within a channel. A first pass
//! adds squared elements over neighbouring channels, or over neighbouring rows of a channel. For a
//! square region, a second pass adds the sums of the first pass over neighbouring columns. The
//! elements of each window are summed separately. A running sum over windows would be faster, but
//! would carry the rounding error of a large element into later windows.

use crate::{
    element::Element,
    error::Result,
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

/// Approximate number of elements in one LRN task, which consists of whole channels, or of whole
/// rows if regions are squares.
const GRAIN: usize = 1 << 15;

/// Largest number of elements along the inner axis that are computed at a time, chosen so that the
/// terms of a window stay in L2. With shorter blocks, the hardware prefetcher detects the shorter
/// sequential runs of the operands too late.
const BLOCK: usize = 4096;

/// Divisor of the length of all blocks but the last one, so that loops need no scalar iterations.
const BLOCK_UNIT: usize = 16;

/// `scale ← k + α/n · Σ x²` over the region of each element, and `y ← x · scale^(−β)`; see [`Lrn`].
///
/// [`lrn_backward`] reads `scale`. `lrn` computes `y` from the value of `scale` before the rounding
/// to `T`. If β = ¾, `lrn` computes `scale^(−β)` as `1 / (√scale · √√scale)`.
///
/// # Errors
/// Returns [`Error::Length`](crate::Error::Length), which names the operand, if an operand has the
/// wrong length. Returns [`Error::InvalidInput`](crate::Error::InvalidInput) for a region with an
/// even size.
#[doc(alias = "LRNLayer")]
pub(crate) fn lrn<T: Element>(
    workers: &Workers,
    op: &Lrn,
    x: &[T],
    scale: &mut [T],
    y: &mut [T],
) -> Result<()> {
    op.check_operands("lrn", &[("x", x.len()), ("scale", scale.len()), ("y", y.len())])?;
    let windows = LrnWindows::new(op);
    let (task_len, constants) = (windows.task_len(workers), Constants::<T::Acc>::new(op));
    workers.for_each_chunk_pair((scale, task_len), (y, task_len), |task, scale, y| {
        let start = task * task_len;
        let (mut term_x, mut sum_x) = (accumulator_buffer(), accumulator_buffer());
        windows.for_each_sum(
            start..start + y.len(),
            #[inline(always)]
            |i, terms| {
                let x = widened(&x[i..][..terms.len()], &mut term_x);
                terms.iter_mut().zip(x).for_each(|(term, &x)| *term = x * x);
            },
            #[inline(always)]
            |i, sums| {
                let range = i - start..i - start + sums.len();
                let x = widened(&x[i..][..sums.len()], &mut sum_x);
                sums.iter_mut().for_each(|s| *s = constants.k + constants.factor * *s);
                narrow(sums, &mut scale[range.clone()]);
                constants.power(sums);
                sums.iter_mut().zip(x).for_each(|(s, &x)| *s = x * *s);
                narrow(sums, &mut y[range]);
            },
        );
    });
    Ok(())
}

/// `dx ← dy · s^(−β) − 2αβ/n · x · Σ dy·y/s`, where `s` is the `scale` of [`lrn`]. The sum
/// `Σ dy·y/s` runs over all elements whose region contains the element of `dx`.
///
/// # Errors
/// Returns any error from [`lrn`].
pub(crate) fn lrn_backward<T: Element>(
    workers: &Workers,
    op: &Lrn,
    x: &[T],
    y: &[T],
    scale: &[T],
    dy: &[T],
    dx: &mut [T],
) -> Result<()> {
    let inputs = [("x", x.len()), ("y", y.len()), ("scale", scale.len()), ("dy", dy.len())];
    op.check_operands("lrn_backward", &inputs)?;
    op.check_operands("lrn_backward", &[("dx", dx.len())])?;
    let windows = LrnWindows::new(op);
    let (task_len, constants) = (windows.task_len(workers), Constants::<T::Acc>::new(op));
    let factor = T::acc(2.0) * constants.beta * constants.factor;
    workers.for_each_chunk(dx, task_len, |task, dx| {
        let start = task * task_len;
        let mut term_buffers = [accumulator_buffer(), accumulator_buffer(), accumulator_buffer()];
        let mut sum_buffers = [accumulator_buffer(), accumulator_buffer(), accumulator_buffer()];
        windows.for_each_sum(
            start..start + dx.len(),
            #[inline(always)]
            |i, terms| {
                let range = i..i + terms.len();
                let [wide_y, wide_s, wide_dy] = &mut term_buffers;
                let y = widened(&y[range.clone()], wide_y);
                let s = widened(&scale[range.clone()], wide_s);
                let dy = widened(&dy[range], wide_dy);
                for (term, ((&y, &s), &dy)) in terms.iter_mut().zip(y.iter().zip(s).zip(dy)) {
                    *term = dy * y / s;
                }
            },
            #[inline(always)]
            |i, sums| {
                let range = i..i + sums.len();
                let [wide_x, wide_dy, power] = &mut sum_buffers;
                let x = widened(&x[range.clone()], wide_x);
                let dy = widened(&dy[range.clone()], wide_dy);
                let power = &mut power[..sums.len()];
                widen(&scale[range], power);
                constants.power(power);
                let factors = power.iter().zip(x.iter().zip(dy));
                for (sum, (&power, (&x, &dy))) in sums.iter_mut().zip(factors) {
                    *sum = dy * power - factor * x * *sum;
                }
                narrow(sums, &mut dx[i - start..][..sums.len()]);
            },
        );
    });
    Ok(())
}

/// Windows over which LRN sums: ranges of channels, or squares within a channel.
struct LrnWindows {
    axis: Axis,
    /// Number of positions in a window on either side of the window's centre.
    radius: usize,
    /// Number of elements along the inner axis that are computed at a time.
    block: usize,
    /// Whether windows are squares, which extend by `radius` along the inner axis as well.
    is_square: bool,
}

impl LrnWindows {
    fn new(op: &Lrn) -> Self {
        let [height, width] = op.plane;
        let radius = op.size / 2;
        match op.region {
            LrnRegion::AcrossChannels => {
                let inner = height * width;
                let axis = Axis { outer: op.batch, extent: op.channels, inner };
                let even_len = inner.div_ceil(inner.div_ceil(BLOCK).max(1));
                let block = even_len.next_multiple_of(BLOCK_UNIT).min(inner);
                Self { axis, radius, block, is_square: false }
            }
            LrnRegion::WithinChannel => {
                let outer = op.batch * op.channels;
                let axis = Axis { outer, extent: height, inner: width };
                Self { axis, radius, block: width, is_square: true }
            }
        }
    }

    /// Returns the number of elements in one task: a multiple of `inner`. A task may span several
    /// outer indices.
    fn task_len(&self, workers: &Workers) -> usize {
        let inner = self.axis.inner.max(1);
        workers.even_units(self.axis.outer * self.axis.extent, inner, GRAIN) * inner
    }

    /// Returns the range of positions in the window centred at `position`. Position `o·extent + i`
    /// is index `i` along the axis at outer index `o`.
    #[inline(always)]
    fn window(&self, position: usize) -> Range<usize> {
        let extent = self.axis.extent;
        let (first, centre) = (position / extent * extent, position % extent);
        let end = centre.saturating_add(self.radius).saturating_add(1).min(extent);
        first + centre.saturating_sub(self.radius)..first + end
    }

    /// Sums the terms in the window of each element in the range `elements`, which must not be
    /// empty.
    ///
    /// `term(i, terms)` fills `terms` with the terms of the elements from index `i` on. `body(i,
    /// sums)` receives the sums of the windows centred at the elements from `i` on, and may change
    /// `sums`. `term` and `body` are called with at most [`CHUNK`] elements.
    fn for_each_sum<A: Element<Acc = A> + Float>(
        &self,
        elements: Range<usize>,
        mut term: impl FnMut(usize, &mut [A]),
        mut body: impl FnMut(usize, &mut [A]),
    ) {
        let inner = self.axis.inner;
        let positions = elements.start / inner..elements.end / inner;
        let first = self.window(positions.start).start;
        // Only the terms of the rows in the current window are stored. The row of terms of a
        // position is the position modulo the number of stored rows.
        let stored_rows = self.radius.saturating_mul(2).saturating_add(1).min(self.axis.extent);
        with_scratch::<A, _>((stored_rows + 2) * self.block, |scratch| {
            vectorized(
                #[inline(always)]
                |_| {
                    let (rows, terms) = scratch.split_at_mut(2 * self.block);
                    let (sums, row_sums) = rows.split_at_mut(self.block);
                    for start in (0..inner).step_by(self.block) {
                        let len = self.block.min(inner - start);
                        let (sums, row_sums) = (&mut sums[..len], &mut row_sums[..len]);
                        let mut next_term = first;
                        for position in positions.clone() {
                            let window = self.window(position);
                            for position in next_term..window.end {
                                let terms = &mut terms[position % stored_rows * len..][..len];
                                for_each_part(position * inner + start, terms, &mut term);
                            }
                            next_term = window.end;
                            sum_rows(terms, stored_rows, window, sums);
                            if self.is_square {
                                sum_windows_of_row(self.radius, sums, row_sums);
                                sums.copy_from_slice(row_sums);
                            }
                            for_each_part(position * inner + start, sums, &mut body);
                        }
                    }
                },
            );
        });
    }
}

/// Calls `body(i, part)` for consecutive parts of `row` with up to [`CHUNK`] elements each. `i` is
/// the index of the first element of `part`, and `first` is the index of the first element of
/// `row`.
#[inline(always)]
fn for_each_part<A>(first: usize, row: &mut [A], body: &mut impl FnMut(usize, &mut [A])) {
    for (i, part) in row.chunks_mut(CHUNK).enumerate() {
        body(first + i * CHUNK, part);
    }
}

/// Sets `y` to the sum of the rows at the positions in `window`, which must not be empty. The row
/// at position `i` is row `i % rows` of `x`. Each row of `x` has `y.len()` elements.
#[inline(always)]
fn sum_rows<A: Element + Float>(x: &[A], rows: usize, window: Range<usize>, y: &mut [A]) {
    let len = y.len();
    let row = |position: usize| &x[position % rows * len..][..len];
    let mut position = window.start;
    if window.len() >= 3 {
        let (first, second, third) = (row(position), row(position + 1), row(position + 2));
        for (y, ((&a, &b), &c)) in y.iter_mut().zip(first.iter().zip(second).zip(third)) {
            *y = a + b + c;
        }
        position += 3;
    } else {
        y.copy_from_slice(row(position));
        position += 1;
    }
    // Two rows at a time halve the number of loads and stores of `y`.
    while position + 1 < window.end {
        let (first, second) = (row(position), row(position + 1));
        for (y, (&a, &b)) in y.iter_mut().zip(first.iter().zip(second)) {
            *y = *y + a + b;
        }
        position += 2;
    }
    if position < window.end {
        y.iter_mut().zip(row(position)).for_each(|(y, &x)| *y = *y + x);
    }
}

/// `y[i] ← Σ x[j]` over `|i − j| ≤ radius`. `x` and `y` have the same length.
#[inline(always)]
fn sum_windows_of_row<A: Element + Float>(radius: usize, x: &[A], y: &mut [A]) {
    let len = x.len();
    y.copy_from_slice(x);
    for shift in 1..=radius.min(len - 1) {
        y[shift..].iter_mut().zip(x).for_each(|(y, &x)| *y = *y + x);
        y[..len - shift].iter_mut().zip(&x[shift..]).for_each(|(y, &x)| *y = *y + x);
    }
}

/// Constants of the LRN formula, in the accumulator type.
struct Constants<A> {
    k: A,
    /// Factor `α/n` of the sum of squares.
    factor: A,
    beta: A,
    /// Whether the exponent β is ¾, for which square roots replace `powf`.
    beta_is_three_quarters: bool,
}

impl<A: Element + Float> Constants<A> {
    fn new(op: &Lrn) -> Self {
        let size = op.size as f64;
        let (k, n) = match op.region {
            LrnRegion::AcrossChannels => (op.k, size),
            LrnRegion::WithinChannel => (1.0, size * size),
        };
        Self {
            k: A::from_f64(k),
            factor: A::from_f64(op.alpha / n),
            beta: A::from_f64(op.beta),
            beta_is_three_quarters: op.beta == 0.75,
        }
    }

    /// `s ← s^(−β)`.
    #[inline(always)]
    fn power(&self, s: &mut [A]) {
        if self.beta_is_three_quarters {
            // Square roots and divisions compile to vector instructions, but `powf` is a function
            // call for each element.
            s.iter_mut().for_each(|s| *s = A::one() / (s.sqrt() * s.sqrt().sqrt()));
        } else {
            s.iter_mut().for_each(|s| *s = s.powf(-self.beta));
        }
    }
}

#[cfg(test)]
mod tests;
