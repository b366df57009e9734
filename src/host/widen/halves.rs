//! 16-bit elements to `f32` and back by AVX-512, sixteen at a time.

use super::super::lines::with_by_lines;
use crate::element::{bf16, f16};
use bytemuck::{Pod, cast_slice, cast_slice_mut};
use std::arch::x86_64::{
    __m256i, __m512, _CMP_UNORD_Q, _MM_FROUND_TO_NEAREST_INT, _mm256_mask_storeu_epi16,
    _mm256_maskz_loadu_epi16, _mm512_add_epi32, _mm512_and_si512, _mm512_castps_si512,
    _mm512_castsi512_ps, _mm512_cmp_ps_mask, _mm512_cvtepi32_epi16, _mm512_cvtepu16_epi32,
    _mm512_cvtph_ps, _mm512_cvtps_ph, _mm512_mask_or_epi32, _mm512_mask_storeu_ps,
    _mm512_maskz_loadu_ps, _mm512_set1_epi32, _mm512_slli_epi32, _mm512_srli_epi32,
};

/// Elements of a vector.
const LANES: usize = 16;

/// A type of 16 bits.
pub(super) trait Half: Pod {
    /// Sixteen values, exactly; NaN becomes quiet.
    ///
    /// # Safety
    /// The processor has AVX-512.
    #[allow(unsafe_code)]
    unsafe fn wide(x: __m256i) -> __m512;

    /// Sixteen values, rounded to nearest, ties to even.
    ///
    /// # Safety
    /// The processor has AVX-512.
    #[allow(unsafe_code)]
    unsafe fn narrow(x: __m512) -> __m256i;
}

impl Half for f16 {
    #[inline(always)]
    #[allow(unsafe_code)]
    unsafe fn wide(x: __m256i) -> __m512 {
        // SAFETY: as of this.
        unsafe { _mm512_cvtph_ps(x) }
    }

    #[inline(always)]
    #[allow(unsafe_code)]
    unsafe fn narrow(x: __m512) -> __m256i {
        // SAFETY: as of this.
        unsafe { _mm512_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(x) }
    }
}

impl Half for bf16 {
    #[inline(always)]
    #[allow(unsafe_code)]
    unsafe fn wide(x: __m256i) -> __m512 {
        // SAFETY: as of this.
        unsafe {
            let bits = _mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(x));
            let wide = _mm512_castsi512_ps(bits);
            let nan = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(wide, wide);
            let quiet = _mm512_set1_epi32(0x40 << 16);
            _mm512_castsi512_ps(_mm512_mask_or_epi32(bits, nan, bits, quiet))
        }
    }

    /// In integers: the instruction for it takes subnormal numbers for 0.
    #[inline(always)]
    #[allow(unsafe_code)]
    unsafe fn narrow(x: __m512) -> __m256i {
        // SAFETY: as of this.
        unsafe {
            let bits = _mm512_castps_si512(x);
            let high = _mm512_srli_epi32::<16>(bits);
            let odd = _mm512_and_si512(high, _mm512_set1_epi32(1));
            let below_half = _mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff));
            let rounded = _mm512_srli_epi32::<16>(_mm512_add_epi32(below_half, odd));
            let nan = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(x, x);
            let quiet = _mm512_set1_epi32(0x40);
            _mm512_cvtepi32_epi16(_mm512_mask_or_epi32(rounded, nan, high, quiet))
        }
    }
}

/// `y ← x`, exactly; equal lengths.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(super) fn widen<T: Half>(x: &[T], y: &mut [f32]) {
    with_by_lines(
        x,
        y,
        #[inline(always)]
        |x, y| {
            let (runs, rest) = cast_slice::<T, i16>(x).as_chunks::<LANES>();
            let (room, rest_room) = y.as_chunks_mut::<LANES>();
            // SAFETY: the processor has AVX-512.
            #[allow(unsafe_code)]
            unsafe {
                for (x, y) in runs.iter().zip(room) {
                    widen_run::<T>(x, y);
                }
                widen_run::<T>(rest, rest_room);
            }
        },
    );
}

/// `y ← x`, rounded to nearest, ties to even; equal lengths.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(super) fn narrow<T: Half>(x: &[f32], y: &mut [T]) {
    with_by_lines(
        x,
        y,
        #[inline(always)]
        |x, y| {
            let (runs, rest) = x.as_chunks::<LANES>();
            let (room, rest_room) = cast_slice_mut::<T, i16>(y).as_chunks_mut::<LANES>();
            // SAFETY: the processor has AVX-512.
            #[allow(unsafe_code)]
            unsafe {
                for (x, y) in runs.iter().zip(room) {
                    narrow_run::<T>(x, y);
                }
                narrow_run::<T>(rest, rest_room);
            }
        },
    );
}

/// As [`widen`], of a vector at most.
///
/// # Safety
/// The processor has AVX-512.
#[inline(always)]
#[allow(unsafe_code)]
unsafe fn widen_run<T: Half>(x: &[i16], y: &mut [f32]) {
    let mask = mask_of(x.len().min(y.len()));
    // SAFETY: the mask leaves what both hold.
    unsafe {
        let wide = T::wide(_mm256_maskz_loadu_epi16(mask, x.as_ptr()));
        _mm512_mask_storeu_ps(y.as_mut_ptr(), mask, wide);
    }
}

/// As [`narrow`], of a vector at most.
///
/// # Safety
/// The processor has AVX-512.
#[inline(always)]
#[allow(unsafe_code)]
unsafe fn narrow_run<T: Half>(x: &[f32], y: &mut [i16]) {
    let mask = mask_of(x.len().min(y.len()));
    // SAFETY: the mask leaves what both hold.
    unsafe {
        let narrow = T::narrow(_mm512_maskz_loadu_ps(mask, x.as_ptr()));
        _mm256_mask_storeu_epi16(y.as_mut_ptr(), mask, narrow);
    }
}

/// Which elements of a vector are among the first `count`.
#[inline(always)]
fn mask_of(count: usize) -> u16 {
    ((1u32 << count.min(LANES)) - 1) as u16
}
