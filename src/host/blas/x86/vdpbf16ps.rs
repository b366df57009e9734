//! Products of packed panels of `bf16` with the AVX-512 instruction `vdpbf16ps`.
//!
//! `vdpbf16ps` multiplies each of 16 pairs of `bf16` by another pair, and adds both products to an
//! `f32` sum. Intel documents two fused multiply-adds, which round to nearest, ties to even. The
//! first one adds the product of the high elements, and the second one that of the low elements.
//! Subnormal operands count as zero, and subnormal results become zero of the same sign. The
//! instruction ignores the rounding mode and the other settings of MXCSR, and raises no exception.
//!
//! Packing puts the first of two steps along k in the high element of a pair. Each sum is therefore
//! one chain of fused multiply-adds in the order of k, as in a GEMM of operands that are widened to
//! `f32`. The results are bit-identical to those of such a GEMM, unless an operand, a partial sum
//! or a result is subnormal. AMX adds the products in a different order.

#[cfg(test)]
mod tests;

use crate::host::{
    blas::x86::{
        bf16_pack::PairOrder,
        bf16_tile::{BLOCK_ROWS, TILE_ROWS, TILE_WORDS},
    },
    cache::residence::is_amd,
    simd::{level::SimdLevel, limit::SimdLimit},
};
use std::{arch::x86_64::*, array, sync::LazyLock};

/// Order of two steps along k in a pair, such that `vdpbf16ps` adds the products of the first step
/// first.
pub(crate) const PAIR_ORDER: PairOrder = PairOrder::FirstHigh;

/// Returns true if the processor has `vdpbf16ps` and the SIMD limit of this process permits it.
pub(crate) fn is_available() -> bool {
    static AVAILABLE: LazyLock<bool> = LazyLock::new(|| {
        SimdLimit::of_process() == SimdLimit::All
            && SimdLevel::highest() == SimdLevel::Avx512
            && is_x86_feature_detected!("avx512bf16")
    });
    *AVAILABLE
}

/// Returns true if `vdpbf16ps` is available and as fast as `vfmadd231ps`. On the Xeon where
/// `vdpbf16ps` was measured, `vdpbf16ps` takes four to six times as long as `vfmadd231ps`.
pub(crate) fn is_fast() -> bool {
    is_available() && is_amd()
}

/// Multiplies the micro-panels of `a`, which hold `rows` rows, by the micro-panel `b` of at most
/// [`BLOCK_ROWS`] columns. `pairs` is the number of pairs of steps along k. Adds the sums of the
/// products to `sums` if `add` is true, else overwrites `sums`. Rows of `sums` have [`BLOCK_ROWS`]
/// elements.
pub(crate) fn multiply_panels(
    [rows, columns, pairs]: [usize; 3],
    a: &[f32],
    b: &[f32],
    add: bool,
    sums: &mut [f32],
) {
    let panel = pairs.div_ceil(TILE_ROWS) * TILE_WORDS;
    let padded_rows = rows.next_multiple_of(BLOCK_ROWS);
    assert!(columns <= BLOCK_ROWS && b.len() >= 2 * panel);
    assert!(a.len() >= padded_rows / TILE_ROWS * panel && sums.len() >= padded_rows * BLOCK_ROWS);
    assert!(is_available());
    let (a, b, sums) = (a.as_ptr().cast(), b.as_ptr(), sums.as_mut_ptr());
    // SAFETY: the processor has AVX-512 and `vdpbf16ps`. The assertions show that `a` holds the
    // panels of all rows, `b` two panels of 16 columns, and `sums` all padded rows.
    unsafe {
        if columns <= TILE_ROWS {
            multiply_tiles::<16, 1>([rows, pairs], a, b, add, sums);
        } else {
            multiply_tiles::<8, 2>([rows, pairs], a, b, add, sums);
        }
    }
}

/// Computes `rows` rows of `C` in tiles of `ROWS` rows and `VECTORS` vectors. `ROWS` divides
/// [`TILE_ROWS`].
///
/// # Safety
/// The processor has `vdpbf16ps`. `a` is valid for reads of packed tiles with `rows` rows, and `b`
/// of packed tiles with `VECTORS` vectors of columns, both with `pairs` pairs of steps. `sums` is
/// valid for reads and writes of `rows`, rounded up to a multiple of `ROWS`, rows of [`BLOCK_ROWS`]
/// elements.
#[target_feature(enable = "avx512f,avx512bf16")]
unsafe fn multiply_tiles<const ROWS: usize, const VECTORS: usize>(
    [rows, pairs]: [usize; 2],
    a: *const i32,
    b: *const f32,
    add: bool,
    sums: *mut f32,
) {
    let panel = pairs.div_ceil(TILE_ROWS) * TILE_WORDS;
    for row in (0..rows).step_by(ROWS) {
        // SAFETY: the offsets select the tiles of the rows from `row` on, in which pairs from
        // `first` on start at `first`·16 words. The caller guarantees that all pointers are valid.
        unsafe {
            let a = a.add(row / TILE_ROWS * panel + row % TILE_ROWS * TILE_ROWS);
            let mut tile = [[_mm512_setzero_ps(); VECTORS]; ROWS];
            for first in (0..pairs).step_by(TILE_ROWS) {
                let (a, b) = (a.add(first * TILE_ROWS), b.add(first * TILE_ROWS));
                for pair in 0..TILE_ROWS.min(pairs - first) {
                    let b: [_; VECTORS] = array::from_fn(|j| {
                        as_bf16(_mm512_loadu_ps(b.add(j * panel + pair * TILE_ROWS)))
                    });
                    for (i, sums) in tile.iter_mut().enumerate() {
                        let a = _mm512_set1_epi32(*a.add(i * TILE_ROWS + pair));
                        let a = as_bf16(_mm512_castsi512_ps(a));
                        for (j, sum) in sums.iter_mut().enumerate() {
                            *sum = _mm512_dpbf16_ps(*sum, a, b[j]);
                        }
                    }
                }
            }
            for (i, tile) in tile.iter().enumerate() {
                for (j, &sum) in tile.iter().enumerate() {
                    let sums = sums.add((row + i) * BLOCK_ROWS + j * TILE_ROWS);
                    let sum = if add { _mm512_add_ps(sum, _mm512_loadu_ps(sums)) } else { sum };
                    _mm512_storeu_ps(sums, sum);
                }
            }
        }
    }
}

/// Returns the bits of a vector as pairs of `bf16`.
#[target_feature(enable = "avx512f,avx512bf16")]
#[inline]
fn as_bf16(x: __m512) -> __m512bh {
    // SAFETY: both types have 512 bits, and all bit patterns are valid for both.
    unsafe { std::mem::transmute::<__m512, __m512bh>(x) }
}
