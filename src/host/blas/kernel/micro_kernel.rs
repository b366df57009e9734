//! A tile of a product by rows of `B`: its sums stay in registers while terms are added.
//!
//! Every element is the same chain of fused multiplications, wherever it lies in a tile.

use crate::host::{blas::kernel::unpacked::RawGemm, simd::vector::SimdVector};
use num_traits::Zero;
use std::ops::Range;

/// Terms of a panel that are asked for before they are needed.
const PREFETCH_K_STEPS: usize = 16;

/// Bytes of a line of a cache.
const CACHE_LINE: usize = 64;

/// Rows of `B` are parts of packed panels: whole vectors, whatever the tile needs of the last.
pub(crate) const B_PACKED: u8 = 0;

/// Rows of `B` lie in a matrix, and the tile needs whole vectors of them.
pub(crate) const B_WHOLE_VECTORS: u8 = 1;

/// Rows of `B` lie in a matrix, and the tile needs a part of the last vector.
pub(crate) const B_MASKED_TAIL: u8 = 2;

/// Rows of `B` lie in a matrix, and the tile needs parts of any vector of them.
pub(crate) const B_MASKED: u8 = 3;

/// Where a tile lies: of its rows and columns only `rows` and `columns` are written.
pub(crate) struct MicroTile {
    pub(crate) row: usize,
    pub(crate) rows: Range<usize>,
    pub(crate) column: usize,
    pub(crate) columns: Range<usize>,
}

/// One tile, of `ROWS` rows and `VECTORS` vectors; `B` is [`PANEL`], [`WHOLE`], [`PARTIAL`] or
/// [`MASKED`].
///
/// Without optimisation every tile has a frame of its own: together they overflow a thread's stack.
#[allow(unsafe_code)]
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) unsafe fn micro_kernel<
    L: SimdVector,
    const ROWS: usize,
    const VECTORS: usize,
    const B: u8,
>(
    p: &RawGemm<L::Scalar>,
    (along_m, along_k): (usize, usize),
    tile: MicroTile,
) {
    // SAFETY: the caller's: `a` has ROWS rows from the tile's first and k columns, `b` k rows of
    // the tile's columns, and of whole vectors where these are read, `c` all of the tile.
    unsafe {
        let mut a = p.a.add(tile.row * along_m);
        let mut b = p.b.wrapping_add(tile.column);
        // Of constants, where all are meant.
        let columns = if B == B_WHOLE_VECTORS { 0..VECTORS * L::WIDTH } else { tile.columns };
        let tile = MicroTile { columns: columns.clone(), ..tile };
        let masks = masks::<L, VECTORS>(&columns);
        let mut sums = [[L::splat(L::Scalar::zero()); VECTORS]; ROWS];
        // Two terms at a time need half as many addresses.
        let pairs = if L::MANY && VECTORS <= 2 { p.k / 2 } else { 0 };
        for _ in 0..pairs {
            add::<L, ROWS, VECTORS, B, 2>(&mut sums, a, (along_m, along_k), b, p.ldb, &masks);
            a = a.wrapping_add(2 * along_k);
            b = b.wrapping_add(2 * p.ldb);
        }
        for _ in 2 * pairs..p.k {
            add::<L, ROWS, VECTORS, B, 1>(&mut sums, a, (along_m, along_k), b, p.ldb, &masks);
            a = a.wrapping_add(along_k);
            b = b.wrapping_add(p.ldb);
        }
        finish::<L, ROWS, VECTORS>(p, &sums, &tile, masks);
    }
}

/// Adds `TERMS` terms to each sum.
#[allow(unsafe_code)]
#[inline(always)]
unsafe fn add<
    L: SimdVector,
    const ROWS: usize,
    const VECTORS: usize,
    const B: u8,
    const TERMS: usize,
>(
    sums: &mut [[L; VECTORS]; ROWS],
    a: *const L::Scalar,
    (along_m, along_k): (usize, usize),
    b: *const L::Scalar,
    ldb: usize,
    masks: &[L::Mask; VECTORS],
) {
    // SAFETY: the caller's: so many terms at `a` and `b`.
    unsafe {
        let mut rows = [[L::splat(L::Scalar::zero()); VECTORS]; TERMS];
        for (t, row) in rows.iter_mut().enumerate() {
            for (j, row) in row.iter_mut().enumerate() {
                let b = b.wrapping_add(t * ldb + j * L::WIDTH);
                *row = match B {
                    B_MASKED => L::load_masked(b, masks[j]),
                    B_MASKED_TAIL if j + 1 == VECTORS => L::load_masked(b, masks[j]),
                    _ => L::load(b),
                };
                if B == B_PACKED {
                    L::prefetch(b.wrapping_add(PREFETCH_K_STEPS * ldb));
                }
            }
        }
        // Rows that lie in a matrix are fetched ahead by the processor.
        if B == B_PACKED && along_k > 1 {
            for line in (0..TERMS * ROWS).step_by(CACHE_LINE / size_of::<L::Scalar>()) {
                L::prefetch(a.wrapping_add(PREFETCH_K_STEPS * along_k + line));
            }
        }
        for (i, sums) in sums.iter_mut().enumerate() {
            for (t, row) in rows.iter().enumerate() {
                let x = L::splat(*a.add(i * along_m + t * along_k));
                for (sum, y) in sums.iter_mut().zip(row) {
                    *sum = x.mul_add(*y, *sum);
                }
            }
        }
    }
}

/// Which elements of each vector are among `columns`.
#[allow(unsafe_code)]
#[inline(always)]
unsafe fn masks<L: SimdVector, const VECTORS: usize>(columns: &Range<usize>) -> [L::Mask; VECTORS] {
    // SAFETY: the caller has the instructions; no vector has more elements.
    unsafe {
        let mut masks = [L::mask(0, 0); VECTORS];
        for (j, mask) in masks.iter_mut().enumerate() {
            let within = |column: usize| column.saturating_sub(j * L::WIDTH).min(L::WIDTH);
            *mask = L::mask(within(columns.start), within(columns.end));
        }
        masks
    }
}

/// `C ← α·sums + β·C + bias` over the tile.
#[allow(unsafe_code)]
#[inline(always)]
unsafe fn finish<L: SimdVector, const ROWS: usize, const VECTORS: usize>(
    p: &RawGemm<L::Scalar>,
    sums: &[[L; VECTORS]; ROWS],
    tile: &MicroTile,
    masks: [L::Mask; VECTORS],
) {
    // SAFETY: the caller's: all of the tile at `c`, and a bias for each row, if any.
    unsafe {
        let c = p.c.wrapping_add(tile.row * p.ldc + tile.column);
        let (alpha, beta) = (L::splat(p.alpha), L::splat(p.beta));
        // Loops of constant length and no branch are unrolled, so that sums stay in registers.
        if tile.rows != (0..ROWS) || !p.bias.is_null() {
            return finish_some::<L, ROWS, VECTORS>(p, *sums, tile, masks);
        }
        let whole = tile.columns == (0..VECTORS * L::WIDTH);
        match (p.beta.is_zero(), whole) {
            (true, true) => {
                for (i, sums) in sums.iter().enumerate() {
                    for (j, &sum) in sums.iter().enumerate() {
                        alpha.mul(sum).store(c.wrapping_add(i * p.ldc + j * L::WIDTH));
                    }
                }
            }
            (true, false) => {
                for (i, sums) in sums.iter().enumerate() {
                    for (j, &sum) in sums.iter().enumerate() {
                        let c = c.wrapping_add(i * p.ldc + j * L::WIDTH);
                        alpha.mul(sum).store_masked(c, masks[j]);
                    }
                }
            }
            (false, true) => {
                for (i, sums) in sums.iter().enumerate() {
                    for (j, &sum) in sums.iter().enumerate() {
                        let c = c.wrapping_add(i * p.ldc + j * L::WIDTH);
                        alpha.mul_add(sum, beta.mul(L::load(c))).store(c);
                    }
                }
            }
            (false, false) => {
                for (i, sums) in sums.iter().enumerate() {
                    for (j, &sum) in sums.iter().enumerate() {
                        let c = c.wrapping_add(i * p.ldc + j * L::WIDTH);
                        let old = beta.mul(L::load_masked(c, masks[j]));
                        alpha.mul_add(sum, old).store_masked(c, masks[j]);
                    }
                }
            }
        }
    }
}

/// [`finish`] of some rows, or with a bias.
#[allow(unsafe_code)]
#[inline(always)]
unsafe fn finish_some<L: SimdVector, const ROWS: usize, const VECTORS: usize>(
    p: &RawGemm<L::Scalar>,
    sums: [[L; VECTORS]; ROWS],
    tile: &MicroTile,
    masks: [L::Mask; VECTORS],
) {
    // SAFETY: the caller's: these rows of the tile at `c`, and a bias for each, if any.
    unsafe {
        let (alpha, beta) = (L::splat(p.alpha), L::splat(p.beta));
        for i in tile.rows.clone() {
            let row = tile.row + i;
            for (j, &sum) in sums[i].iter().enumerate() {
                let c = p.c.wrapping_add(row * p.ldc + tile.column + j * L::WIDTH);
                let mut value = alpha.mul(sum);
                if !p.beta.is_zero() {
                    let old = L::load_masked(c, masks[j]);
                    value = alpha.mul_add(sum, beta.mul(old));
                }
                if !p.bias.is_null() {
                    value = value.add(L::splat(*p.bias.add(row)));
                }
                value.store_masked(c, masks[j]);
            }
        }
    }
}
