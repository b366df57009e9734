//! Conversion between 16-bit elements and `f32` on x86-64.
//!
//! [`widen`] and [`narrow`] convert slices with AVX-512, for the module `accumulator`. Results of
//! [`widen`] and [`narrow`] are bit-identical to the results of the crate `half`. Functions with a
//! vector width in their name convert one vector for the GEMM kernels. Functions that convert one
//! vector are inlined into functions compiled for the features of the vector type.

use crate::{
    element::{DType, Element},
    host::cache::cache_line::zip_with_aligned_stores,
};
use std::arch::x86_64::*;

/// Number of `f32` elements in an AVX-512 vector.
const LANES: usize = 16;

/// `y ← x`, converted exactly, except that a signaling NaN becomes quiet. `x` and `y` are equally
/// long.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(crate) fn widen<T: Element>(x: &[T], y: &mut [f32]) {
    zip_with_aligned_stores(
        x,
        y,
        #[inline(always)]
        |x, y| {
            let (blocks_x, rest_x) = x.as_chunks::<LANES>();
            let (blocks_y, rest_y) = y.as_chunks_mut::<LANES>();
            // SAFETY: the enclosing function is compiled for AVX-512, so its caller checked for
            // AVX-512.
            unsafe {
                for (x, y) in blocks_x.iter().zip(blocks_y) {
                    widen_vector(x, y);
                }
                widen_vector(rest_x, rest_y);
            }
        },
    );
}

/// `y ← x`, rounded to nearest, ties to even. `x` and `y` have the same length.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(crate) fn narrow<T: Element>(x: &[f32], y: &mut [T]) {
    zip_with_aligned_stores(
        x,
        y,
        #[inline(always)]
        |x, y| {
            let (blocks_x, rest_x) = x.as_chunks::<LANES>();
            let (blocks_y, rest_y) = y.as_chunks_mut::<LANES>();
            // SAFETY: the enclosing function is compiled for AVX-512, so its caller checked for
            // AVX-512.
            unsafe {
                for (x, y) in blocks_x.iter().zip(blocks_y) {
                    narrow_vector(x, y);
                }
                narrow_vector(rest_x, rest_y);
            }
        },
    );
}

/// Like [`widen`], but for at most [`LANES`] elements.
///
/// # Safety
/// The processor has AVX-512 F, BW and VL.
#[inline(always)]
unsafe fn widen_vector<T: Element>(x: &[T], y: &mut [f32]) {
    let count = x.len().min(y.len()).min(LANES);
    // SAFETY: both slices have at least `count` elements, and the masked store writes no other
    // elements.
    unsafe {
        let wide_x = widen_512(x.as_ptr(), count);
        _mm512_mask_storeu_ps(y.as_mut_ptr(), mask_first(count), wide_x);
    }
}

/// Like [`narrow`], but for at most [`LANES`] elements.
///
/// # Safety
/// The processor has AVX-512 F, BW and VL.
#[inline(always)]
unsafe fn narrow_vector<T: Element>(x: &[f32], y: &mut [T]) {
    let count = x.len().min(y.len()).min(LANES);
    // SAFETY: both slices have at least `count` elements, and the masked load reads no other
    // elements.
    unsafe {
        let wide_x = _mm512_maskz_loadu_ps(mask_first(count), x.as_ptr());
        narrow_512(wide_x, y.as_mut_ptr(), count);
    }
}

/// Loads and widens only the first `count` elements from `p`, and sets all other lanes to zero.
///
/// # Safety
/// The processor has AVX-512 F, BW and VL. `T` is a 16-bit type, `count` is at most 16, and `p` is
/// valid for reads of `count` elements.
#[inline(always)]
pub(crate) unsafe fn widen_512<T: Element>(p: *const T, count: usize) -> __m512 {
    // SAFETY: the mask limits the load to the `count` elements that the caller guarantees.
    unsafe {
        let x = _mm256_maskz_loadu_epi16(mask_first(count), p.cast());
        match T::DTYPE {
            DType::F16 => _mm512_cvtph_ps(x),
            _ => from_bf16_512(x),
        }
    }
}

/// Like [`widen_512`], but for eight elements and AVX2.
///
/// # Safety
/// The processor has AVX2 and F16C. `T` is a 16-bit type, `count` is at most 8, and `p` is valid
/// for reads of `count` elements.
#[inline(always)]
pub(crate) unsafe fn widen_256<T: Element>(p: *const T, count: usize) -> __m256 {
    // SAFETY: each branch reads at most the `count` elements that the caller guarantees.
    unsafe {
        // AVX2 has no masked 16-bit loads. Loads of four elements have a separate branch because
        // AVX2 micro-panels of `A` have four rows.
        let x = match count {
            8.. => _mm_loadu_si128(p.cast()),
            4 => _mm_loadl_epi64(p.cast()),
            _ => {
                let mut elements = [0u16; 8];
                for (i, x) in elements.iter_mut().enumerate().take(count) {
                    *x = *p.cast::<u16>().add(i);
                }
                _mm_loadu_si128(elements.as_ptr().cast())
            }
        };
        match T::DTYPE {
            DType::F16 => _mm256_cvtph_ps(x),
            _ => _mm256_castsi256_ps(_mm256_slli_epi32::<16>(_mm256_cvtepu16_epi32(x))),
        }
    }
}

/// Rounds the first `count` elements of `x` to the 16-bit type `T`, to nearest, ties to even, and
/// stores them to `p`.
///
/// # Safety
/// The processor has AVX-512 F, BW and VL. `T` is a 16-bit type, `count` is at most 16, and `p` is
/// valid for writes of `count` elements.
#[inline(always)]
pub(crate) unsafe fn narrow_512<T: Element>(x: __m512, p: *mut T, count: usize) {
    // SAFETY: the mask limits the store to the `count` elements that the caller guarantees.
    unsafe {
        let x = match T::DTYPE {
            DType::F16 => _mm512_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(x),
            _ => to_bf16_512(x),
        };
        _mm256_mask_storeu_epi16(p.cast(), mask_first(count), x);
    }
}

/// Like [`narrow_512`], but for eight elements and AVX2.
///
/// # Safety
/// The processor has AVX2 and F16C. `T` is a 16-bit type, `count` is at most 8, and `p` is valid
/// for writes of `count` elements.
#[inline(always)]
pub(crate) unsafe fn narrow_256<T: Element>(x: __m256, p: *mut T, count: usize) {
    // SAFETY: each branch writes at most the `count` elements that the caller guarantees.
    unsafe {
        let x = match T::DTYPE {
            DType::F16 => _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(x),
            _ => to_bf16_256(x),
        };
        if count >= 8 {
            return _mm_storeu_si128(p.cast(), x);
        }
        let mut elements = [0u16; 8];
        _mm_storeu_si128(elements.as_mut_ptr().cast(), x);
        for (i, &x) in elements.iter().enumerate().take(count) {
            *p.cast::<u16>().add(i) = x;
        }
    }
}

#[inline(always)]
fn mask_first(count: usize) -> __mmask16 {
    ((1u32 << count) - 1) as __mmask16
}

/// Widens each `bf16`, which is the upper half of an `f32`. A signaling NaN becomes quiet, as with
/// the F16C conversion instruction.
///
/// # Safety
/// The processor has AVX-512 F.
#[inline(always)]
unsafe fn from_bf16_512(x: __m256i) -> __m512 {
    // SAFETY: the intrinsics access no memory, and the caller guarantees their features.
    unsafe {
        let bits = _mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(x));
        let wide_x = _mm512_castsi512_ps(bits);
        let nan = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(wide_x, wide_x);
        let quiet_bit = _mm512_set1_epi32(0x40 << 16);
        _mm512_castsi512_ps(_mm512_mask_or_epi32(bits, nan, bits, quiet_bit))
    }
}

/// Rounds each `f32` to `bf16`: adds `0x7fff` plus the lowest bit of the upper half, and returns
/// the upper half. A NaN becomes a quiet NaN.
///
/// # Safety
/// The processor has AVX-512 F.
#[inline(always)]
unsafe fn to_bf16_512(x: __m512) -> __m256i {
    // SAFETY: the intrinsics access no memory, and the caller guarantees their features.
    unsafe {
        let bits = _mm512_castps_si512(x);
        let high_half = _mm512_srli_epi32::<16>(bits);
        let low_bit = _mm512_and_si512(high_half, _mm512_set1_epi32(1));
        let up = _mm512_add_epi32(low_bit, _mm512_set1_epi32(0x7fff));
        let rounded_half = _mm512_srli_epi32::<16>(_mm512_add_epi32(bits, up));
        let nan = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(x, x);
        let quiet_bit = _mm512_set1_epi32(0x40);
        _mm512_cvtepi32_epi16(_mm512_mask_or_epi32(rounded_half, nan, high_half, quiet_bit))
    }
}

/// Like [`to_bf16_512`], but for eight elements and AVX2.
///
/// # Safety
/// The processor has AVX2.
#[inline(always)]
unsafe fn to_bf16_256(x: __m256) -> __m128i {
    // SAFETY: the intrinsics access no memory, and the caller guarantees their features.
    unsafe {
        let bits = _mm256_castps_si256(x);
        let high_half = _mm256_srli_epi32::<16>(bits);
        let low_bit = _mm256_and_si256(high_half, _mm256_set1_epi32(1));
        let up = _mm256_add_epi32(low_bit, _mm256_set1_epi32(0x7fff));
        let rounded_half = _mm256_srli_epi32::<16>(_mm256_add_epi32(bits, up));
        let nan = _mm256_castps_si256(_mm256_cmp_ps::<_CMP_UNORD_Q>(x, x));
        let quiet_nan = _mm256_or_si256(high_half, _mm256_set1_epi32(0x40));
        let results = _mm256_blendv_epi8(rounded_half, quiet_nan, nan);
        _mm_packus_epi32(_mm256_castsi256_si128(results), _mm256_extracti128_si256::<1>(results))
    }
}
