//! Tree reduction: combines many elements into one, in an order that depends only on the number of
//! elements.
//!
//! Each chunk of [`CHUNK`] elements is reduced in a fixed number of lanes, so that the compiler can
//! vectorize the loops. The results of the chunks are combined pairwise, so that the rounding error
//! of a sum grows with the logarithm of the number of chunks.

#[cfg(target_arch = "x86_64")]
use crate::cast::cast;
use crate::cast::cast_slice;
use crate::{
    element::Element,
    host::simd::{
        accumulator::{CHUNK, accumulator_buffer, is_wide, widened},
        vectorized,
    },
};
#[cfg(target_arch = "x86_64")]
use crate::{element::is_same, host::reduction::x86};
use num_traits::Float;
use std::ops::Range;

/// Number of elements that one task of a reduction reads. With fewer than `2 · GRAIN` elements, two
/// threads are not faster than one.
pub(crate) const GRAIN: usize = 1 << 16;

/// Smallest inner extent at which each contiguous run is reduced separately. Runs shorter than
/// `LONG_RUN` are reduced together, as columns of a matrix.
pub(crate) const LONG_RUN: usize = 16;

/// Number of lanes in one row of accumulators: a whole number of vectors at every SIMD level.
pub(crate) const LANES: usize = 16;

/// Number of rows of [`LANES`] accumulators in a BLAS level 1 reduction, such as `dot`.
/// Independent chains of additions hide the latency of each addition.
pub(crate) const ACCUMULATOR_ROWS: usize = 4;

/// Number of elements that [`Reducer::reduce_slice`] reads at a time: one for each lane of two
/// accumulator rows.
const STEP: usize = 2 * LANES;

/// Number of rows that [`Reducer::reduce_rows`] reduces as a group: first each row to [`LANES`]
/// partial results, then the partial results of each row to one result.
const ROW_GROUP: usize = 8;

/// Largest number of columns that are reduced at a time, so that the accumulators stay in L1.
pub(crate) const COLUMN_BLOCK: usize = 256;

/// Number of rows in one block of [`Reducer::reduce_columns`]. The rows of a block are combined in
/// order, and the results of blocks pairwise.
const ROW_BLOCK: usize = 64;

/// Reduction of mapped elements, `combine(…combine(identity, map(x₀)), … map(xₙ))`, in an order
/// that depends only on the number of elements.
#[derive(Clone, Copy)]
pub(crate) struct Reducer<A, Map, Combine> {
    /// Identity of `combine`, which is the result for an empty slice.
    pub identity: A,
    /// Function that maps each element before `combine` reduces the elements.
    pub map: Map,
    /// Function that combines two partial results: that of earlier elements with that of later
    /// elements.
    pub combine: Combine,
    /// Whether `combine` is addition and `map(0)` is 0, as the x86-64 code for sums of rows
    /// requires.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    pub is_sum: bool,
}

/// Returns the reducer for `Σ map(x)`, with `map(0) = 0`.
pub(crate) fn sum_reducer<A, Map>(
    map: Map,
) -> Reducer<A, Map, impl Fn(A, A) -> A + Copy + Send + Sync>
where
    A: Element + Float,
    Map: Fn(A) -> A + Copy + Send + Sync,
{
    Reducer { identity: A::zero(), map, combine: |a, b| a + b, is_sum: true }
}

/// Returns the reducer that combines elements by `combine`, without mapping them first.
pub(crate) fn reducer<A, Combine>(
    identity: A,
    combine: Combine,
) -> Reducer<A, impl Fn(A) -> A + Copy + Send + Sync, Combine>
where
    Combine: Fn(A, A) -> A + Copy + Send + Sync,
{
    Reducer { identity, map: |x| x, combine, is_sum: false }
}

impl<A, Map, Combine> Reducer<A, Map, Combine>
where
    A: Element + Float,
    Map: Fn(A) -> A + Copy,
    Combine: Fn(A, A) -> A + Copy,
{
    pub(crate) fn reduce_slice<T: Element<Acc = A>>(self, x: &[T]) -> A {
        if const { is_wide::<T>() } {
            let parts = cast_slice(x).chunks(CHUNK).map(|x| self.reduce_chunk(x));
            return pairwise(parts, self.identity, self.combine);
        }
        let mut buffer = accumulator_buffer();
        let parts = x.chunks(CHUNK).map(|x| self.reduce_chunk(widened(x, &mut buffer)));
        pairwise(parts, self.identity, self.combine)
    }

    /// Reduces at most [`CHUNK`] elements. `reduce_chunk` is generic only over the accumulator
    /// type, so that `f32`, `f16` and `bf16` share the compiled code.
    fn reduce_chunk(self, x: &[A]) -> A {
        let lanes = vectorized(
            #[inline(always)]
            |_| self.to_lanes(x, x.len()),
        );
        reduce_lanes(lanes, self.combine)
    }

    /// Reduces each row of `extent` elements, and calls `store(result, y[i])` with the result of
    /// row `i`. Results are bit-identical to those of [`Self::reduce_slice`].
    #[inline(always)]
    pub(crate) fn reduce_rows<T: Element<Acc = A>, Y>(
        self,
        (x, extent): (&[T], usize),
        y: &mut [Y],
        store: impl Fn(A, &mut Y),
    ) {
        if const { !is_wide::<T>() } || extent > CHUNK || extent == 0 {
            for (i, y) in y.iter_mut().enumerate() {
                store(self.reduce_slice(&x[i * extent..][..extent]), y);
            }
            return;
        }
        #[cfg(target_arch = "x86_64")]
        if self.is_sum
            && const { is_same::<T, f32>() }
            && x86::sum_rows(
                cast_slice(x),
                extent,
                #[inline(always)]
                |x| cast((self.map)(cast(x))),
                y,
                #[inline(always)]
                |sum, y| store(cast(sum), y),
            )
        {
            return;
        }
        let x = cast_slice::<T, A>(x);
        vectorized(
            #[inline(always)]
            |_| {
                // The horizontal reduction has a separate loop, so that it does not affect how the
                // compiler vectorizes the accumulation.
                let mut lanes = [[self.identity; LANES]; ROW_GROUP];
                for (block, y) in y.chunks_mut(ROW_GROUP).enumerate() {
                    for (row, lanes) in lanes[..y.len()].iter_mut().enumerate() {
                        *lanes = self.to_lanes(&x[(block * ROW_GROUP + row) * extent..], extent);
                    }
                    for (y, lanes) in y.iter_mut().zip(&lanes) {
                        store(reduce_lanes(*lanes, self.combine), y);
                    }
                }
            },
        );
    }

    /// Reduces the first `len` elements of `x` to [`LANES`] partial results. `to_lanes` may read
    /// elements of `x` after the first `len`, but ignores them.
    #[inline(always)]
    fn to_lanes(self, x: &[A], len: usize) -> [A; LANES] {
        let mut lanes = [[self.identity; LANES]; 2];
        let (blocks, _) = x[..len].as_chunks::<STEP>();
        for x in blocks {
            lanes = self.step(lanes, x, STEP);
        }
        let x = &x[blocks.len() * STEP..];
        let rest_len = len - blocks.len() * STEP;
        if rest_len > 0 {
            lanes = match x.first_chunk() {
                Some(x) => self.step(lanes, x, rest_len),
                None => {
                    let mut padded_x = [self.identity; STEP];
                    padded_x[..rest_len].copy_from_slice(&x[..rest_len]);
                    self.step(lanes, &padded_x, rest_len)
                }
            };
        }
        let [mut first_row, second_row] = lanes;
        for i in 0..LANES {
            first_row[i] = (self.combine)(first_row[i], second_row[i]);
        }
        first_row
    }

    /// Combines each of the first `count` elements of `x` with one lane of the accumulators. Lanes
    /// that are passed by value stay in registers.
    #[inline(always)]
    fn step(self, mut lanes: [[A; LANES]; 2], x: &[A; STEP], count: usize) -> [[A; LANES]; 2] {
        for i in 0..LANES {
            let first_result = (self.combine)(lanes[0][i], (self.map)(x[i]));
            let second_result = (self.combine)(lanes[1][i], (self.map)(x[LANES + i]));
            lanes[0][i] = if i < count { first_result } else { lanes[0][i] };
            lanes[1][i] = if LANES + i < count { second_result } else { lanes[1][i] };
        }
        lanes
    }

    /// Reduces each column of a matrix of `rows` rows: `y[i]` ← the reduction of `x[r·stride + i]`
    /// over all rows `r`. The matrix `x` has at most [`COLUMN_BLOCK`] columns.
    pub(crate) fn reduce_columns<T: Element<Acc = A>>(
        self,
        (x, rows, stride): (&[T], usize, usize),
        y: &mut [A],
    ) {
        let columns = y.len();
        if rows <= ROW_BLOCK {
            return self.reduce_row_block((x, 0..rows, stride), y);
        }
        // The loop combines blocks like `pairwise`, but with a row of values at each level of the
        // tree.
        let blocks = rows.div_ceil(ROW_BLOCK);
        let levels = (usize::BITS - blocks.leading_zeros()) as usize;
        let mut pending_rows = vec![self.identity; levels * columns];
        for block in 0..blocks {
            let rows = block * ROW_BLOCK..rows.min((block + 1) * ROW_BLOCK);
            self.reduce_row_block((x, rows, stride), y);
            let mut level = 0;
            while block >> level & 1 == 1 {
                combine_rows(&pending_rows[level * columns..][..columns], y, self.combine);
                level += 1;
            }
            pending_rows[level * columns..][..columns].copy_from_slice(y);
        }
        y.fill(self.identity);
        for (level, row) in pending_rows.chunks_exact(columns.max(1)).enumerate() {
            if blocks >> level & 1 == 1 {
                combine_rows(row, y, self.combine);
            }
        }
    }

    /// Reduces the columns of a block of up to [`ROW_BLOCK`] rows, four rows at a time.
    fn reduce_row_block<T: Element<Acc = A>>(
        self,
        (x, rows, stride): (&[T], Range<usize>, usize),
        y: &mut [A],
    ) {
        let mut buffers = [[self.identity; COLUMN_BLOCK]; 4];
        let [buffer0, buffer1, buffer2, buffer3] = &mut buffers;
        let columns = y.len();
        let row = |r: usize| &x[r * stride..][..columns];
        let mut r = rows.start;
        y.fill(self.identity);
        while r + 4 <= rows.end {
            let (a, b) = (widened(row(r), buffer0), widened(row(r + 1), buffer1));
            let (c, d) = (widened(row(r + 2), buffer2), widened(row(r + 3), buffer3));
            self.add_four_rows([a, b, c, d], y);
            r += 4;
        }
        while r < rows.end {
            self.add_row(widened(row(r), buffer0), y);
            r += 1;
        }
    }

    /// Combines each element of `y` with the reduction of the four elements in its column.
    fn add_four_rows(self, [a, b, c, d]: [&[A]; 4], y: &mut [A]) {
        let Self { map, combine, .. } = self;
        vectorized(
            #[inline(always)]
            |_| {
                for ((((y, &a), &b), &c), &d) in y.iter_mut().zip(a).zip(b).zip(c).zip(d) {
                    let four_rows = combine(combine(map(a), map(b)), combine(map(c), map(d)));
                    *y = combine(*y, four_rows);
                }
            },
        );
    }

    /// Combines each element of `y` with the mapped element of `x` in its column.
    fn add_row(self, x: &[A], y: &mut [A]) {
        let Self { map, combine, .. } = self;
        vectorized(
            #[inline(always)]
            |_| y.iter_mut().zip(x).for_each(|(y, &x)| *y = combine(*y, map(x))),
        );
    }
}

/// `yᵢ ← combine(xᵢ, yᵢ)`
fn combine_rows<A: Copy>(x: &[A], y: &mut [A], combine: impl Fn(A, A) -> A) {
    vectorized(
        #[inline(always)]
        |_| y.iter_mut().zip(x).for_each(|(y, &x)| *y = combine(x, *y)),
    );
}

/// Combines neighbouring elements of `parts`, and then repeatedly combines neighbouring results
/// until one result is left.
pub(crate) fn pairwise<A: Copy>(
    mut parts: impl Iterator<Item = A>,
    identity: A,
    combine: impl Fn(A, A) -> A,
) -> A {
    let Some(first_part) = parts.next() else { return identity };
    // Return early for a single chunk, because most slices consist of one chunk.
    let Some(second_part) = parts.next() else { return first_part };
    // If bit b of `count` is set, `pending_results[b]` holds the combined result of 2ᵇ parts.
    let mut pending_results = [identity; usize::BITS as usize];
    pending_results[1] = combine(first_part, second_part);
    let mut count = 2usize;
    for mut part in parts {
        let levels = count.trailing_ones() as usize;
        for &earlier in &pending_results[..levels] {
            part = combine(earlier, part);
        }
        pending_results[levels] = part;
        count += 1;
    }
    let mut result = pending_results[count.trailing_zeros() as usize];
    while count & (count - 1) != 0 {
        count &= count - 1;
        result = combine(pending_results[count.trailing_zeros() as usize], result);
    }
    result
}

/// Combines the lower half of the lanes with the upper half, repeatedly, until one lane is left.
#[inline(always)]
pub(crate) fn reduce_lanes<A: Copy, const N: usize>(
    mut lanes: [A; N],
    combine: impl Fn(A, A) -> A,
) -> A {
    let mut half_len = N / 2;
    while half_len > 0 {
        for i in 0..half_len {
            lanes[i] = combine(lanes[i], lanes[i + half_len]);
        }
        half_len /= 2;
    }
    lanes[0]
}

/// Returns `x`, padded with zeros to `N` elements.
#[inline(always)]
pub(crate) fn zero_padded<A: Element, const N: usize>(x: &[A]) -> [A; N] {
    let mut padded_x = [A::default(); N];
    padded_x[..x.len()].copy_from_slice(x);
    padded_x
}
