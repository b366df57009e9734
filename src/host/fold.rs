//! Folding many elements into one, in an order that depends on their number alone.
//!
//! A run of elements goes through a fixed number of lanes, runs are joined pairwise: so loops
//! vectorise, and the error of a sum grows with the logarithm of its length.

use super::{
    simd::vectorized,
    widen::{CHUNK, chunk, is_wide, widened},
};
use crate::element::Element;
use bytemuck::cast_slice;
use num_traits::Float;

/// Columns folded at a time: a block of accumulators that stays in the first-level cache.
pub(super) const WIDTH: usize = 256;

/// Rows folded one after the other before they are joined pairwise.
const ROWS: usize = 64;

const LANES: usize = 32;

/// What is folded: `join(…join(unit, term(x₀)), …term(xₙ))` in some fixed order.
#[derive(Clone, Copy)]
pub(super) struct Fold<A, Term, Join> {
    /// Result over nothing; joining it changes nothing.
    pub unit: A,
    /// What an element contributes.
    pub term: Term,
    /// Joins an earlier and a later part.
    pub join: Join,
}

/// The fold `Σ term(x)`.
pub(super) fn sum_of<A, Term>(term: Term) -> Fold<A, Term, impl Fn(A, A) -> A + Copy + Send + Sync>
where
    A: Element + Float,
    Term: Fn(A) -> A + Copy + Send + Sync,
{
    Fold { unit: A::zero(), term, join: |a, b| a + b }
}

/// Joins neighbours, then neighbours among the results, and so on.
pub(super) fn pairwise<A: Copy>(
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
pub(super) fn fold_slice<T, Term, Join>(x: &[T], fold: Fold<T::Acc, Term, Join>) -> T::Acc
where
    T: Element,
    Term: Fn(T::Acc) -> T::Acc + Copy,
    Join: Fn(T::Acc, T::Acc) -> T::Acc + Copy,
{
    let part = |x: &[T::Acc]| {
        vectorized(
            #[inline(always)]
            || fold_chunk(x, fold),
        )
    };
    if is_wide::<T>() {
        let x: &[T::Acc] = cast_slice(x);
        return pairwise(x.chunks(CHUNK).map(part), fold.unit, fold.join);
    }
    let mut room = chunk();
    let parts = x.chunks(CHUNK).map(|x| part(widened(x, &mut room)));
    pairwise(parts, fold.unit, fold.join)
}

#[inline(always)]
fn fold_chunk<A, Term, Join>(x: &[A], fold: Fold<A, Term, Join>) -> A
where
    A: Copy,
    Term: Fn(A) -> A,
    Join: Fn(A, A) -> A,
{
    let mut lanes = [fold.unit; LANES];
    let (whole, rest) = x.as_chunks::<LANES>();
    for x in whole {
        for i in 0..LANES {
            lanes[i] = (fold.join)(lanes[i], (fold.term)(x[i]));
        }
    }
    for (lane, &x) in lanes.iter_mut().zip(rest) {
        *lane = (fold.join)(*lane, (fold.term)(x));
    }
    join_lanes(lanes, fold.join)
}

/// Joins lanes at half the distance until one is left.
#[inline(always)]
pub(super) fn join_lanes<A: Copy>(mut lanes: [A; LANES], join: impl Fn(A, A) -> A) -> A {
    let mut half = LANES / 2;
    while half > 0 {
        for i in 0..half {
            lanes[i] = join(lanes[i], lanes[i + half]);
        }
        half /= 2;
    }
    lanes[0]
}

/// Folds the rows of a matrix: `y[i] ← fold over r of x[r·stride + i]`, at most [`WIDTH`] columns.
pub(super) fn fold_columns<T, Term, Join>(
    (x, rows, stride): (&[T], usize, usize),
    fold: Fold<T::Acc, Term, Join>,
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
    fold: Fold<T::Acc, Term, Join>,
    y: &mut [T::Acc],
) where
    T: Element,
    Term: Fn(T::Acc) -> T::Acc + Copy,
    Join: Fn(T::Acc, T::Acc) -> T::Acc + Copy,
{
    let Fold { unit, term, join } = fold;
    let mut room = [[unit; WIDTH]; 4];
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
