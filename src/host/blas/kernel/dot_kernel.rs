//! Dot products of rows of both operands: `A` not transposed, `B` transposed.
//!
//! Each is kept in as many interleaved sums as a vector has elements, which are added up in the end.

use crate::host::{
    blas::kernel::unpacked::{RawGemm, unaligned_prefix},
    simd::vector::SimdVector,
};
use num_traits::{One, Zero};

/// Bytes of a row between one summation of a vector's elements and the next: rows of a tile stay in
/// the first-level cache.
const KC_BYTES: usize = 4096;

/// Elements of `B`'s rows that stay in the second-level cache while `A` passes by.
const L2_B_LEN: usize = 1 << 16;

/// Bytes of `B` that are in no cache of the core.
const PREFETCH_B_MIN_BYTES: usize = 2 << 20;

/// Vectors of a row from which on it pays to read from the beginning of a line.
const ALIGN_MIN_VECTORS: usize = 8;

/// Vectors of a row that are read before those of the next.
const K_UNROLL: usize = 4;

/// Rows of `B` that a row is multiplied with at a time.
const N_UNROLL: usize = 8;

/// `A` not transposed, `B` transposed.
#[allow(unsafe_code)]
#[inline(always)]
pub(crate) unsafe fn gemm_dot<L: SimdVector>(p: &RawGemm<L::Scalar>) {
    if p.m == 1 {
        // SAFETY: handed on.
        return unsafe { dot_row::<L>(p) };
    }
    let cuts = p.k.div_ceil(KC_BYTES / size_of::<L::Scalar>());
    let deepest = p.k.div_ceil(cuts.max(1)).max(1);
    for start in (0..p.k).step_by(deepest) {
        let depth = deepest.min(p.k - start);
        let resident = (L2_B_LEN / depth + 1).next_multiple_of(64);
        for column in (0..p.n).step_by(resident) {
            // SAFETY: a range of the columns and of k: offsets stay within the operands.
            unsafe {
                let part = RawGemm {
                    n: resident.min(p.n - column),
                    k: depth,
                    beta: if start == 0 { p.beta } else { L::Scalar::one() },
                    a: p.a.add(start),
                    b: p.b.add(column * p.ldb + start),
                    c: p.c.add(column),
                    ..*p
                };
                match (L::MANY, part.m, part.n) {
                    (true, 4.., 4..) => dot_of::<L, 4, 4>(&part),
                    (false, 2.., 4..) => dot_of::<L, 2, 4>(&part),
                    (_, _, 4..) => dot_of::<L, 1, 4>(&part),
                    (_, 4.., _) => dot_of::<L, 4, 1>(&part),
                    _ => dot_of::<L, 1, 1>(&part),
                }
            }
        }
    }
}

/// One row of `A`.
#[allow(unsafe_code)]
#[inline(always)]
unsafe fn dot_row<L: SimdVector>(p: &RawGemm<L::Scalar>) {
    let before = if p.k >= ALIGN_MIN_VECTORS * L::WIDTH { unaligned_prefix::<L>(p) } else { 0 };
    let large = p.n * p.k * size_of::<L::Scalar>() > PREFETCH_B_MIN_BYTES;
    // SAFETY: handed on.
    unsafe {
        match (large, before) {
            (false, 0) => dot_eights::<L, false, false>(p, 0),
            (false, _) => dot_eights::<L, false, true>(p, before),
            (true, 0) => dot_eights::<L, true, false>(p, 0),
            (true, _) => dot_eights::<L, true, true>(p, before),
        }
    }
}

/// In eights of rows of `B`, which are asked for before they are needed if `FETCH`, and read from
/// `before` elements before them if `BEFORE`.
#[allow(unsafe_code)]
#[inline(always)]
unsafe fn dot_eights<L: SimdVector, const FETCH: bool, const BEFORE: bool>(
    p: &RawGemm<L::Scalar>,
    before: usize,
) {
    let before = if BEFORE { before } else { 0 };
    let mut column = 0;
    while column < p.n {
        let (left, b) = (p.n - column, p.b.wrapping_add(column * p.ldb));
        let step = match left {
            N_UNROLL.. => N_UNROLL,
            4.. => 4,
            2.. => 2,
            _ => 1,
        };
        // SAFETY: the caller's: rows of k elements, and n elements at `c`.
        unsafe {
            let lanes = match step {
                N_UNROLL => dot_some::<L, N_UNROLL, FETCH>(p.a, (b, p.ldb), p.k, before),
                4 => dot_some::<L, 4, FETCH>(p.a, (b, p.ldb), p.k, before),
                2 => dot_some::<L, 2, FETCH>(p.a, (b, p.ldb), p.k, before),
                _ => dot_some::<L, 1, FETCH>(p.a, (b, p.ldb), p.k, before),
            };
            finish_some::<L>(p, lanes, column, step);
        }
        column += step;
    }
}

/// `c ← α·sums + β·c` of the first `count` of eight sums.
#[allow(unsafe_code)]
#[inline(always)]
unsafe fn finish_some<L: SimdVector>(
    p: &RawGemm<L::Scalar>,
    lanes: [L; N_UNROLL],
    column: usize,
    count: usize,
) {
    // SAFETY: the caller's: so many elements at `c` from `column` on.
    unsafe {
        let (alpha, beta) = (L::splat(p.alpha), L::splat(p.beta));
        for (i, lanes) in lanes.chunks_exact(L::WIDTH.min(N_UNROLL)).enumerate() {
            let mut vectors = [L::splat(L::Scalar::zero()); N_UNROLL];
            vectors[..lanes.len()].copy_from_slice(lanes);
            let count = count.saturating_sub(i * L::WIDTH).min(lanes.len());
            let c = p.c.wrapping_add(column + i * L::WIDTH);
            let mut value = alpha.mul(L::horizontal_sum8(vectors));
            if !p.beta.is_zero() {
                value = beta.mul_add(L::load_first(c, count), value);
            }
            value.store_first(c, count);
        }
    }
}

/// Products of `k` elements at `a` with those of `ROWS` rows of `B`, not added up. What is read in vectors
/// begins `before` elements before them, of which nothing is read.
#[allow(unsafe_code)]
#[inline(always)]
unsafe fn dot_some<L: SimdVector, const ROWS: usize, const FETCH: bool>(
    a: *const L::Scalar,
    (b, ldb): (*const L::Scalar, usize),
    k: usize,
    before: usize,
) -> [L; N_UNROLL] {
    let (a, b, end) = (a.wrapping_sub(before), b.wrapping_sub(before), before + k);
    // SAFETY: the caller's: so many elements at each of the places.
    unsafe {
        let mut lanes = [L::splat(L::Scalar::zero()); N_UNROLL];
        let mut term = 0;
        if before > 0 {
            let mask = L::mask(before, end.min(L::WIDTH));
            let x = L::load_masked(a, mask);
            for (j, lane) in lanes.iter_mut().enumerate().take(ROWS) {
                *lane = x.mul_add(L::load_masked(b.wrapping_add(j * ldb), mask), *lane);
            }
            term = L::WIDTH;
        }
        while term + K_UNROLL * L::WIDTH <= end {
            let (a, b) = (a.wrapping_add(term), b.wrapping_add(term));
            add_vectors::<L, ROWS, K_UNROLL, FETCH>(a, (b, ldb), &mut lanes);
            term += K_UNROLL * L::WIDTH;
        }
        while term + L::WIDTH <= end {
            let (a, b) = (a.wrapping_add(term), b.wrapping_add(term));
            add_vectors::<L, ROWS, 1, FETCH>(a, (b, ldb), &mut lanes);
            term += L::WIDTH;
        }
        if term < end {
            let mask = L::mask(0, end - term);
            let x = L::load_masked(a.wrapping_add(term), mask);
            for (j, lane) in lanes.iter_mut().enumerate().take(ROWS) {
                let row = b.wrapping_add(j * ldb + term);
                *lane = x.mul_add(L::load_masked(row, mask), *lane);
            }
        }
        if before > 0 {
            // The same sums at the same places, wherever rows begin.
            for lane in &mut lanes {
                *lane = lane.rotate(before);
            }
        }
        lanes
    }
}

/// Adds products of `COUNT` vectors at `a` with those of rows of `B`.
#[allow(unsafe_code)]
#[inline(always)]
unsafe fn add_vectors<L: SimdVector, const ROWS: usize, const COUNT: usize, const FETCH: bool>(
    a: *const L::Scalar,
    (b, ldb): (*const L::Scalar, usize),
    lanes: &mut [L; N_UNROLL],
) {
    // SAFETY: the caller's: so many elements at each of the places.
    unsafe {
        let mut x = [L::splat(L::Scalar::zero()); COUNT];
        for (i, x) in x.iter_mut().enumerate() {
            *x = L::load(a.wrapping_add(i * L::WIDTH));
        }
        for (j, lane) in lanes.iter_mut().enumerate().take(ROWS) {
            for (i, x) in x.iter().enumerate() {
                let row = b.wrapping_add(j * ldb + i * L::WIDTH);
                if FETCH {
                    // Of the next rows, which lead anew each time.
                    L::prefetch(row.wrapping_add(ROWS * ldb));
                }
                *lane = x.mul_add(L::load(row), *lane);
            }
        }
    }
}

/// In tiles of `ROWS` rows and `COLUMNS` columns; there are at least as many.
#[allow(unsafe_code)]
#[inline(always)]
unsafe fn dot_of<L: SimdVector, const ROWS: usize, const COLUMNS: usize>(p: &RawGemm<L::Scalar>) {
    for row in (0..p.m).step_by(ROWS) {
        let first_row = row.min(p.m - ROWS);
        for column in (0..p.n).step_by(COLUMNS) {
            let first_column = column.min(p.n - COLUMNS);
            // SAFETY: rows and columns of the tile are within those of the product.
            unsafe {
                let sums = dot_tile::<L, ROWS, COLUMNS>(p, first_row, first_column);
                for (i, sums) in sums.iter().enumerate().skip(row - first_row) {
                    for (j, &sum) in sums.iter().enumerate().skip(column - first_column) {
                        let c = p.c.add((first_row + i) * p.ldc + first_column + j);
                        let old = if p.beta.is_zero() { L::Scalar::zero() } else { p.beta * *c };
                        *c = p.alpha * sum + old;
                    }
                }
            }
        }
    }
}

/// Dot products of `ROWS` rows of `A` with `COLUMNS` rows of `B`.
#[allow(unsafe_code)]
#[inline(always)]
unsafe fn dot_tile<L: SimdVector, const ROWS: usize, const COLUMNS: usize>(
    p: &RawGemm<L::Scalar>,
    row: usize,
    column: usize,
) -> [[L::Scalar; COLUMNS]; ROWS] {
    // SAFETY: the caller's: k elements in each of these rows; the last load of a row ends with it.
    unsafe {
        let mut a = p.a.add(row * p.lda);
        let mut b = p.b.add(column * p.ldb);
        let mut lanes = [[L::splat(L::Scalar::zero()); COLUMNS]; ROWS];
        let whole = p.k / L::WIDTH;
        for _ in 0..whole {
            let mut y = [L::splat(L::Scalar::zero()); COLUMNS];
            for (j, y) in y.iter_mut().enumerate() {
                *y = L::load(b.add(j * p.ldb));
                // Of the next tile: it may come from memory, where rows lead anew each time.
                L::prefetch(b.wrapping_add((j + COLUMNS) * p.ldb));
            }
            for (i, lanes) in lanes.iter_mut().enumerate() {
                let x = L::load(a.add(i * p.lda));
                for (lane, y) in lanes.iter_mut().zip(&y) {
                    *lane = x.mul_add(*y, *lane);
                }
            }
            a = a.wrapping_add(L::WIDTH);
            b = b.wrapping_add(L::WIDTH);
        }
        let rest = p.k % L::WIDTH;
        if rest > 0 {
            for (i, lanes) in lanes.iter_mut().enumerate() {
                let x = L::load_first(a.add(i * p.lda), rest);
                for (j, lane) in lanes.iter_mut().enumerate() {
                    *lane = x.mul_add(L::load_first(b.add(j * p.ldb), rest), *lane);
                }
            }
        }
        let mut sums = [[L::Scalar::zero(); COLUMNS]; ROWS];
        for (sums, lanes) in sums.iter_mut().zip(lanes) {
            // Indices are constants, so that the sums stay in registers.
            for (i, sums) in sums.chunks_mut(4).enumerate() {
                let lane = |j: usize| lanes[(4 * i + j) % COLUMNS];
                sums.copy_from_slice(
                    &L::horizontal_sum4([lane(0), lane(1), lane(2), lane(3)])[..sums.len()],
                );
            }
        }
        sums
    }
}
