//! `Aᵀ·x` of rows too long for a sum to stay in a register: rows are scaled and added.
//!
//! Several rows are read side by side and each from one end to the other, which is what a
//! processor fetches ahead. An element is summed the same wherever it lies, so no bit depends on
//! where rows are cut.

use crate::{
    element::Element,
    host::{
        cache::{cache_line::prefetch_after, scratch::with_scratch},
        simd::vectorized,
        threads::Workers,
    },
};
use num_traits::Float;

/// Bytes of sums that stay in the first-level cache, or nearly, while rows pass by.
const BLOCK: usize = 32 << 10;

/// Rows taken together.
const ROWS: usize = 8;

/// Elements taken together.
const WIDTH: usize = 16;

/// Bytes after which addresses share a place in a first-level cache.
const L1_ALIAS_BYTES: usize = 4096;

/// Bytes of a cache line.
const CACHE_LINE: usize = 64;

/// Elements of the matrix that make a task: as for vectors.
const GRAIN: usize = 1 << 17;

/// `y ← α·Aᵀ·x + β·y`, rows of `a` being `lda` apart; β = 0 does not read `y`.
pub(crate) fn add_long_rows<A: Element + Float>(
    workers: &Workers,
    (alpha, beta): (A, A),
    (a, lda): (&[A], usize),
    x: &[A],
    y: &mut [A],
) {
    let block = BLOCK / size_of::<A>();
    // A thread by itself leaves rows whole as far as sums fit the cache.
    let task = match workers.count() {
        1 => y.len(),
        _ => (GRAIN / x.len()).next_multiple_of(block / 4).max(block / 4),
    };
    workers.for_each_chunk(y, task, |i, y| {
        with_scratch((BLOCK + L1_ALIAS_BYTES) / size_of::<A>(), |room| {
            for (j, y) in y.chunks_mut(block).enumerate() {
                let a = &a[i * task + j * block..];
                let start = apart(room, a);
                let sums = &mut room[start..][..y.len()];
                vectorized(
                    #[inline(always)]
                    || {
                        sums.fill(A::zero());
                        add_rows((a, lda), x, sums);
                        for (y, &sum) in y.iter_mut().zip(&*sums) {
                            *y = if beta.is_zero() { alpha * sum } else { alpha * sum + beta * *y };
                        }
                    },
                );
            }
        });
    });
}

/// Where in `room` sums are to begin: at a line, and half a page from where rows do. What is
/// stored less than a page after what is loaded next looks to the processor like the same.
fn apart<A>(room: &[A], rows: &[A]) -> usize {
    let away = (rows.as_ptr().addr() + L1_ALIAS_BYTES / 2).wrapping_sub(room.as_ptr().addr())
        % L1_ALIAS_BYTES;
    let lines = room.as_ptr().align_offset(CACHE_LINE);
    let start = lines + away / CACHE_LINE * (CACHE_LINE / size_of::<A>());
    // Lines before the first whole one are not to push the sums out of the room.
    if start * size_of::<A>() > L1_ALIAS_BYTES { lines } else { start }
}

/// `sums ← sums + Aᵀ·x`.
#[inline(always)]
fn add_rows<A: Element + Float>((a, lda): (&[A], usize), x: &[A], sums: &mut [A]) {
    let (eights, rest) = x.as_chunks::<ROWS>();
    for (group, x) in eights.iter().enumerate() {
        add_eight((&a[group * ROWS * lda..], lda), x, sums);
    }
    let done = x.len() - rest.len();
    for (i, &x) in rest.iter().enumerate() {
        let row = &a[(done + i) * lda..][..sums.len()];
        for (sum, &a) in sums.iter_mut().zip(row) {
            *sum = *sum + a * x;
        }
    }
}

/// `sums ← sums + Σ xᵢ·rowᵢ`
#[inline(always)]
fn add_eight<A: Element + Float>((a, lda): (&[A], usize), x: &[A; ROWS], sums: &mut [A]) {
    let rows: [&[A]; ROWS] = std::array::from_fn(
        #[inline(always)]
        |i| &a[i * lda..][..sums.len()],
    );
    let (whole, rest) = sums.as_chunks_mut::<WIDTH>();
    let done = whole.len() * WIDTH;
    for (j, sums) in whole.iter_mut().enumerate() {
        let rows: [&[A; WIDTH]; ROWS] = std::array::from_fn(
            #[inline(always)]
            |i| &rows[i].as_chunks().0[j],
        );
        for row in rows {
            prefetch_after(row);
        }
        *sums = added(rows, x, *sums);
    }
    for (j, sum) in (done..).zip(rest) {
        *sum = *sum
            + products(
                x,
                rows.map(
                    #[inline(always)]
                    |row| row[j],
                ),
            );
    }
}

#[inline(always)]
fn added<A: Element + Float>(
    rows: [&[A; WIDTH]; ROWS],
    x: &[A; ROWS],
    mut sums: [A; WIDTH],
) -> [A; WIDTH] {
    let [a, b, c, d, e, f, g, h] = rows;
    for i in 0..WIDTH {
        sums[i] = sums[i] + products(x, [a[i], b[i], c[i], d[i], e[i], f[i], g[i], h[i]]);
    }
    sums
}

/// `Σ xᵢ·aᵢ`, pairwise.
#[inline(always)]
fn products<A: Element + Float>(x: &[A; ROWS], a: [A; ROWS]) -> A {
    let first = (a[0] * x[0] + a[1] * x[1]) + (a[2] * x[2] + a[3] * x[3]);
    let second = (a[4] * x[4] + a[5] * x[5]) + (a[6] * x[6] + a[7] * x[7]);
    first + second
}
