//! Oracles for random numbers, written from the description in [`Random`](crate::kernel::Random)
//! and Salmon et al. 2011. Each oracle computes the elements at the given indices.

use crate::{
    conformance::expected::{Expected, epsilon},
    element::{DType, Element, bf16, f16},
    op::RngKey,
};
use std::{f64::consts::TAU, ops::Range};

/// Returns four 32-bit words of Philox4x32-10. The Philox counter consists of `index` and
/// `key.stream`, low halves first.
fn words(key: RngKey, index: u64) -> [u32; 4] {
    const MULTIPLIERS: [u64; 2] = [0xD251_1F53, 0xCD9E_8D57];
    const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];
    let halves = |word: u64| [word as u32, (word >> 32) as u32];
    let ([c0, c1], [c2, c3]) = (halves(index), halves(key.stream));
    let [k0, k1] = halves(key.seed);
    (0..10).fold([c0, c1, c2, c3], |[c0, c1, c2, c3], round| {
        let [low0, high0] = halves(u64::from(c0) * MULTIPLIERS[0]);
        let [low1, high1] = halves(u64::from(c2) * MULTIPLIERS[1]);
        let key = |k: u32, weyl: u32| k.wrapping_add(weyl.wrapping_mul(round));
        [high1 ^ c1 ^ key(k0, WEYL[0]), low1, high0 ^ c3 ^ key(k1, WEYL[1]), low0]
    })
}

/// Returns 32-bit word `i` of the random stream.
fn word(key: RngKey, i: usize) -> u64 {
    u64::from(words(key, i as u64 / 4)[i % 4])
}

/// Returns two fractions in [0, 1), from which the elements `2·pair` and `2·pair + 1` are computed.
fn fractions(key: RngKey, pair: u64) -> [f64; 2] {
    let [a, b, c, d] = words(key, pair).map(u64::from);
    [a << 32 | b, c << 32 | d].map(|bits| (bits >> 11) as f64 / (1u64 << 53) as f64)
}

/// Computes `yᵢ ~ U[lo, hi)`, clamped to the values that `T` has in the interval.
pub(crate) fn uniform<T: Element>(
    key: RngKey,
    (lo, hi): (f64, f64),
    indices: Range<usize>,
) -> Vec<T> {
    let bounds = extremes::<T>(lo, hi);
    let element = |i: usize| {
        let y = T::from_f64(lo + (hi - lo) * fractions(key, i as u64 / 2)[i % 2]);
        match bounds {
            Some((min, _)) if y < min => min,
            Some((_, max)) if y > max => max,
            Some(_) => y,
            None => T::from_f64(lo),
        }
    };
    indices.map(element).collect()
}

/// Returns the smallest and the largest value of `T` in `[lo, hi)`, or `None` if `T` has no value
/// in the interval.
fn extremes<T: Element>(lo: f64, hi: f64) -> Option<(T, T)> {
    let mut candidates: Vec<f64> = match T::DTYPE {
        DType::F64 => [lo, hi].map(|x| [x, x.next_down(), x.next_up()]).concat(),
        DType::F32 => {
            let neighbours = |x: f32| [x, x.next_down(), x.next_up()].map(f64::from);
            [lo, hi].map(|x| neighbours(x as f32)).concat()
        }
        // A 16-bit type has only 2¹⁶ values, so all of them are candidates for the smallest and the
        // largest value.
        DType::F16 => (0..=u16::MAX).map(|bits| f16::from_bits(bits).to_f64()).collect(),
        DType::Bf16 => (0..=u16::MAX).map(|bits| bf16::from_bits(bits).to_f64()).collect(),
    };
    candidates.retain(|x| (lo..hi).contains(x));
    let min = candidates.iter().copied().reduce(f64::min)?;
    let max = candidates.iter().copied().reduce(f64::max)?;
    Some((T::from_f64(min), T::from_f64(max)))
}

/// Computes `yᵢ ~ N(mean, std²)` by the Box-Muller transform, with the standard library's
/// functions.
pub(crate) fn gaussian<T: Element>(
    key: RngKey,
    (mean, std): (f64, f64),
    indices: Range<usize>,
) -> Vec<Expected> {
    let element = |i: usize| {
        let [u, v] = fractions(key, i as u64 / 2);
        let r = (-2.0 * (u + 1.0 / (1u64 << 53) as f64).ln()).sqrt();
        let (sin, cos) = (TAU * v).sin_cos();
        let value = mean + std * r * if i.is_multiple_of(2) { cos } else { sin };
        // The errors of the sine and cosine terms are relative to the radius `r` of the Box-Muller
        // transform. Devices compute sine and cosine in `f64` for every accumulator type.
        let roundings = ROUNDINGS * f64::EPSILON / epsilon::<T::Acc>();
        Expected { value, magnitude: mean.abs() + std * r, roundings, inexact: true }
    };
    indices.map(element).collect()
}

/// Number of `f64` roundings allowed in the Box-Muller transform of the oracle and of the device,
/// for `2πv`, the logarithm, the square root, sine, cosine and their products.
const ROUNDINGS: f64 = 16.0;

/// Computes `yᵢ ← 1` with probability `p`, where `p` is rounded up to a multiple of 2⁻³².
pub(crate) fn bernoulli(key: RngKey, p: f64, indices: Range<usize>) -> Vec<u32> {
    let threshold = (p * 2.0f64.powi(32)).ceil() as u64;
    indices.map(|i| u32::from(word(key, i) < threshold)).collect()
}

/// Computes `yᵢ ~ U{0, …, bound − 1}`, uniformly distributed integers.
pub(crate) fn random_integers(key: RngKey, bound: u64, indices: Range<usize>) -> Vec<u32> {
    indices.map(|i| ((word(key, i) * bound) >> 32) as u32).collect()
}
