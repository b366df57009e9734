//! Elementwise functions whose results are written with non-temporal stores from AVX2 registers.

use crate::host::{
    cache::{cache_line::CACHE_LINE, residence::is_amd_with_small_l1, x86::store_fence},
    simd::level::SimdLevel,
};
use std::arch::x86_64::{_mm256_loadu_ps, _mm256_stream_ps};

/// Number of `f32` elements in a cache line.
const CACHE_LINE_LEN: usize = CACHE_LINE / size_of::<f32>();

/// Number of `f32` elements in an AVX2 vector.
const WIDTH: usize = 8;

/// Returns whether memory-bound functions of `len` elements, whose results do not stay in the
/// caches, are fastest with [`map_from_registers`], as on Zen 4 (decision 55).
pub(crate) fn stores_from_registers(len: usize) -> bool {
    SimdLevel::memory_bound(len) == SimdLevel::Avx2 && is_amd_with_small_l1()
}

/// `yᵢ ← f(aᵢ, bᵢ, …)` for operands `[a, b, …]`, with non-temporal stores of 32 bytes from
/// registers. A loop that first stores its results in a buffer takes several entries of the
/// processor's store queue for 32 bytes, and this loop takes one. Loads of later elements therefore
/// probably start earlier.
///
/// # Panics
/// Panics unless all operands are as long as `y`, and [`stores_from_registers`] returns true.
#[inline(always)]
pub(crate) fn map_from_registers<const N: usize>(
    operands: [&[f32]; N],
    y: &mut [f32],
    f: impl Fn([f32; N]) -> f32 + Copy,
) {
    assert!(stores_from_registers(y.len()), "map_from_registers: wrong SIMD level");
    // SAFETY: the current SIMD level was detected. It is `Avx2`, or `Avx512`, which includes AVX2 and
    // FMA.
    unsafe { map_avx2(operands, y, f) }
}

#[target_feature(enable = "avx2,fma")]
fn map_avx2<const N: usize>(
    operands: [&[f32]; N],
    y: &mut [f32],
    f: impl Fn([f32; N]) -> f32 + Copy,
) {
    assert!(operands.iter().all(|x| x.len() == y.len()), "map_from_registers: lengths differ");
    let fill = |start: usize, y: &mut [f32]| {
        for (i, y) in (start..).zip(y) {
            *y = f(operands.map(|x| x[i]));
        }
    };
    let first_len = y.as_ptr().align_offset(CACHE_LINE).min(y.len());
    let (first, y) = y.split_at_mut(first_len);
    let (lines, rest) = y.as_chunks_mut::<CACHE_LINE_LEN>();
    fill(0, first);
    let operand_lines = operands.map(|x| x[first_len..].as_chunks::<CACHE_LINE_LEN>().0);
    for (i, y) in lines.iter_mut().enumerate() {
        let x = operand_lines.map(|lines| &lines[i]);
        let mut line = [0.0; CACHE_LINE_LEN];
        for (j, value) in line.iter_mut().enumerate() {
            *value = f(x.map(|x| x[j]));
        }
        for (y, value) in y.as_chunks_mut::<WIDTH>().0.iter_mut().zip(line.as_chunks().0) {
            let value: &[f32; WIDTH] = value;
            // SAFETY: both vectors are 32 bytes long, and `y` is aligned to 32 bytes, because each
            // chunk of `lines` starts at a cache-line boundary.
            unsafe { _mm256_stream_ps(y.as_mut_ptr(), _mm256_loadu_ps(value.as_ptr())) };
        }
    }
    fill(first_len + lines.len() * CACHE_LINE_LEN, rest);
    store_fence();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stores_from_registers_of_any_length_and_alignment_are_exact() {
        if !(is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")) {
            return;
        }
        let [a, b] = [0.5, 3.0].map(|scale| (0..300).map(|i| scale * i as f32).collect::<Vec<_>>());
        for (start, len) in [(0, 300), (1, 290), (7, 64), (3, 5), (9, 0)] {
            for offset in 0..17 {
                let (a, b) = (&a[start..start + len], &b[start..start + len]);
                let mut y = vec![-1.0; offset + len + 1];
                // SAFETY: the features were detected.
                unsafe { map_avx2([a, b], &mut y[offset..offset + len], |[a, b]| a * b + 1.0) };
                let want: Vec<_> = a.iter().zip(b).map(|(a, b)| a * b + 1.0).collect();
                assert_eq!(y[offset..offset + len], want);
                assert!(y[..offset].iter().chain(y.last()).all(|&y| y == -1.0));
            }
        }
    }
}
