//! Operands as tiles.

use crate::{
    element::Element,
    host::blas::x86::amx::{BLOCK_ROWS, TILE_K, TILE_ROWS, TILE_WORDS, bf16_terms},
};
use std::arch::x86_64::*;

/// Lines of an operand, rows of `op(A)` or columns of `op(B)`.
pub(crate) struct AmxPackSource<'a, H> {
    pub(crate) x: &'a [H],
    pub(crate) ld: usize,
    /// Whether a line is a row of what lies in memory, rather than a column.
    pub(crate) along: bool,
    /// The first line and term.
    pub(crate) corner: [usize; 2],
    pub(crate) count: usize,
    pub(crate) k: usize,
    /// Whether tiles are the other way round than they are read: `A`'s have rows of lines, `B`'s
    /// rows of pairs of terms.
    pub(crate) turn: bool,
}

/// Copies lines into tiles, those of the first [`LINES`] first, with zeros beyond the last line,
/// up to a [`PAIR`] of tiles, and the last term. Each tile of a type of two [`parts`] is followed by
/// that of the low parts.
pub(crate) fn pack<H: Element>(lines: &AmxPackSource<'_, H>, tiles: &mut [f32]) {
    let AmxPackSource { ld, along, corner: [line, term], count, k, .. } = *lines;
    let (first, last) = if along {
        (line * ld + term, (line + count - 1) * ld + term + k)
    } else {
        (term * ld + line, (term + k - 1) * ld + line + count)
    };
    assert!(size_of::<H>() == 2 && last <= lines.x.len(), "{last} of {}", lines.x.len());
    assert!(
        count.div_ceil(BLOCK_ROWS) * 2 * k.div_ceil(TILE_K) * bf16_terms::<H>() * TILE_WORDS
            <= tiles.len()
    );
    let x = lines.x[first..].as_ptr();
    // SAFETY: these lines can be read and so many tiles be written; AVX-512 was detected.
    #[allow(unsafe_code)]
    unsafe {
        pack_tiles(lines, x.cast(), tiles.as_mut_ptr().cast());
    }
}

/// # Safety
/// All lines can be read from `x`, their first element, all tiles be written.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
#[allow(unsafe_code)]
unsafe fn pack_tiles<H: Element>(lines: &AmxPackSource<'_, H>, x: *const u16, tiles: *mut u32) {
    let AmxPackSource { ld, along, count, k, turn, .. } = *lines;
    let (panels, steps) = (count.div_ceil(BLOCK_ROWS) * 2, k.div_ceil(TILE_K));
    for i in 0..panels * steps {
        // As memory likes to be read.
        let (panel, step) = if along { (i / steps, i % steps) } else { (i % panels, i / panels) };
        let (line, term) = (panel * TILE_ROWS, step * TILE_K);
        let (count, k) = (TILE_ROWS.min(count.saturating_sub(line)), TILE_K.min(k - term));
        // SAFETY: only those lines and terms are read that are there.
        unsafe {
            let tile = match along {
                true => read_along(x.wrapping_add(line * ld + term), ld, count, k),
                false => read_across(x.wrapping_add(term * ld + line), ld, count, k),
            };
            let to = tiles.add((panel * steps + step) * bf16_terms::<H>() * TILE_WORDS);
            let tile = if turn { turned(tile) } else { tile };
            for (i, &row) in tile.iter().enumerate() {
                let to = to.add(i * TILE_ROWS);
                if bf16_terms::<H>() == 1 {
                    _mm512_storeu_si512(to.cast(), row);
                } else {
                    let [high, low] = split_f16(row);
                    _mm512_storeu_si512(to.cast(), high);
                    _mm512_storeu_si512(to.add(TILE_WORDS).cast(), low);
                }
            }
        }
    }
}

/// Rows of terms: the first `k` of `count` lines.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
#[inline]
#[allow(unsafe_code)]
unsafe fn read_along(x: *const u16, ld: usize, count: usize, k: usize) -> [__m512i; TILE_ROWS] {
    let there = ((1u64 << k) - 1) as __mmask32;
    let mut tile = [_mm512_setzero_si512(); TILE_ROWS];
    for (line, row) in tile.iter_mut().enumerate().take(count) {
        // SAFETY: the line has `k` elements here, and no others are read.
        *row = unsafe { _mm512_maskz_loadu_epi16(there, x.add(line * ld).cast()) };
    }
    tile
}

/// Rows of pairs of terms, one of each line.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
#[inline]
#[allow(unsafe_code)]
unsafe fn read_across(x: *const u16, ld: usize, count: usize, k: usize) -> [__m512i; TILE_ROWS] {
    let there = ((1u32 << count) - 1) as __mmask16;
    let mut tile = [_mm512_setzero_si512(); TILE_ROWS];
    for (pair, row) in tile.iter_mut().enumerate().take(k.div_ceil(2)) {
        // An odd last term has a zero beside it.
        let second = if 2 * pair + 1 < k { there } else { 0 };
        let x = x.wrapping_add(2 * pair * ld);
        // SAFETY: the lines have these elements, and no others are read.
        let [low, high] = unsafe {
            [
                _mm256_maskz_loadu_epi16(there, x.cast()),
                _mm256_maskz_loadu_epi16(second, x.wrapping_add(ld).cast()),
            ]
        };
        let high = _mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(high));
        *row = _mm512_or_si512(_mm512_cvtepu16_epi32(low), high);
    }
    tile
}

/// The transposed matrix of words.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
#[inline]
fn turned(rows: [__m512i; TILE_ROWS]) -> [__m512i; TILE_ROWS] {
    let mut quads = rows;
    for (from, to) in rows.chunks_exact(4).zip(quads.chunks_exact_mut(4)) {
        let [a, b] = [0, 2].map(|i| _mm512_unpacklo_epi32(from[i], from[i + 1]));
        let [c, d] = [0, 2].map(|i| _mm512_unpackhi_epi32(from[i], from[i + 1]));
        to[0] = _mm512_unpacklo_epi64(a, b);
        to[1] = _mm512_unpackhi_epi64(a, b);
        to[2] = _mm512_unpacklo_epi64(c, d);
        to[3] = _mm512_unpackhi_epi64(c, d);
    }
    // Of four rows, place `i` of each quarter is together now: quarters are put in rows.
    let mut turned = quads;
    for i in 0..4 {
        let even = [0, 8].map(|j| _mm512_shuffle_i32x4::<0x88>(quads[j + i], quads[j + 4 + i]));
        let odd = [0, 8].map(|j| _mm512_shuffle_i32x4::<0xdd>(quads[j + i], quads[j + 4 + i]));
        turned[i] = _mm512_shuffle_i32x4::<0x88>(even[0], even[1]);
        turned[4 + i] = _mm512_shuffle_i32x4::<0x88>(odd[0], odd[1]);
        turned[8 + i] = _mm512_shuffle_i32x4::<0xdd>(even[0], even[1]);
        turned[12 + i] = _mm512_shuffle_i32x4::<0xdd>(odd[0], odd[1]);
    }
    turned
}

/// What [`split`] puts in order: elements that are first of a pair, then those that are second.
const APART: [u16; 2 * TILE_ROWS] = {
    let mut apart = [0; 2 * TILE_ROWS];
    let mut i = 0;
    while i < TILE_ROWS {
        (apart[i], apart[TILE_ROWS + i]) = (2 * i as u16, 2 * i as u16 + 1);
        i += 1;
    }
    apart
};

/// The bits of an `f32` that a `bf16` has.
const HIGH: i32 = !0xffff;

/// Pairs of `f16` as pairs of `bf16`, whose sums they are, exactly: of 11 significant bits, the
/// first 8 and what is left, which is normal or zero. Of what is not finite, the first is not.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
#[inline]
pub(crate) fn split_f16(pairs: __m512i) -> [__m512i; 2] {
    // SAFETY: an array is read as long as the vector.
    #[allow(unsafe_code)]
    let apart = unsafe { _mm512_loadu_si512(APART.as_ptr().cast()) };
    let apart = _mm512_permutexvar_epi16(apart, pairs);
    let [first, second] = [_mm512_castsi512_si256(apart), _mm512_extracti64x4_epi64::<1>(apart)];
    let wide = [_mm512_cvtph_ps(first), _mm512_cvtph_ps(second)];
    let mask = _mm512_set1_epi32(HIGH);
    let high = wide.map(|x| _mm512_and_si512(_mm512_castps_si512(x), mask));
    let left = |i| _mm512_castps_si512(_mm512_sub_ps(wide[i], _mm512_castsi512_ps(high[i])));
    [joined(high), joined([left(0), left(1)])]
}

/// Pairs of `bf16` from each two of `f32`, which they hold exactly.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
#[inline]
fn joined([first, second]: [__m512i; 2]) -> __m512i {
    _mm512_or_si512(_mm512_srli_epi32::<16>(first), second)
}
