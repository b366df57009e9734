//! AVX-512 loops of BLAS level 1 for `f32`: sums of two operands, and elementwise updates.

use crate::host::{
    cache::{
        cache_line::{PREFETCH_DISTANCE, store_peel_len},
        x86::prefetch_l1,
    },
    reduction::tree::{ACCUMULATOR_ROWS, LANES},
};
use std::{arch::x86_64::*, mem::transmute};

/// Number of elements in one iteration of a loop: one element for each accumulator.
const BLOCK: usize = LANES * ACCUMULATOR_ROWS;

/// Accumulates `f(sum, xᵢ, yᵢ)` over all pairs (xᵢ, yᵢ), and returns the sum of the accumulators.
/// `f(sum, 0, 0)` must return `sum`. Prefetches `x` in software if `prefetch` is true.
///
/// Loads of `x` are aligned to cache lines. Aligning the loads rotates the assignment of elements
/// to accumulators, which only swaps operands of additions in the tree that adds the accumulators.
/// The portable and AVX-512 loops therefore give bit-identical results.
///
/// # Panics
/// Panics if the lengths of `x` and `y` differ.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(crate) fn sum(
    prefetch: bool,
    x: &[f32],
    y: &[f32],
    f: impl Fn(f32, f32, f32) -> f32 + Copy,
) -> f32 {
    assert!(x.len() == y.len());
    let mut sums = [_mm512_setzero_ps(); ACCUMULATOR_ROWS];
    let prefix = x.as_ptr().addr() / size_of::<f32>() % LANES;
    // Number of elements from the start of the cache line that contains the first element, to the
    // end of `x`.
    let mut left = prefix + x.len();
    let (mut x, mut y) = (x.as_ptr().wrapping_sub(prefix), y.as_ptr());
    // SAFETY: the enclosing function is compiled for AVX-512. Masks exclude all addresses before
    // the first element and after the last element, and unmasked vectors lie within the operands.
    // An expanding load reads `y` from the first element on, because a masked load that reaches
    // into an unmapped page before `y` is slow.
    unsafe {
        if prefix > 0 {
            let mask = u16::MAX << prefix & first_lanes(left);
            let (head_x, head_y) =
                (_mm512_maskz_loadu_ps(mask, x), _mm512_maskz_expandloadu_ps(mask, y));
            sums[0] = map3(sums[0], head_x, head_y, f);
            y = y.wrapping_sub(prefix);
            sums = accumulate_tail::<1>(sums, (x, y), left, f);
            (x, y) = (x.wrapping_add(BLOCK), y.wrapping_add(BLOCK));
            left = left.saturating_sub(BLOCK);
        }
        while left >= BLOCK {
            for (row, sum) in sums.iter_mut().enumerate() {
                let (x, y) = (x.wrapping_add(row * LANES), y.wrapping_add(row * LANES));
                if prefetch {
                    prefetch_l1(x.wrapping_byte_add(PREFETCH_DISTANCE));
                }
                *sum = map3(*sum, _mm512_loadu_ps(x), _mm512_loadu_ps(y), f);
            }
            (x, y) = (x.wrapping_add(BLOCK), y.wrapping_add(BLOCK));
            left -= BLOCK;
        }
        if left > 0 {
            sums = accumulate_tail::<0>(sums, (x, y), left, f);
        }
    }
    reduce(sums)
}

/// `yᵢ ← f(xᵢ, yᵢ)`. Stores are aligned to cache lines, because a store that straddles two cache
/// lines costs two accesses.
///
/// # Panics
/// Panics if the lengths of `x` and `y` differ.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(crate) fn update(x: &[f32], y: &mut [f32], f: impl Fn(f32, f32) -> f32 + Copy) {
    assert!(x.len() == y.len());
    let (mut left, peel_len) = (y.len(), store_peel_len(y));
    let (mut x, mut y) = (x.as_ptr(), y.as_mut_ptr());
    // SAFETY: the enclosing function is compiled for AVX-512. Whole vectors are loaded and stored
    // only while at least `BLOCK` elements are left, and masks exclude all elements after the last
    // element.
    unsafe {
        if peel_len > 0 {
            update_masked(first_lanes(peel_len), x, y, f);
            (x, y, left) = (x.wrapping_add(peel_len), y.wrapping_add(peel_len), left - peel_len);
        }
        while left >= BLOCK {
            for row in 0..ACCUMULATOR_ROWS {
                let (x, y) = (x.wrapping_add(row * LANES), y.wrapping_add(row * LANES));
                _mm512_storeu_ps(y, map2(_mm512_loadu_ps(x), _mm512_loadu_ps(y), f));
            }
            (x, y, left) = (x.wrapping_add(BLOCK), y.wrapping_add(BLOCK), left - BLOCK);
        }
        while left > 0 {
            update_masked(first_lanes(left), x, y, f);
            (x, y) = (x.wrapping_add(LANES), y.wrapping_add(LANES));
            left = left.saturating_sub(LANES);
        }
    }
}

/// `yᵢ ← f(xᵢ, yᵢ)` for the lanes that the mask selects.
///
/// # Safety
/// The processor has AVX-512. `x` is valid for reads, and `y` for reads and writes, of the lanes in
/// `mask`.
#[inline(always)]
unsafe fn update_masked(mask: u16, x: *const f32, y: *mut f32, f: impl Fn(f32, f32) -> f32) {
    // SAFETY: the mask restricts each access to lanes that the caller guarantees to be valid.
    unsafe {
        let values = map2(_mm512_maskz_loadu_ps(mask, x), _mm512_maskz_loadu_ps(mask, y), f);
        _mm512_mask_storeu_ps(y, mask, values);
    }
}

/// Accumulates the `left` remaining elements of `x` and `y`, but at most [`BLOCK`] of them.
/// Accumulation starts at accumulator row `FIRST`.
///
/// # Safety
/// The processor has AVX-512, and `x` and `y` are valid for reads of the accumulated elements.
#[inline(always)]
unsafe fn accumulate_tail<const FIRST: usize>(
    mut sums: [__m512; ACCUMULATOR_ROWS],
    (x, y): (*const f32, *const f32),
    left: usize,
    f: impl Fn(f32, f32, f32) -> f32,
) -> [__m512; ACCUMULATOR_ROWS] {
    for (row, sum) in sums.iter_mut().enumerate().skip(FIRST) {
        let start = row * LANES;
        if left <= start {
            break;
        }
        let (x, y) = (x.wrapping_add(start), y.wrapping_add(start));
        let mask = first_lanes(left - start);
        // SAFETY: the mask excludes all lanes after the last of the `left` elements.
        unsafe {
            let (x, y) = (_mm512_maskz_loadu_ps(mask, x), _mm512_maskz_loadu_ps(mask, y));
            *sum = map3(*sum, x, y, &f);
        }
    }
    sums
}

/// Returns the mask of the first `count` lanes, or of all lanes if `count` is larger.
#[inline(always)]
fn first_lanes(count: usize) -> u16 {
    ((1u32 << count.min(LANES)) - 1) as u16
}

/// Returns `f(xᵢ, yᵢ)` for each lane.
///
/// # Safety
/// The processor has AVX-512.
#[inline(always)]
unsafe fn map2(x: __m512, y: __m512, f: impl Fn(f32, f32) -> f32) -> __m512 {
    // SAFETY: `__m512` and `[f32; 16]` have the same size, and any bit pattern is valid for `f32`.
    let [x, mut y]: [[f32; LANES]; 2] = unsafe { transmute([x, y]) };
    for i in 0..LANES {
        y[i] = f(x[i], y[i]);
    }
    // SAFETY: `[f32; 16]` and `__m512` have the same size, and any bit pattern is valid for
    // `__m512`.
    unsafe { transmute(y) }
}

/// Returns `f(sumᵢ, xᵢ, yᵢ)` for each lane.
///
/// # Safety
/// The processor has AVX-512.
#[inline(always)]
unsafe fn map3(sum: __m512, x: __m512, y: __m512, f: impl Fn(f32, f32, f32) -> f32) -> __m512 {
    // SAFETY: `__m512` and `[f32; 16]` have the same size, and any bit pattern is valid for `f32`.
    let [mut sum, x, y]: [[f32; LANES]; 3] = unsafe { transmute([sum, x, y]) };
    for i in 0..LANES {
        sum[i] = f(sum[i], x[i], y[i]);
    }
    // SAFETY: `[f32; 16]` and `__m512` have the same size, and any bit pattern is valid for
    // `__m512`.
    unsafe { transmute(sum) }
}

/// Returns the sum of all accumulators. Each round adds the upper half of the accumulators to the
/// lower half.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn reduce([a, b, c, d]: [__m512; ACCUMULATOR_ROWS]) -> f32 {
    let all = _mm512_add_ps(_mm512_add_ps(a, c), _mm512_add_ps(b, d));
    let high = _mm512_castps512_ps256(_mm512_shuffle_f32x4::<0xee>(all, all));
    let eight = _mm256_add_ps(_mm512_castps512_ps256(all), high);
    let four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps::<1>(eight));
    let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)))
}
