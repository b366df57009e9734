//! x86-64 code that replaces portable loops of `reduction`.

pub(crate) mod row_sums;
pub(crate) mod row_sums_avx2;

use crate::host::{cache::residence::is_amd_with_small_l1, simd::level::SimdLevel};

/// Calls `store(Σ map(x[i·extent + j]), y[i])` for each row `i` of `extent` elements. Returns
/// false, and calls nothing, at SIMD levels for which this folder has no code. `extent` must not be
/// 0, and `map(0)` must be 0.
#[inline(always)]
pub(crate) fn sum_rows<Y>(
    x: &[f32],
    extent: usize,
    map: impl Fn(f32) -> f32 + Copy,
    y: &mut [Y],
    store: impl Fn(f32, &mut Y),
) -> bool {
    match level(x.len(), extent) {
        // SAFETY: the features of the SIMD level were detected.
        SimdLevel::Avx512 => unsafe { row_sums::sum_rows(x, extent, map, y, store) },
        // SAFETY: the features of the SIMD level were detected.
        SimdLevel::Avx2 => unsafe { row_sums_avx2::sum_rows(x, extent, map, y, store) },
        SimdLevel::Portable | SimdLevel::WithoutFma => return false,
    }
    true
}

/// Returns the SIMD level at which sums of rows of `extent` elements are fastest, for `len` elements
/// in total. On AMD's processors before Zen 5, AVX2 is faster for any `len` if `extent` is a multiple of
/// 32 (decision 55).
#[inline(always)]
fn level(len: usize, extent: usize) -> SimdLevel {
    let level = SimdLevel::memory_bound(len);
    if level == SimdLevel::Avx512
        && extent.is_multiple_of(row_sums_avx2::BLOCK)
        && is_amd_with_small_l1()
    {
        return SimdLevel::Avx2;
    }
    level
}
