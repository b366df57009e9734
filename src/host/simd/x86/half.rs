//! Vectors of 16-bit elements on x86-64: widened as they are loaded, rounded as they are stored.
//!
//! What names a number of bits is inlined into functions compiled for AVX-512 (F, BW, VL), or for
//! AVX2 and F16C, and may be called where the processor has these only.

use crate::{
    element::{DType, Element},
    host::cache::cache_line::zip_with_aligned_stores,
};
use std::arch::x86_64::*;

/// Elements of the widest vector.
const LANES: usize = 16;

/// `y ← x`, exactly, NaN made quiet; equal lengths.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(crate) fn widen<T: Element>(x: &[T], y: &mut [f32]) {
    zip_with_aligned_stores(
        x,
        y,
        #[inline(always)]
        |x, y| {
            let (runs, rest) = x.as_chunks::<LANES>();
            let (room, rest_room) = y.as_chunks_mut::<LANES>();
            // SAFETY: the processor has AVX-512.
            #[allow(unsafe_code)]
            unsafe {
                for (x, y) in runs.iter().zip(room) {
                    widen_run(x, y);
                }
                widen_run(rest, rest_room);
            }
        },
    );
}

/// `y ← x`, rounded to nearest, ties to even; equal lengths.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(crate) fn narrow<T: Element>(x: &[f32], y: &mut [T]) {
    zip_with_aligned_stores(
        x,
        y,
        #[inline(always)]
        |x, y| {
            let (runs, rest) = x.as_chunks::<LANES>();
            let (room, rest_room) = y.as_chunks_mut::<LANES>();
            // SAFETY: the processor has AVX-512.
            #[allow(unsafe_code)]
            unsafe {
                for (x, y) in runs.iter().zip(room) {
                    narrow_run(x, y);
                }
                narrow_run(rest, rest_room);
            }
        },
    );
}

/// As [`widen`], of a vector at most.
///
/// # Safety
/// The processor has AVX-512.
#[allow(unsafe_code)]
#[inline(always)]
unsafe fn widen_run<T: Element>(x: &[T], y: &mut [f32]) {
    let count = x.len().min(y.len()).min(LANES);
    // SAFETY: both hold so many elements.
    unsafe {
        let wide = widen_512(x.as_ptr(), count);
        _mm512_mask_storeu_ps(y.as_mut_ptr(), first(count), wide);
    }
}

/// As [`narrow`], of a vector at most.
///
/// # Safety
/// The processor has AVX-512.
#[allow(unsafe_code)]
#[inline(always)]
unsafe fn narrow_run<T: Element>(x: &[f32], y: &mut [T]) {
    let count = x.len().min(y.len()).min(LANES);
    // SAFETY: both hold so many elements.
    unsafe {
        let wide = _mm512_maskz_loadu_ps(first(count), x.as_ptr());
        narrow_512(wide, y.as_mut_ptr(), count);
    }
}

/// The first `count` elements at `p`, widened, the others zero and not read.
///
/// # Safety
/// `count` elements of 16 bits at `p` can be read.
#[allow(unsafe_code)]
#[inline(always)]
pub(crate) unsafe fn widen_512<T: Element>(p: *const T, count: usize) -> __m512 {
    // SAFETY: the caller's; what is masked out is not touched.
    unsafe {
        let x = _mm256_maskz_loadu_epi16(first(count), p.cast());
        match T::DTYPE {
            DType::F16 => _mm512_cvtph_ps(x),
            _ => from_bf16_512(x),
        }
    }
}

/// As [`widen_512`].
///
/// # Safety
/// The same.
#[allow(unsafe_code)]
#[inline(always)]
pub(crate) unsafe fn widen_256<T: Element>(p: *const T, count: usize) -> __m256 {
    // SAFETY: the caller's: not more than `count` elements are read.
    unsafe {
        // There are no masks for 16 bits; panels are often of four lines.
        let x = match count {
            8.. => _mm_loadu_si128(p.cast()),
            4 => _mm_loadl_epi64(p.cast()),
            _ => {
                let mut room = [0u16; 8];
                for (i, x) in room.iter_mut().enumerate().take(count) {
                    *x = *p.cast::<u16>().add(i);
                }
                _mm_loadu_si128(room.as_ptr().cast())
            }
        };
        match T::DTYPE {
            DType::F16 => _mm256_cvtph_ps(x),
            _ => _mm256_castsi256_ps(_mm256_slli_epi32::<16>(_mm256_cvtepu16_epi32(x))),
        }
    }
}

/// Writes the first `count` elements to `p`, rounded to nearest, ties to even, and nothing else.
///
/// # Safety
/// `count` elements of 16 bits at `p` can be written.
#[allow(unsafe_code)]
#[inline(always)]
pub(crate) unsafe fn narrow_512<T: Element>(x: __m512, p: *mut T, count: usize) {
    // SAFETY: the caller's; what is masked out is not touched.
    unsafe {
        let x = match T::DTYPE {
            DType::F16 => _mm512_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(x),
            _ => to_bf16_512(x),
        };
        _mm256_mask_storeu_epi16(p.cast(), first(count), x);
    }
}

/// As [`narrow_512`].
///
/// # Safety
/// The same.
#[allow(unsafe_code)]
#[inline(always)]
pub(crate) unsafe fn narrow_256<T: Element>(x: __m256, p: *mut T, count: usize) {
    // SAFETY: the caller's: not more than `count` elements are written.
    unsafe {
        let x = match T::DTYPE {
            DType::F16 => _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(x),
            _ => to_bf16_256(x),
        };
        if count >= 8 {
            return _mm_storeu_si128(p.cast(), x);
        }
        let mut room = [0u16; 8];
        _mm_storeu_si128(room.as_mut_ptr().cast(), x);
        for (i, &x) in room.iter().enumerate().take(count) {
            *p.cast::<u16>().add(i) = x;
        }
    }
}

/// A mask of the first elements.
#[inline(always)]
fn first(count: usize) -> __mmask16 {
    ((1u32 << count) - 1) as __mmask16
}

/// What is an upper half already; NaN is made quiet, as an instruction would.
#[allow(unsafe_code)]
#[inline(always)]
unsafe fn from_bf16_512(x: __m256i) -> __m512 {
    // SAFETY: of values, by instructions that the caller knows to be there.
    unsafe {
        let bits = _mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(x));
        let wide = _mm512_castsi512_ps(bits);
        let nan = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(wide, wide);
        let quiet = _mm512_set1_epi32(0x40 << 16);
        _mm512_castsi512_ps(_mm512_mask_or_epi32(bits, nan, bits, quiet))
    }
}

/// Upper halves, rounded by what is added below them; NaN, made quiet, is not.
#[allow(unsafe_code)]
#[inline(always)]
unsafe fn to_bf16_512(x: __m512) -> __m256i {
    // SAFETY: of values, by instructions that the caller knows to be there.
    unsafe {
        let bits = _mm512_castps_si512(x);
        let high = _mm512_srli_epi32::<16>(bits);
        let odd = _mm512_and_si512(high, _mm512_set1_epi32(1));
        let up = _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff));
        let rounded = _mm512_srli_epi32::<16>(_mm512_add_epi32(bits, up));
        let nan = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(x, x);
        let quiet = _mm512_set1_epi32(0x40);
        _mm512_cvtepi32_epi16(_mm512_mask_or_epi32(rounded, nan, high, quiet))
    }
}

/// As [`to_bf16_512`].
#[allow(unsafe_code)]
#[inline(always)]
unsafe fn to_bf16_256(x: __m256) -> __m128i {
    // SAFETY: of values, by instructions that the caller knows to be there.
    unsafe {
        let bits = _mm256_castps_si256(x);
        let high = _mm256_srli_epi32::<16>(bits);
        let odd = _mm256_and_si256(high, _mm256_set1_epi32(1));
        let up = _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff));
        let rounded = _mm256_srli_epi32::<16>(_mm256_add_epi32(bits, up));
        let nan = _mm256_castps_si256(_mm256_cmp_ps::<_CMP_UNORD_Q>(x, x));
        let quiet = _mm256_or_si256(high, _mm256_set1_epi32(0x40));
        let all = _mm256_blendv_epi8(rounded, quiet, nan);
        _mm_packus_epi32(_mm256_castsi256_si128(all), _mm256_extracti128_si256::<1>(all))
    }
}
