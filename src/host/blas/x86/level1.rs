//! AVX-512 loops of BLAS level 1 for `f32`: sums of two operands, and elementwise updates.

use crate::host::{
    cache::{
        cache_line::{PREFETCH_DISTANCE, store_peel_len},
        x86::prefetch_l1,
    },
    reduction::tree::{ACCUMULATOR_ROWS, LANES},
};
use std::{arch::x86_64::*, mem::transmute};

/// Number of elements that a loop processes at a time, one for each accumulator.
const BLOCK: usize = LANES * ACCUMULATOR_ROWS;

/// Accumulates `f(sum, xᵢ, yᵢ)` over all pairs (xᵢ, yᵢ), and returns the sum of the accumulators.
/// `f(sum, 0, 0)` must return `sum`. Prefetches `x` in software if `prefetch` is true.
///
/// Loads of `x` are aligned to cache lines. Aligning the loads rotates the assignment of elements
/// to accumulators, which only swaps operands of additions in the tree reduction of the
/// accumulators. A swap of operands changes no sum, so the portable and AVX-512 loops give
/// bit-identical results.
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
    // Number of elements from the start of the cache line that contains the first element of `x` to
    // the end of `x`.
    let mut rest_len = prefix + x.len();
    let (mut x, mut y) = (x.as_ptr().wrapping_sub(prefix), y.as_ptr());
    // SAFETY: the enclosing function is compiled for AVX-512. Masks exclude all addresses before
    // the first element and after the last element, and unmasked vectors lie within the operands.
    // An expanding load reads `y` from the first element on, because a masked load that reaches
    // into an unmapped page before `y` is slow.
    unsafe {
        if prefix > 0 {
            let mask = u16::MAX << prefix & first_lanes(rest_len);
            let (head_x, head_y) =
                (_mm512_maskz_loadu_ps(mask, x), _mm512_maskz_expandloadu_ps(mask, y));
            sums[0] = map3(sums[0], head_x, head_y, f);
            y = y.wrapping_sub(prefix);
            sums = accumulate_tail::<1>(sums, (x, y), rest_len, f);
            (x, y) = (x.wrapping_add(BLOCK), y.wrapping_add(BLOCK));
            rest_len = rest_len.saturating_sub(BLOCK);
        }
        let blocks = rest_len / BLOCK;
        sums = if prefetch {
            accumulate_blocks::<true>(sums, (x, y), blocks, f)
        } else {
            accumulate_blocks::<false>(sums, (x, y), blocks, f)
        };
        (x, y) = (x.wrapping_add(blocks * BLOCK), y.wrapping_add(blocks * BLOCK));
        rest_len %= BLOCK;
        if rest_len > 0 {
            sums = accumulate_tail::<0>(sums, (x, y), rest_len, f);
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
    let (mut rest_len, peel_len) = (y.len(), store_peel_len(y));
    let (mut x, mut y) = (x.as_ptr(), y.as_mut_ptr());
    // SAFETY: the enclosing function is compiled for AVX-512. Whole vectors are loaded and stored
    // only while at least `BLOCK` elements are left, and masks exclude all elements after the last
    // element.
    unsafe {
        if peel_len > 0 {
            update_masked(first_lanes(peel_len), x, y, f);
            (x, y, rest_len) =
                (x.wrapping_add(peel_len), y.wrapping_add(peel_len), rest_len - peel_len);
        }
        while rest_len >= BLOCK {
            for row in 0..ACCUMULATOR_ROWS {
                let (x, y) = (x.wrapping_add(row * LANES), y.wrapping_add(row * LANES));
                _mm512_storeu_ps(y, map2(_mm512_loadu_ps(x), _mm512_loadu_ps(y), f));
            }
            (x, y, rest_len) = (x.wrapping_add(BLOCK), y.wrapping_add(BLOCK), rest_len - BLOCK);
        }
        while rest_len > 0 {
            update_masked(first_lanes(rest_len), x, y, f);
            (x, y) = (x.wrapping_add(LANES), y.wrapping_add(LANES));
            rest_len = rest_len.saturating_sub(LANES);
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

/// Accumulates `blocks` blocks of [`BLOCK`] elements of `x` and `y`. Prefetches `x` in software if
/// `PREFETCH` is true. `PREFETCH` is a constant, because a branch for each vector costs 6 % to 20 %
/// of the time for operands in the caches.
///
/// # Safety
/// The processor has AVX-512, and `x` and `y` are valid for reads of the accumulated elements.
#[inline(always)]
unsafe fn accumulate_blocks<const PREFETCH: bool>(
    mut sums: [__m512; ACCUMULATOR_ROWS],
    (mut x, mut y): (*const f32, *const f32),
    blocks: usize,
    f: impl Fn(f32, f32, f32) -> f32,
) -> [__m512; ACCUMULATOR_ROWS] {
    for _ in 0..blocks {
        for (row, sum) in sums.iter_mut().enumerate() {
            let (x, y) = (x.wrapping_add(row * LANES), y.wrapping_add(row * LANES));
            if PREFETCH {
                prefetch_l1(x.wrapping_byte_add(PREFETCH_DISTANCE));
            }
            // SAFETY: the caller guarantees that the processor has AVX-512, and that `x` and `y`
            // hold `blocks` whole blocks.
            *sum = unsafe { map3(*sum, _mm512_loadu_ps(x), _mm512_loadu_ps(y), &f) };
        }
        (x, y) = (x.wrapping_add(BLOCK), y.wrapping_add(BLOCK));
    }
    sums
}

/// Accumulates at most [`BLOCK`] of the `rest_len` elements of `x` and `y`. Skips the accumulator
/// rows before row `FIRST`, and the elements that belong to these rows.
///
/// # Safety
/// The processor has AVX-512, and `x` and `y` are valid for reads of the accumulated elements.
#[inline(always)]
unsafe fn accumulate_tail<const FIRST: usize>(
    mut sums: [__m512; ACCUMULATOR_ROWS],
    (x, y): (*const f32, *const f32),
    rest_len: usize,
    f: impl Fn(f32, f32, f32) -> f32,
) -> [__m512; ACCUMULATOR_ROWS] {
    for (row, sum) in sums.iter_mut().enumerate().skip(FIRST) {
        let start = row * LANES;
        if rest_len <= start {
            break;
        }
        let (x, y) = (x.wrapping_add(start), y.wrapping_add(start));
        let mask = first_lanes(rest_len - start);
        // SAFETY: the mask excludes all lanes after the last of the `rest_len` elements.
        unsafe {
            let (x, y) = (_mm512_maskz_loadu_ps(mask, x), _mm512_maskz_loadu_ps(mask, y));
            *sum = map3(*sum, x, y, &f);
        }
    }
    sums
}

/// Returns the mask of the first `count` lanes, or of all lanes if `count` exceeds [`LANES`].
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
    let lane_sums = _mm512_add_ps(_mm512_add_ps(a, c), _mm512_add_ps(b, d));
    let high_half = _mm512_castps512_ps256(_mm512_shuffle_f32x4::<0xee>(lane_sums, lane_sums));
    let sums8 = _mm256_add_ps(_mm512_castps512_ps256(lane_sums), high_half);
    let sums4 = _mm_add_ps(_mm256_castps256_ps128(sums8), _mm256_extractf128_ps::<1>(sums8));
    let sums2 = _mm_add_ps(sums4, _mm_movehl_ps(sums4, sums4));
    _mm_cvtss_f32(_mm_add_ss(sums2, _mm_movehdup_ps(sums2)))
}
