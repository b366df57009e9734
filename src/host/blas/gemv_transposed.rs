//! Transposed GEMV `Aᵀ·x` for long rows: multiples of rows of `A` are added to a vector of sums.
//!
//! Eight rows of `A` are read at a time, each sequentially, so that the hardware prefetcher follows
//! all eight. The order of additions in each sum depends on m alone, so results are bit-identical
//! for any number of threads.

use crate::{
    element::Element,
    host::{
        cache::{
            cache_line::{CACHE_LINE, CHUNK_ALIGN, L1_ALIAS_BYTES, prefetch, prefetch_after},
            residence::is_amd,
            scratch::with_scratch,
        },
        simd::vectorized,
        threads::Workers,
    },
};
use num_traits::Float;

/// Size in bytes of a block of sums that stays in L1 while all rows are added to the block.
const SUMS_BYTES: usize = 32 << 10;

/// Number of rows of `A` whose multiples are added to the sums at a time.
const ROWS: usize = 8;

/// Number of elements of each row of `A` that are multiplied and added to the sums at a time.
const WIDTH: usize = 32;

/// Number of elements of `A` in one task, chosen so that a second thread pays off.
const GRAIN: usize = 1 << 17;

/// Computes `y ← α·Aᵀ·x + β·y`, where rows of `a` are `lda` elements apart. `y` is not read if β =
/// 0.
pub(crate) fn add_long_rows<A: Element + Float>(
    workers: &Workers,
    (alpha, beta): (A, A),
    (a, lda): (&[A], usize),
    x: &[A],
    y: &mut [A],
) {
    // On Zen 5, transposed GEMV is faster without software prefetch of whole rows (decision 48).
    let (block, prefetches_rows) = (SUMS_BYTES / size_of::<A>(), !is_amd());
    // Each thread runs one task, unless the tasks would be too short. A task adds multiples of
    // whole rows of `A`, or of long parts of the rows.
    let even_len = y.len().div_ceil(workers.count());
    let task = even_len.max(GRAIN / x.len()).next_multiple_of(CHUNK_ALIGN);
    workers.for_each_chunk(y, task, |i, y| {
        with_scratch((SUMS_BYTES + L1_ALIAS_BYTES) / size_of::<A>(), |scratch| {
            for (j, y) in y.chunks_mut(block).enumerate() {
                let a = &a[i * task + j * block..];
                let start = sums_offset(scratch, a);
                let sums = &mut scratch[start..][..y.len()];
                vectorized(
                    #[inline(always)]
                    |_| {
                        sums.fill(A::zero());
                        add_rows(prefetches_rows, (a, lda), x, sums);
                        for (y, &sum) in y.iter_mut().zip(&*sums) {
                            *y = if beta.is_zero() { alpha * sum } else { alpha * sum + beta * *y };
                        }
                    },
                );
            }
        });
    });
}

/// Returns the offset in `scratch` at which the sums start. The sums start at a cache-line boundary
/// and, modulo 4 KiB, 2 KiB from the start of `rows`. The offset avoids 4K aliasing, where a load
/// waits for an earlier store whose address has the same low 12 bits.
fn sums_offset<A>(scratch: &[A], rows: &[A]) -> usize {
    let target = rows.as_ptr().addr() + L1_ALIAS_BYTES / 2;
    let distance = target.wrapping_sub(scratch.as_ptr().addr()) % L1_ALIAS_BYTES;
    let aligned_start = scratch.as_ptr().align_offset(CACHE_LINE);
    let start = aligned_start + distance / CACHE_LINE * (CACHE_LINE / size_of::<A>());
    // Limit the offset, because `scratch` is only `L1_ALIAS_BYTES` longer than a block of sums.
    if start * size_of::<A>() > L1_ALIAS_BYTES { aligned_start } else { start }
}

/// Computes `sums ← sums + Aᵀ·x`. If `prefetches_rows` is true, prefetches whole rows of `A` in
/// software, and otherwise only the first cache line of each of the next [`ROWS`] rows.
#[inline(always)]
fn add_rows<A: Element + Float>(
    prefetches_rows: bool,
    (a, lda): (&[A], usize),
    x: &[A],
    sums: &mut [A],
) {
    let (groups, rest) = x.as_chunks::<ROWS>();
    for (group, x) in groups.iter().enumerate() {
        let a = &a[group * ROWS * lda..];
        if !prefetches_rows {
            (ROWS..2 * ROWS).for_each(
                #[inline(always)]
                |i| prefetch(a.as_ptr().wrapping_add(i * lda)),
            );
        }
        add_row_group(prefetches_rows, (a, lda), *x, sums);
    }
    let rest_start = x.len() - rest.len();
    for (i, &x) in rest.iter().enumerate() {
        let row = &a[(rest_start + i) * lda..][..sums.len()];
        for (sum, &a) in sums.iter_mut().zip(row) {
            *sum = *sum + a * x;
        }
    }
}

/// Computes `sums ← sums + Σ xᵢ·rowᵢ` over [`ROWS`] rows of `A`, with software prefetch if
/// `prefetch` is true.
#[inline(always)]
fn add_row_group<A: Element + Float>(
    prefetch: bool,
    (rows, lda): (&[A], usize),
    x: [A; ROWS],
    sums: &mut [A],
) {
    let (upper, upper_rest) = four_rows((rows, lda), sums.len());
    let (lower, lower_rest) = four_rows((&rows[4 * lda..], lda), sums.len());
    let (blocks, rest) = sums.as_chunks_mut();
    for ((sums, upper), lower) in blocks.iter_mut().zip(upper).zip(lower) {
        if prefetch {
            upper.into_iter().chain(lower).for_each(prefetch_after);
        }
        *sums = add_block(upper, lower, &x, *sums);
    }
    for ((sum, upper), lower) in rest.iter_mut().zip(upper_rest).zip(lower_rest) {
        *sum = *sum + dot_pairwise(&x, upper.map(|&a| a), lower.map(|&a| a));
    }
}

/// Returns two iterators over the first `len` elements of four rows of `a`: over the blocks of
/// [`WIDTH`] elements, and over the elements after the last block. An item of an iterator holds one
/// block or element of each row.
///
/// The iterators zip slices. If a loop indexed an array of rows, the compiler would check the bounds
/// of each row for each block.
#[inline(always)]
fn four_rows<A>(
    (a, lda): (&[A], usize),
    len: usize,
) -> (impl Iterator<Item = [&[A; WIDTH]; 4]>, impl Iterator<Item = [&A; 4]>) {
    let (a0, rest0) = a[..len].as_chunks();
    let (a1, rest1) = a[lda..][..len].as_chunks();
    let (a2, rest2) = a[2 * lda..][..len].as_chunks();
    let (a3, rest3) = a[3 * lda..][..len].as_chunks();
    (zip_four([a0, a1, a2, a3]), zip_four([rest0, rest1, rest2, rest3]))
}

#[inline(always)]
fn zip_four<X>([a, b, c, d]: [&[X]; 4]) -> impl Iterator<Item = [&X; 4]> {
    a.iter().zip(b).zip(c.iter().zip(d)).map(
        #[inline(always)]
        |((a, b), (c, d))| [a, b, c, d],
    )
}

#[inline(always)]
fn add_block<A: Element + Float>(
    [a, b, c, d]: [&[A; WIDTH]; 4],
    [e, f, g, h]: [&[A; WIDTH]; 4],
    x: &[A; ROWS],
    mut sums: [A; WIDTH],
) -> [A; WIDTH] {
    for i in 0..WIDTH {
        let (upper, lower) = ([a[i], b[i], c[i], d[i]], [e[i], f[i], g[i], h[i]]);
        sums[i] = sums[i] + dot_pairwise(x, upper, lower);
    }
    sums
}

/// Returns `Σ xᵢ·aᵢ`, added pairwise. `upper` and `lower` are the first and the last four aᵢ.
#[inline(always)]
fn dot_pairwise<A: Element + Float>(x: &[A; ROWS], upper: [A; 4], lower: [A; 4]) -> A {
    let [x0, x1, x2, x3, x4, x5, x6, x7] = *x;
    let (upper_x, lower_x) = ([x0, x1, x2, x3], [x4, x5, x6, x7]);
    dot_four(upper_x, upper) + dot_four(lower_x, lower)
}

#[inline(always)]
fn dot_four<A: Element + Float>(x: [A; 4], a: [A; 4]) -> A {
    (a[0] * x[0] + a[1] * x[1]) + (a[2] * x[2] + a[3] * x[3])
}
