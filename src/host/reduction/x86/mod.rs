//! x86-64 code that replaces portable loops of `reduction`.

pub(crate) mod row_sums;
pub(crate) mod row_sums_avx2;

use crate::host::simd::level::SimdLevel;

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
    match SimdLevel::memory_bound(x.len()) {
        // SAFETY: the features of the SIMD level were detected.
        SimdLevel::Avx512 => unsafe { row_sums::sum_rows(x, extent, map, y, store) },
        // SAFETY: the features of the SIMD level were detected.
        SimdLevel::Avx2 => unsafe { row_sums_avx2::sum_rows(x, extent, map, y, store) },
        SimdLevel::Portable | SimdLevel::WithoutFma => return false,
    }
    true
}
