//! Packing of 16-bit operands into tiles of `bf16` pairs, for AMX and `vdpbf16ps`.

use crate::{
    element::Element,
    host::{
        blas::x86::bf16_tile::{BLOCK_ROWS, TILE_K, TILE_ROWS, TILE_WORDS, bf16_terms},
        simd::level::SimdLevel,
    },
};
use std::arch::x86_64::*;

/// Order of a pair in a 32-bit word. A pair consists of the elements of two consecutive steps along
/// k.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum PairOrder {
    /// The element of the first step is in the low half of the word, as in memory.
    #[cfg(target_os = "linux")]
    FirstLow,
    /// The element of the first step is in the high half of the word.
    FirstHigh,
}

/// Block of an operand that is packed into tiles. The block consists of `mn` rows of `op(A)`,
/// or `mn` columns of `op(B)`, at `k` steps along k.
pub(crate) struct PairSource<'a, H> {
    pub(crate) x: &'a [H],
    pub(crate) ld: usize,
    /// Whether the elements of the operand are contiguous along k, rather than along m or n.
    pub(crate) k_contiguous: bool,
    /// Start of the block to be packed: index of the first row or column, and index of the first
    /// step along k.
    pub(crate) first: [usize; 2],
    pub(crate) mn: usize,
    pub(crate) k: usize,
    /// Whether a tile is transposed after loading, as a matrix of 32-bit words. A tile of `A` has a
    /// row for each row of `A`, and a tile of `B` has a row for every two steps along k. A loaded
    /// tile has the row layout of a tile of `A` if the source's elements are contiguous along k,
    /// and the row layout of a tile of `B` otherwise.
    pub(crate) transpose: bool,
    pub(crate) order: PairOrder,
}

/// Packs the source into tiles: all steps along k of the first [`TILE_ROWS`] rows or columns,
/// followed by all steps of the next [`TILE_ROWS`]. Zeros pad the rows or columns to a multiple of
/// [`BLOCK_ROWS`], and the steps to a multiple of [`TILE_K`]. If elements have two [`bf16_terms`],
/// each tile of high terms is followed by the tile of low terms.
///
/// # Panics
/// Panics if `source.x` or `tiles` is too short, or if the processor lacks AVX-512.
pub(crate) fn pack<H: Element>(source: &PairSource<'_, H>, tiles: &mut [f32]) {
    let PairSource { ld, k_contiguous, first: [row, step], mn, k, .. } = *source;
    let (first, end) = if k_contiguous {
        (row * ld + step, (row + mn - 1) * ld + step + k)
    } else {
        (step * ld + row, (step + k - 1) * ld + row + mn)
    };
    let len = source.x.len();
    assert!(
        size_of::<H>() == 2 && end <= len,
        "16-bit pack source: {len} elements, expected {end}"
    );
    let words = mn.div_ceil(BLOCK_ROWS) * 2 * k.div_ceil(TILE_K) * bf16_terms::<H>() * TILE_WORDS;
    assert!(words <= tiles.len(), "packed tiles: {} words, expected {words}", tiles.len());
    let x = source.x[first..].as_ptr();
    assert!(SimdLevel::highest() == SimdLevel::Avx512, "packing of pairs requires AVX-512");
    // SAFETY: the assertions show that `x` holds the source, that `tiles` holds the packed tiles,
    // and that the processor has AVX-512.
    unsafe { pack_tiles(source, x.cast(), tiles.as_mut_ptr().cast()) };
}

/// # Safety
/// `x` points to the first element of the source, and is valid for reads of the whole source.
/// `tiles` is valid for writes of all packed tiles.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn pack_tiles<H: Element>(source: &PairSource<'_, H>, x: *const u16, tiles: *mut u32) {
    let PairSource { ld, k_contiguous, mn, k, transpose, order, .. } = *source;
    let (panels, steps) = (mn.div_ceil(BLOCK_ROWS) * 2, k.div_ceil(TILE_K));
    for i in 0..panels * steps {
        // Visit the tiles in the order of their source elements in memory.
        let (panel, step) =
            if k_contiguous { (i / steps, i % steps) } else { (i % panels, i / panels) };
        let (row, start) = (panel * TILE_ROWS, step * TILE_K);
        let (mn, k) = (TILE_ROWS.min(mn.saturating_sub(row)), TILE_K.min(k - start));
        // SAFETY: `mn` and `k` are clamped to the extents of the source, and `tiles` has space for
        // the tile.
        unsafe {
            let tile = match k_contiguous {
                true => load_rows(x.wrapping_add(row * ld + start), ld, mn, k),
                false => load_pairs(x.wrapping_add(start * ld + row), ld, mn, k),
            };
            let dst = tiles.add((panel * steps + step) * bf16_terms::<H>() * TILE_WORDS);
            let tile = if transpose { transpose_words(tile) } else { tile };
            for (i, &row) in tile.iter().enumerate() {
                let dst = dst.add(i * TILE_ROWS);
                let row = match order {
                    #[cfg(target_os = "linux")]
                    PairOrder::FirstLow => row,
                    PairOrder::FirstHigh => _mm512_rol_epi32::<16>(row),
                };
                if bf16_terms::<H>() == 1 {
                    _mm512_storeu_si512(dst.cast(), row);
                } else {
                    let [high_terms, low_terms] = split_f16(row);
                    _mm512_storeu_si512(dst.cast(), high_terms);
                    _mm512_storeu_si512(dst.add(TILE_WORDS).cast(), low_terms);
                }
            }
        }
    }
}

/// Loads `mn` source rows of `k` elements into the rows of a tile. Source rows are `ld` elements
/// apart.
///
/// # Safety
/// `x` is valid for reads of `mn` rows of `k` elements; `mn` is at most [`TILE_ROWS`], `k` at most
/// [`TILE_K`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
#[inline]
unsafe fn load_rows(x: *const u16, ld: usize, mn: usize, k: usize) -> [__m512i; TILE_ROWS] {
    let mask = ((1u64 << k) - 1) as __mmask32;
    let mut tile = [_mm512_setzero_si512(); TILE_ROWS];
    for (i, row) in tile.iter_mut().enumerate().take(mn) {
        // SAFETY: the mask selects the `k` elements of row `i`, which is less than `mn`.
        *row = unsafe { _mm512_maskz_loadu_epi16(mask, x.add(i * ld).cast()) };
    }
    tile
}

/// Loads `k` steps, which are `ld` elements apart, into a tile with one row for each pair of steps.
/// Each 32-bit word of a tile row holds one element of each of the two steps. Each step along k has
/// `mn` contiguous source elements.
///
/// # Safety
/// `x` is valid for reads of `k` steps of `mn` elements; `mn` is at most [`TILE_ROWS`], `k` at most
/// [`TILE_K`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
#[inline]
unsafe fn load_pairs(x: *const u16, ld: usize, mn: usize, k: usize) -> [__m512i; TILE_ROWS] {
    let mask = ((1u32 << mn) - 1) as __mmask16;
    let mut tile = [_mm512_setzero_si512(); TILE_ROWS];
    for (pair, row) in tile.iter_mut().enumerate().take(k.div_ceil(2)) {
        // Zeros complete the last pair of steps if `k` is odd.
        let second_mask = if 2 * pair + 1 < k { mask } else { 0 };
        let x = x.wrapping_add(2 * pair * ld);
        // SAFETY: the masks select only the `mn` elements of steps below `k`.
        let [first_step, second_step] = unsafe {
            [
                _mm256_maskz_loadu_epi16(mask, x.cast()),
                _mm256_maskz_loadu_epi16(second_mask, x.wrapping_add(ld).cast()),
            ]
        };
        let second_step = _mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(second_step));
        *row = _mm512_or_si512(_mm512_cvtepu16_epi32(first_step), second_step);
    }
    tile
}

/// Transposes a tile as a 16×16 matrix of 32-bit words.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
#[inline]
fn transpose_words(rows: [__m512i; TILE_ROWS]) -> [__m512i; TILE_ROWS] {
    let mut groups = rows;
    for (rows, group) in rows.chunks_exact(4).zip(groups.chunks_exact_mut(4)) {
        let [a, b] = [0, 2].map(|i| _mm512_unpacklo_epi32(rows[i], rows[i + 1]));
        let [c, d] = [0, 2].map(|i| _mm512_unpackhi_epi32(rows[i], rows[i + 1]));
        group[0] = _mm512_unpacklo_epi64(a, b);
        group[1] = _mm512_unpackhi_epi64(a, b);
        group[2] = _mm512_unpacklo_epi64(c, d);
        group[3] = _mm512_unpackhi_epi64(c, d);
    }
    // Each group of four vectors holds a 4×16 submatrix of the tile. Vector `i` of a group holds
    // columns `i`, `i + 4`, `i + 8` and `i + 12` of the submatrix, each column in a 128-bit
    // quarter. Shuffles gather the quarters of each column from the four groups.
    let mut columns = groups;
    for i in 0..4 {
        let even_quarters =
            [0, 8].map(|j| _mm512_shuffle_i32x4::<0x88>(groups[j + i], groups[j + 4 + i]));
        let odd_quarters =
            [0, 8].map(|j| _mm512_shuffle_i32x4::<0xdd>(groups[j + i], groups[j + 4 + i]));
        columns[i] = _mm512_shuffle_i32x4::<0x88>(even_quarters[0], even_quarters[1]);
        columns[4 + i] = _mm512_shuffle_i32x4::<0x88>(odd_quarters[0], odd_quarters[1]);
        columns[8 + i] = _mm512_shuffle_i32x4::<0xdd>(even_quarters[0], even_quarters[1]);
        columns[12 + i] = _mm512_shuffle_i32x4::<0xdd>(odd_quarters[0], odd_quarters[1]);
    }
    columns
}

/// Index vector with which [`split_f16`] moves the first elements of all pairs before the second
/// elements.
const DEINTERLEAVE: [u16; 2 * TILE_ROWS] = {
    let mut order = [0; 2 * TILE_ROWS];
    let mut i = 0;
    while i < TILE_ROWS {
        (order[i], order[TILE_ROWS + i]) = (2 * i as u16, 2 * i as u16 + 1);
        i += 1;
    }
    order
};

/// Mask of the upper 16 bits of an `f32`, which form a `bf16`.
const BF16_BITS: i32 = !0xffff;

/// Splits each `f16` exactly into two `bf16` terms: the upper 8 of the 11 significand bits, and the
/// remainder, which is normal or zero. The first `bf16` term of an infinite or NaN `f16` is also
/// infinite or NaN.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
#[inline]
pub(crate) fn split_f16(pairs: __m512i) -> [__m512i; 2] {
    // SAFETY: `DEINTERLEAVE` is as long as a 512-bit vector.
    let order = unsafe { _mm512_loadu_si512(DEINTERLEAVE.as_ptr().cast()) };
    let halves = _mm512_permutexvar_epi16(order, pairs);
    let [first, second] = [_mm512_castsi512_si256(halves), _mm512_extracti64x4_epi64::<1>(halves)];
    let elements = [_mm512_cvtph_ps(first), _mm512_cvtph_ps(second)];
    let mask = _mm512_set1_epi32(BF16_BITS);
    let high_terms = elements.map(|x| _mm512_and_si512(_mm512_castps_si512(x), mask));
    let low_terms =
        |i| _mm512_castps_si512(_mm512_sub_ps(elements[i], _mm512_castsi512_ps(high_terms[i])));
    [interleave(high_terms), interleave([low_terms(0), low_terms(1)])]
}

/// Converts two vectors of `f32` values to `bf16`, and interleaves them into a vector of pairs.
/// `bf16` must represent every value exactly.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
#[inline]
fn interleave([first, second]: [__m512i; 2]) -> __m512i {
    _mm512_or_si512(_mm512_srli_epi32::<16>(first), second)
}
