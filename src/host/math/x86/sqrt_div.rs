//! Square roots and quotients in `f32` with AVX-512; some of the results are refined from
//! approximate reciprocals.
//!
//! The divider of the processor needs ten cycles per vector, during which the FMA units would be
//! idle. To keep the divider and the FMA units busy, the divider computes only some vectors of each
//! block, and the FMA units compute the other vectors in parallel. The FMA units refine an estimate
//! by one or two Newton steps and a correction from the exact remainder (Markstein, *IA-64 and
//! Elementary Functions*). All results are correctly rounded, like the results of square root and
//! division instructions.
//!
//! Refined results are correctly rounded if the relative error of the estimate is at most 2⁻¹⁴,
//! which processors guarantee. The error of a refined result before the final rounding is below
//! 2⁻²² ulp. The tests try all estimates for roots within 2⁻²² ulp of the midpoint of two `f32`
//! values, and sampled estimates for quotients within 2⁻²² ulp of a midpoint. Blocks that contain
//! divisors just below a power of two, or operands near the ends of the exponent range, are
//! computed entirely by the divider.

use crate::host::cache::cache_line::zip_with_aligned_stores;
use std::arch::x86_64::{
    _mm512_cmpge_epu32_mask, _mm512_loadu_ps, _mm512_loadu_si512, _mm512_max_epu32,
    _mm512_rcp14_ps, _mm512_rsqrt14_ps, _mm512_set1_epi32, _mm512_setzero_si512, _mm512_slli_epi32,
    _mm512_storeu_ps, _mm512_ternarylogic_epi32, _mm512_test_epi32_mask, _mm512_testn_epi32_mask,
};

const LANES: usize = 16;

const BLOCK: usize = 4 * LANES;

/// Number of elements in each block whose square roots the processor's divider computes. The FMA
/// units compute all other square roots of a block.
const SQRT_IN_DIVIDER: usize = LANES;

/// Number of elements in each block whose quotients the processor's divider computes.
const DIV_IN_DIVIDER: usize = 2 * LANES;

/// `yᵢ ← √xᵢ`. `x` and `y` have the same length.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(crate) fn sqrt(x: &[f32], y: &mut [f32]) {
    zip_with_aligned_stores(
        x,
        y,
        #[inline(always)]
        |x, y| {
            let ((x, rest_x), (y, rest_y)) = (x.as_chunks(), y.as_chunks_mut());
            for (x, y) in x.iter().zip(y) {
                // SAFETY: the enclosing function is compiled for AVX-512, so its caller checked for
                // AVX-512.
                unsafe { sqrt_block(x, y) };
            }
            for (x, y) in rest_x.iter().zip(rest_y) {
                *y = x.sqrt();
            }
        },
    );
}

/// `yᵢ ← aᵢ / bᵢ`. `a`, `b` and `y` have the same length.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(crate) fn div(a: &[f32], mut b: &[f32], y: &mut [f32]) {
    zip_with_aligned_stores(
        a,
        y,
        #[inline(always)]
        |a, y| {
            let b_part;
            (b_part, b) = b.split_at(y.len());
            let ((a, rest_a), (y, rest_y)) = (a.as_chunks(), y.as_chunks_mut());
            let (b_part, rest_b) = b_part.as_chunks();
            for ((a, b), y) in a.iter().zip(b_part).zip(y) {
                // SAFETY: the enclosing function is compiled for AVX-512, so its caller checked for
                // AVX-512.
                unsafe { div_block(a, b, y) };
            }
            for ((a, b), y) in rest_a.iter().zip(rest_b).zip(rest_y) {
                *y = a / b;
            }
        },
    );
}

/// `yᵢ ← √xᵢ`
///
/// # Safety
/// The processor has AVX-512 F.
#[inline(always)]
unsafe fn sqrt_block(x: &[f32; BLOCK], y: &mut [f32; BLOCK]) {
    // Bit pattern of 2⁻⁹⁹. For operands of at least 2⁻⁹⁹, the remainder `x − root²` is exact.
    const MIN: u32 = 2f32.to_bits() - (100 << 23);
    const RANGE: u32 = f32::INFINITY.to_bits() - MIN;
    let mut all_refinable = true;
    for x in &x[SQRT_IN_DIVIDER..] {
        all_refinable &= x.to_bits().wrapping_sub(MIN) < RANGE;
    }
    for i in 0..SQRT_IN_DIVIDER {
        y[i] = x[i].sqrt();
    }
    if all_refinable {
        let mut estimate = [0.0; BLOCK];
        for i in (SQRT_IN_DIVIDER..BLOCK).step_by(LANES) {
            // SAFETY: `i + LANES <= BLOCK`, so the operand and `estimate` hold a vector from index
            // `i` on.
            unsafe {
                let x = _mm512_loadu_ps(x.as_ptr().add(i));
                _mm512_storeu_ps(estimate.as_mut_ptr().add(i), _mm512_rsqrt14_ps(x));
            }
        }
        for i in SQRT_IN_DIVIDER..BLOCK {
            y[i] = refined_sqrt(x[i], estimate[i]);
        }
    } else {
        for i in SQRT_IN_DIVIDER..BLOCK {
            y[i] = x[i].sqrt();
        }
    }
}

/// Returns `√x` from an estimate of `1 / √x`, correctly rounded for `2⁻⁹⁹ ≤ x < ∞`.
#[inline(always)]
fn refined_sqrt(x: f32, estimate: f32) -> f32 {
    let (root, half) = (x * estimate, 0.5 * estimate);
    let error = (-root).mul_add(half, 0.5);
    // The refined `root` approximates √x, and the refined `half` approximates 1 / (2·√x).
    let (root, half) = (root.mul_add(error, root), half.mul_add(error, half));
    let remainder = (-root).mul_add(root, x);
    remainder.mul_add(half, root)
}

/// `yᵢ ← aᵢ / bᵢ`
///
/// # Safety
/// The processor has AVX-512 F.
#[inline(always)]
unsafe fn div_block(a: &[f32; BLOCK], b: &[f32; BLOCK], y: &mut [f32; BLOCK]) {
    for i in 0..DIV_IN_DIVIDER {
        y[i] = a[i] / b[i];
    }
    // SAFETY: the caller guarantees that the processor has AVX-512 F.
    if unsafe { is_refinable(a, b) } {
        let mut estimate = [0.0; BLOCK];
        for i in (DIV_IN_DIVIDER..BLOCK).step_by(LANES) {
            // SAFETY: `i + LANES <= BLOCK`, so the operand and `estimate` hold a vector from index
            // `i` on.
            unsafe {
                let b = _mm512_loadu_ps(b.as_ptr().add(i));
                _mm512_storeu_ps(estimate.as_mut_ptr().add(i), _mm512_rcp14_ps(b));
            }
        }
        for i in DIV_IN_DIVIDER..BLOCK {
            y[i] = refined_div(a[i], b[i], estimate[i]);
        }
    } else {
        for i in DIV_IN_DIVIDER..BLOCK {
            y[i] = a[i] / b[i];
        }
    }
}

/// Returns whether [`refined_div`] correctly rounds the quotients of all elements from index
/// [`DIV_IN_DIVIDER`] on. A quotient is correctly rounded if `2⁻⁶³ ≤ |a| < 2⁶⁵`, `2⁻³¹ ≤ |b| <
/// 2³³`, and the fraction bits of `b` are not all ones.
///
/// # Safety
/// The processor has AVX-512 F.
#[inline(always)]
unsafe fn is_refinable(a: &[f32; BLOCK], b: &[f32; BLOCK]) -> bool {
    // Exponent fields start with bits 01 or 10 in the allowed range of `a`, and with 011 or 100 in
    // the allowed range of `b`. SAFETY: the caller guarantees that the processor has AVX-512 F.
    // `i + LANES <= BLOCK`, so `a` and `b` hold a vector from index `i` on.
    unsafe {
        let (mut wide_bits, mut narrow_bits) = (_mm512_set1_epi32(-1), _mm512_setzero_si512());
        let mut max_fraction = _mm512_setzero_si512();
        for i in (DIV_IN_DIVIDER..BLOCK).step_by(LANES) {
            let a = _mm512_loadu_si512(a.as_ptr().add(i).cast());
            let b = _mm512_loadu_si512(b.as_ptr().add(i).cast());
            let (next_a, next_b) = (_mm512_slli_epi32::<1>(a), _mm512_slli_epi32::<1>(b));
            wide_bits = _mm512_ternarylogic_epi32::<AND_DIFFERENT>(wide_bits, a, next_a);
            wide_bits = _mm512_ternarylogic_epi32::<AND_DIFFERENT>(wide_bits, b, next_b);
            narrow_bits = _mm512_ternarylogic_epi32::<OR_DIFFERENT>(narrow_bits, b, next_b);
            max_fraction = _mm512_max_epu32(max_fraction, _mm512_slli_epi32::<9>(b));
        }
        let out_of_range = _mm512_testn_epi32_mask(wide_bits, _mm512_set1_epi32(1 << 30))
            | _mm512_test_epi32_mask(narrow_bits, _mm512_set1_epi32(1 << 29));
        let all_ones = _mm512_cmpge_epu32_mask(max_fraction, _mm512_set1_epi32(-1 << 9));
        out_of_range | all_ones == 0
    }
}

/// Truth table of `x & (y ^ z)` for the instruction `vpternlog`.
const AND_DIFFERENT: i32 = 0x60;

/// Truth table of `x | (y ^ z)` for the instruction `vpternlog`.
const OR_DIFFERENT: i32 = 0xf6;

/// Returns `a / b` from an estimate of `1 / b`, correctly rounded if [`is_refinable`] holds.
#[inline(always)]
fn refined_div(a: f32, b: f32, estimate: f32) -> f32 {
    let mut reciprocal = estimate;
    for _ in 0..2 {
        let error = (-b).mul_add(reciprocal, 1.0);
        reciprocal = reciprocal.mul_add(error, reciprocal);
    }
    let quotient = a * reciprocal;
    let remainder = (-b).mul_add(quotient, a);
    remainder.mul_add(reciprocal, quotient)
}

#[cfg(test)]
mod tests;
