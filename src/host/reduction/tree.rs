//! Folding many elements into one, in an order that depends on their number alone.
//!
//! A run of elements goes through a fixed number of lanes, runs are joined pairwise: so loops
//! vectorise, and the error of a sum grows with the logarithm of its length.

use crate::host::reduction::x86::row_sums;
#[cfg(target_arch = "x86_64")]
use crate::{element::DType, host::simd::has_avx512};
use crate::{
    element::Element,
    host::simd::{
        accumulator::{CHUNK, accumulator_buffer, is_wide, widened},
        vectorized,
    },
};
use bytemuck::cast;
use bytemuck::cast_slice;
use num_traits::Float;

/// Columns folded at a time: a block of accumulators that stays in the first-level cache.
pub(crate) const COLUMN_BLOCK: usize = 256;

/// Rows folded one after the other before they are joined pairwise.
const ROWS: usize = 64;

/// Rows of which lanes are filled before they are joined.
const GROUP: usize = 8;

const LANES: usize = 32;

const HALF: usize = LANES / 2;

/// What is folded: `join(…join(unit, term(x₀)), …term(xₙ))` in some fixed order.
#[derive(Clone, Copy)]
pub(crate) struct Reducer<A, Term, Join> {
    /// Result over nothing; joining it changes nothing.
    pub unit: A,
    /// What an element contributes.
    pub term: Term,
    /// Joins an earlier and a later part.
    pub join: Join,
    /// Whether it is a sum: `join` adds, and the term of 0 is 0.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    pub sum: bool,
}

/// The fold `Σ term(x)`; the term of 0 is 0.
pub(crate) fn sum_reducer<A, Term>(
    term: Term,
) -> Reducer<A, Term, impl Fn(A, A) -> A + Copy + Send + Sync>
where
    A: Element + Float,
    Term: Fn(A) -> A + Copy + Send + Sync,
{
    Reducer { unit: A::zero(), term, join: |a, b| a + b, sum: true }
}

/// Joins neighbours, then neighbours among the results, and so on.
pub(crate) fn pairwise<A: Copy>(
    mut parts: impl Iterator<Item = A>,
    unit: A,
    join: impl Fn(A, A) -> A,
) -> A {
    let Some(first) = parts.next() else { return unit };
    // Most runs are one part, or few.
    let Some(second) = parts.next() else { return first };
    // Bit b of the count tells that waiting[b] holds the join of 2^b parts.
    let mut waiting = [unit; usize::BITS as usize];
    waiting[1] = join(first, second);
    let mut count = 2usize;
    for mut part in parts {
        let levels = count.trailing_ones() as usize;
        for &earlier in &waiting[..levels] {
            part = join(earlier, part);
        }
        waiting[levels] = part;
        count += 1;
    }
    let mut sum = waiting[count.trailing_zeros() as usize];
    while count & (count - 1) != 0 {
        count &= count - 1;
        sum = join(waiting[count.trailing_zeros() as usize], sum);
    }
    sum
}

/// Folds one run of elements.
pub(crate) fn reduce_slice<T, Term, Join>(x: &[T], fold: Reducer<T::Acc, Term, Join>) -> T::Acc
where
    T: Element,
    Term: Fn(T::Acc) -> T::Acc + Copy,
    Join: Fn(T::Acc, T::Acc) -> T::Acc + Copy,
{
    let part = |x: &[T::Acc]| {
        let lanes = vectorized(
            #[inline(always)]
            || lanes_of(x, x.len(), fold),
        );
        reduce_lanes(lanes, fold.join)
    };
    if is_wide::<T>() {
        let x: &[T::Acc] = cast_slice(x);
        return pairwise(x.chunks(CHUNK).map(part), fold.unit, fold.join);
    }
    let mut room = accumulator_buffer();
    let parts = x.chunks(CHUNK).map(|x| part(widened(x, &mut room)));
    pairwise(parts, fold.unit, fold.join)
}

/// Folds rows of `extent` elements, as [`fold_slice`] does: `store(fold of row i, y[i])`.
#[inline(always)]
pub(crate) fn reduce_rows<T, Y, Term, Join>(
    (x, extent): (&[T], usize),
    fold: Reducer<T::Acc, Term, Join>,
    y: &mut [Y],
    store: impl Fn(T::Acc, &mut Y),
) where
    T: Element,
    Term: Fn(T::Acc) -> T::Acc + Copy,
    Join: Fn(T::Acc, T::Acc) -> T::Acc + Copy,
{
    if !is_wide::<T>() || extent > CHUNK || extent == 0 {
        for (i, y) in y.iter_mut().enumerate() {
            store(reduce_slice(&x[i * extent..][..extent], fold), y);
        }
        return;
    }
    #[cfg(target_arch = "x86_64")]
    if fold.sum && T::DTYPE == DType::F32 && has_avx512() {
        // SAFETY: the processor has what it is compiled for.
        #[allow(unsafe_code)]
        return unsafe {
            row_sums::sum_rows(
                cast_slice(x),
                extent,
                #[inline(always)]
                |x| cast((fold.term)(cast(x))),
                y,
                #[inline(always)]
                |sum, y| store(cast(sum), y),
            );
        };
    }
    let x = cast_slice::<T, T::Acc>(x);
    vectorized(
        #[inline(always)]
        || {
            // In two loops: what joins lanes is not to shape what fills them.
            let mut lanes = [[fold.unit; HALF]; GROUP];
            for (block, y) in y.chunks_mut(GROUP).enumerate() {
                for (row, lanes) in lanes[..y.len()].iter_mut().enumerate() {
                    *lanes = lanes_of(&x[(block * GROUP + row) * extent..], extent, fold);
                }
                for (y, lanes) in y.iter_mut().zip(&lanes) {
                    store(reduce_lanes(*lanes, fold.join), y);
                }
            }
        },
    );
}

/// Folds the first `len` elements of `x` into lanes; some that follow may be read.
#[inline(always)]
fn lanes_of<A, Term, Join>(x: &[A], len: usize, fold: Reducer<A, Term, Join>) -> [A; HALF]
where
    A: Copy,
    Term: Fn(A) -> A,
    Join: Fn(A, A) -> A,
{
    let mut lanes = [[fold.unit; HALF]; 2];
    let (whole, _) = x[..len].as_chunks::<LANES>();
    for x in whole {
        lanes = step(lanes, x, LANES, &fold);
    }
    let x = &x[whole.len() * LANES..];
    let left = len - whole.len() * LANES;
    if left > 0 {
        lanes = match x.first_chunk() {
            Some(x) => step(lanes, x, left, &fold),
            None => {
                let mut room = [fold.unit; LANES];
                room[..left].copy_from_slice(&x[..left]);
                step(lanes, &room, left, &fold)
            }
        };
    }
    let [mut first, second] = lanes;
    for i in 0..HALF {
        first[i] = (fold.join)(first[i], second[i]);
    }
    first
}

/// Takes the first `count` elements into a lane each; by value, which keeps them in registers.
#[inline(always)]
fn step<A, Term, Join>(
    mut lanes: [[A; HALF]; 2],
    x: &[A; LANES],
    count: usize,
    fold: &Reducer<A, Term, Join>,
) -> [[A; HALF]; 2]
where
    A: Copy,
    Term: Fn(A) -> A,
    Join: Fn(A, A) -> A,
{
    for i in 0..HALF {
        let first = (fold.join)(lanes[0][i], (fold.term)(x[i]));
        let second = (fold.join)(lanes[1][i], (fold.term)(x[HALF + i]));
        lanes[0][i] = if i < count { first } else { lanes[0][i] };
        lanes[1][i] = if HALF + i < count { second } else { lanes[1][i] };
    }
    lanes
}

/// Joins lanes at half the distance until one is left.
#[inline(always)]
pub(crate) fn reduce_lanes<A: Copy, const N: usize>(
    mut lanes: [A; N],
    join: impl Fn(A, A) -> A,
) -> A {
    let mut half = N / 2;
    while half > 0 {
        for i in 0..half {
            lanes[i] = join(lanes[i], lanes[i + half]);
        }
        half /= 2;
    }
    lanes[0]
}

/// Folds the rows of a matrix: `y[i] ← fold over r of x[r·stride + i]`, at most [`WIDTH`] columns.
pub(crate) fn reduce_columns<T, Term, Join>(
    (x, rows, stride): (&[T], usize, usize),
    fold: Reducer<T::Acc, Term, Join>,
    y: &mut [T::Acc],
) where
    T: Element,
    Term: Fn(T::Acc) -> T::Acc + Copy,
    Join: Fn(T::Acc, T::Acc) -> T::Acc + Copy,
{
    let width = y.len();
    if rows <= ROWS {
        return fold_block((x, 0..rows, stride), fold, y);
    }
    // As in `pairwise`, with a row of values for each level.
    let blocks = rows.div_ceil(ROWS);
    let levels = (usize::BITS - blocks.leading_zeros()) as usize;
    let mut waiting = vec![fold.unit; levels * width];
    for block in 0..blocks {
        let rows = block * ROWS..rows.min((block + 1) * ROWS);
        fold_block((x, rows, stride), fold, y);
        let mut level = 0;
        while block >> level & 1 == 1 {
            join_rows(&waiting[level * width..][..width], y, fold.join);
            level += 1;
        }
        waiting[level * width..][..width].copy_from_slice(y);
    }
    y.fill(fold.unit);
    for (level, row) in waiting.chunks_exact(width.max(1)).enumerate() {
        if blocks >> level & 1 == 1 {
            join_rows(row, y, fold.join);
        }
    }
}

/// `yᵢ ← join(xᵢ, yᵢ)`
fn join_rows<A: Copy>(x: &[A], y: &mut [A], join: impl Fn(A, A) -> A) {
    vectorized(
        #[inline(always)]
        || y.iter_mut().zip(x).for_each(|(y, &x)| *y = join(x, *y)),
    );
}

/// Folds up to [`ROWS`] rows, four at a time.
fn fold_block<T, Term, Join>(
    (x, rows, stride): (&[T], std::ops::Range<usize>, usize),
    fold: Reducer<T::Acc, Term, Join>,
    y: &mut [T::Acc],
) where
    T: Element,
    Term: Fn(T::Acc) -> T::Acc + Copy,
    Join: Fn(T::Acc, T::Acc) -> T::Acc + Copy,
{
    let Reducer { unit, term, join, .. } = fold;
    let mut room = [[unit; COLUMN_BLOCK]; 4];
    let [room0, room1, room2, room3] = &mut room;
    let width = y.len();
    let row = |r: usize| &x[r * stride..][..width];
    let mut r = rows.start;
    y.fill(unit);
    while r + 4 <= rows.end {
        let (a, b) = (widened(row(r), room0), widened(row(r + 1), room1));
        let (c, d) = (widened(row(r + 2), room2), widened(row(r + 3), room3));
        vectorized(
            #[inline(always)]
            || {
                for ((((y, &a), &b), &c), &d) in y.iter_mut().zip(a).zip(b).zip(c).zip(d) {
                    let four = join(join(term(a), term(b)), join(term(c), term(d)));
                    *y = join(*y, four);
                }
            },
        );
        r += 4;
    }
    while r < rows.end {
        let a = widened(row(r), room0);
        vectorized(
            #[inline(always)]
            || y.iter_mut().zip(a).for_each(|(y, &a)| *y = join(*y, term(a))),
        );
        r += 1;
    }
}
