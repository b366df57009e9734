//! Rows of `f32` accumulators in AVX-512 or AVX2 registers.

use crate::host::reduction::tree::LANES;
use std::{arch::x86_64::*, mem::transmute};

/// [`LANES`] elements of `f32` in one AVX-512 register or two AVX2 registers.
///
/// # Safety
/// All functions require that the processor has the instruction set of the registers, AVX-512 or
/// AVX2. The pointers of loads and stores are valid for the accessed elements, and need no
/// alignment.
pub(super) trait Row: Copy {
    /// Returns a row of zeros.
    unsafe fn zero() -> Self;
    /// Returns the row with the given elements.
    unsafe fn from_array(x: [f32; LANES]) -> Self;
    /// Returns the elements of the row.
    unsafe fn to_array(self) -> [f32; LANES];
    /// Loads a row from `p`.
    unsafe fn load(p: *const f32) -> Self;
    /// Loads from `p` only the lanes that `mask` selects, and sets all other lanes to zero.
    unsafe fn load_masked(mask: u16, p: *const f32) -> Self;
    /// Loads consecutive elements, from `p` on, into the lanes that `mask` selects, the first of
    /// which is `start`. The selected lanes are consecutive. Sets all other lanes to zero.
    unsafe fn load_shifted(mask: u16, start: usize, p: *const f32) -> Self;
    /// Stores a row to `p`.
    unsafe fn store(self, p: *mut f32);
    /// Stores to `p` only the lanes that `mask` selects.
    unsafe fn store_masked(self, mask: u16, p: *mut f32);
    /// Returns `self + x`.
    unsafe fn add(self, x: Self) -> Self;
    /// Adds the upper half of the lanes to the lower half.
    unsafe fn add_halves(self) -> __m256;
}

impl Row for __m512 {
    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: the caller guarantees AVX-512.
        unsafe { _mm512_setzero_ps() }
    }

    #[inline(always)]
    unsafe fn from_array(x: [f32; LANES]) -> Self {
        // SAFETY: both types have the same size, and any bit pattern is valid for both.
        unsafe { transmute(x) }
    }

    #[inline(always)]
    unsafe fn to_array(self) -> [f32; LANES] {
        // SAFETY: both types have the same size, and any bit pattern is valid for both.
        unsafe { transmute(self) }
    }

    #[inline(always)]
    unsafe fn load(p: *const f32) -> Self {
        // SAFETY: the caller guarantees AVX-512, and that `p` is valid for a row.
        unsafe { _mm512_loadu_ps(p) }
    }

    #[inline(always)]
    unsafe fn load_masked(mask: u16, p: *const f32) -> Self {
        // SAFETY: the caller guarantees AVX-512, and that `p` is valid for the masked lanes.
        unsafe { _mm512_maskz_loadu_ps(mask, p) }
    }

    /// Uses an expanding load, which reads no address before `p`. A masked load from before `p` is
    /// slow if it reaches into an unmapped page.
    #[inline(always)]
    unsafe fn load_shifted(mask: u16, _: usize, p: *const f32) -> Self {
        // SAFETY: the caller guarantees AVX-512, and that `p` is valid for as many elements as
        // `mask` selects.
        unsafe { _mm512_maskz_expandloadu_ps(mask, p) }
    }

    #[inline(always)]
    unsafe fn store(self, p: *mut f32) {
        // SAFETY: the caller guarantees AVX-512, and that `p` is valid for a row.
        unsafe { _mm512_storeu_ps(p, self) }
    }

    #[inline(always)]
    unsafe fn store_masked(self, mask: u16, p: *mut f32) {
        // SAFETY: the caller guarantees AVX-512, and that `p` is valid for the masked lanes.
        unsafe { _mm512_mask_storeu_ps(p, mask, self) }
    }

    #[inline(always)]
    unsafe fn add(self, x: Self) -> Self {
        // SAFETY: the caller guarantees AVX-512.
        unsafe { _mm512_add_ps(self, x) }
    }

    #[inline(always)]
    unsafe fn add_halves(self) -> __m256 {
        // SAFETY: the caller guarantees AVX-512.
        unsafe {
            let high_half = _mm512_shuffle_f32x4::<0xee>(self, self);
            _mm256_add_ps(_mm512_castps512_ps256(self), _mm512_castps512_ps256(high_half))
        }
    }
}

impl Row for [__m256; 2] {
    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: the caller guarantees AVX2.
        unsafe { [_mm256_setzero_ps(); 2] }
    }

    #[inline(always)]
    unsafe fn from_array(x: [f32; LANES]) -> Self {
        // SAFETY: both types have the same size, and any bit pattern is valid for both.
        unsafe { transmute(x) }
    }

    #[inline(always)]
    unsafe fn to_array(self) -> [f32; LANES] {
        // SAFETY: both types have the same size, and any bit pattern is valid for both.
        unsafe { transmute(self) }
    }

    #[inline(always)]
    unsafe fn load(p: *const f32) -> Self {
        // SAFETY: the caller guarantees AVX2, and that `p` is valid for a row.
        unsafe { [_mm256_loadu_ps(p), _mm256_loadu_ps(p.wrapping_add(8))] }
    }

    #[inline(always)]
    unsafe fn load_masked(mask: u16, p: *const f32) -> Self {
        // SAFETY: the caller guarantees AVX2, and that `p` is valid for the masked lanes.
        unsafe {
            let [low, high] = vector_masks(mask);
            [_mm256_maskload_ps(p, low), _mm256_maskload_ps(p.wrapping_add(8), high)]
        }
    }

    #[inline(always)]
    unsafe fn load_shifted(mask: u16, start: usize, p: *const f32) -> Self {
        // SAFETY: the caller guarantees AVX2, and that `p - start` is valid for the masked lanes.
        unsafe { Self::load_masked(mask, p.wrapping_sub(start)) }
    }

    #[inline(always)]
    unsafe fn store(self, p: *mut f32) {
        let [low, high] = self;
        // SAFETY: the caller guarantees AVX2, and that `p` is valid for a row.
        unsafe {
            _mm256_storeu_ps(p, low);
            _mm256_storeu_ps(p.wrapping_add(8), high);
        }
    }

    #[inline(always)]
    unsafe fn store_masked(self, mask: u16, p: *mut f32) {
        let [low, high] = self;
        // SAFETY: the caller guarantees AVX2, and that `p` is valid for the masked lanes.
        unsafe {
            let [low_mask, high_mask] = vector_masks(mask);
            _mm256_maskstore_ps(p, low_mask, low);
            _mm256_maskstore_ps(p.wrapping_add(8), high_mask, high);
        }
    }

    #[inline(always)]
    unsafe fn add(self, x: Self) -> Self {
        // SAFETY: the caller guarantees AVX2.
        unsafe { [_mm256_add_ps(self[0], x[0]), _mm256_add_ps(self[1], x[1])] }
    }

    #[inline(always)]
    unsafe fn add_halves(self) -> __m256 {
        // SAFETY: the caller guarantees AVX2.
        unsafe { _mm256_add_ps(self[0], self[1]) }
    }
}

/// Returns AVX2 masks for the lower and the upper eight lanes of `mask`.
///
/// # Safety
/// The processor has AVX2.
#[inline(always)]
unsafe fn vector_masks(mask: u16) -> [__m256i; 2] {
    let bits = i32::from(mask);
    // SAFETY: the caller guarantees AVX2.
    unsafe {
        let lane_bits = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
        let low = _mm256_and_si256(_mm256_set1_epi32(bits), lane_bits);
        let high = _mm256_and_si256(_mm256_set1_epi32(bits >> 8), lane_bits);
        [_mm256_cmpeq_epi32(low, lane_bits), _mm256_cmpeq_epi32(high, lane_bits)]
    }
}
