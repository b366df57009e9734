//! Random numbers by counter: element `i` depends on the key and on `i` alone.
//!
//! What every device has to reproduce, bit for bit:
//! - [`bernoulli`], [`integer`] and [`dropout`] make element `i` of word `i mod 4` of counter `i / 4`.
//! - [`uniform`] and [`gaussian`] make elements `2j` and `2j + 1` of the four words of counter
//!   `j`. Words `(a, b)` become the 53-bit fraction `(a·2³² + b) >> 11` over 2⁵³; words 0 and 1
//!   make the first fraction `u`, words 2 and 3 the second `v`.
//! - All arithmetic is in `f64` by IEEE additions, multiplications, divisions and square roots,
//!   none of them fused, in the order written here, and is rounded once to the element: so a
//!   narrower type holds the rounded numbers of a wider one.

pub(crate) mod ieee_math;

#[cfg(test)]
mod tests;

use crate::{
    element::{DType, Element},
    error::{Error, Result, check_len},
    host::{
        random::ieee_math::{cos_sin_turns, ln},
        simd::{
            accumulator::{CHUNK, accumulator_buffer, overwrite_widened, update_widened, widened},
            vectorized,
        },
        threads::Workers,
    },
    op::RngKey,
};
use num_traits::Zero;

/// Elements that one task makes; even, so that pairs stay together, and a multiple of four.
const BLOCK: usize = 1 << 14;

/// Elements of one task that only says which are kept.
const DRAWN: usize = 1 << 16;

/// `yᵢ ~ U[lo, hi)`: `lo + (hi − lo)·u` for even elements, with `v` for odd ones.
///
/// The result is inside the interval after rounding to `T` too, wherever `T` has a value there;
/// `lo = hi` gives that value.
///
/// # Errors
/// [`Error::InvalidInput`] unless `lo ≤ hi` and `hi − lo` is finite.
#[doc(alias = "caffe_rng_uniform")]
pub fn uniform<T: Element>(
    workers: &Workers,
    key: RngKey,
    lo: f64,
    hi: f64,
    y: &mut [T],
) -> Result<()> {
    let width = expect_interval(lo, hi)?;
    let (least, most) = bounds::<T>(lo, hi);
    let number = |u: f64| {
        let value = T::from_f64(lo + width * u);
        if value < least {
            least
        } else if value > most {
            most
        } else {
            value
        }
    };
    by_counter(workers, y, |j| {
        let (u, v) = fractions(key, j);
        [number(u), number(v)]
    });
    Ok(())
}

/// `yᵢ ~ N(mean, std²)`: `mean + std·r·cos 2πv` for even elements, with the sine for odd ones,
/// where `r = √(−2 ln(u + 2⁻⁵³))`. Source: Box, Muller 1958.
///
/// # Errors
/// [`Error::InvalidInput`] unless both are finite and `std ≥ 0`.
#[doc(alias = "caffe_rng_gaussian")]
pub fn gaussian<T: Element>(
    workers: &Workers,
    key: RngKey,
    mean: f64,
    std: f64,
    y: &mut [T],
) -> Result<()> {
    expect_normal(mean, std)?;
    by_counter(workers, y, |j| {
        let (u, v) = fractions(key, j);
        let r = (-2.0 * ln(u + UNIT)).sqrt();
        let (cos, sin) = cos_sin_turns(v);
        [T::from_f64(mean + std * (r * cos)), T::from_f64(mean + std * (r * sin))]
    });
    Ok(())
}

/// `yᵢ ← 1` with probability `p`, else 0; `p` counts in units of 2⁻³², rounded up.
///
/// # Errors
/// [`Error::InvalidInput`] unless `0 ≤ p ≤ 1`.
#[doc(alias = "caffe_rng_bernoulli")]
pub fn bernoulli(workers: &Workers, key: RngKey, p: f64, y: &mut [u32]) -> Result<()> {
    let below = expect_probability(p)?;
    by_counter(workers, y, |j| key.words(j).map(|word| u32::from(u64::from(word) < below)));
    Ok(())
}

/// `yᵢ ← xᵢ / keep` where [`bernoulli`] of the same key and of `p = keep` gives 1, else 0.
///
/// # Errors
/// [`Error::InvalidInput`] unless `0 < keep ≤ 1`; [`Error::Length`] unless `y` is as long as `x`.
pub fn dropout<T: Element>(
    workers: &Workers,
    key: RngKey,
    keep: f64,
    x: &[T],
    y: &mut [T],
) -> Result<()> {
    let below = expect_keep(keep)?;
    check_len("dropout", "y", x.len(), y.len())?;
    let factor = T::acc(1.0 / keep);
    kept(workers, key, below, y, |start, drawn, y, room| {
        let mut room_x = accumulator_buffer();
        let x = widened(&x[start..][..y.len()], &mut room_x);
        overwrite_widened(y, room, |y| {
            vectorized(
                #[inline(always)]
                || {
                    for ((y, &x), &drawn) in y.iter_mut().zip(x).zip(drawn) {
                        *y = if drawn { factor * x } else { T::Acc::zero() };
                    }
                },
            );
        });
    });
    Ok(())
}

/// As [`dropout`], with `x` in `y`.
///
/// # Errors
/// [`Error::InvalidInput`] unless `0 < keep ≤ 1`.
pub fn dropout_in_place<T: Element>(
    workers: &Workers,
    key: RngKey,
    keep: f64,
    y: &mut [T],
) -> Result<()> {
    let below = expect_keep(keep)?;
    let factor = T::acc(1.0 / keep);
    kept(workers, key, below, y, |_, drawn, y, room| {
        update_widened(y, room, |y| {
            vectorized(
                #[inline(always)]
                || {
                    for (y, &drawn) in y.iter_mut().zip(drawn) {
                        *y = if drawn { factor * *y } else { T::Acc::zero() };
                    }
                },
            );
        });
    });
    Ok(())
}

/// The width of [`uniform`]'s interval, if it is one.
pub(crate) fn expect_interval(lo: f64, hi: f64) -> Result<f64> {
    let width = hi - lo;
    if lo <= hi && width.is_finite() {
        return Ok(width);
    }
    Err(Error::invalid_input("uniform", format!("needs finite lo ≤ hi, not {lo} and {hi}")))
}

/// Fails unless these are the parameters of a [`gaussian`].
pub(crate) fn expect_normal(mean: f64, std: f64) -> Result<()> {
    if mean.is_finite() && std.is_finite() && std >= 0.0 {
        return Ok(());
    }
    let why = format!("needs a finite mean and std ≥ 0, not {mean} and {std}");
    Err(Error::invalid_input("gaussian", why))
}

/// Below what a word counts as a one of [`bernoulli`].
pub(crate) fn expect_probability(p: f64) -> Result<u64> {
    if (0.0..=1.0).contains(&p) {
        return Ok(words_below(p));
    }
    Err(Error::invalid_input("bernoulli", format!("needs 0 ≤ p ≤ 1, not {p}")))
}

/// Below what a word keeps an element in [`dropout`].
pub(crate) fn expect_keep(keep: f64) -> Result<u64> {
    if keep > 0.0 && keep <= 1.0 {
        return Ok(words_below(keep));
    }
    Err(Error::invalid_input("dropout", format!("needs 0 < keep ≤ 1, not {keep}")))
}

/// Fails unless [`integer`] can have this bound.
pub(crate) fn expect_bound(bound: u64) -> Result<()> {
    if (1..=1 << 32).contains(&bound) {
        return Ok(());
    }
    Err(Error::invalid_input("integer", format!("needs 1 ≤ bound ≤ 2³², not {bound}")))
}

fn words_below(p: f64) -> u64 {
    (p * WORDS).ceil() as u64
}

/// Calls `body` for chunks of `y` with the chunk's start, which elements have a word below `below`,
/// and room to widen `y`.
fn kept<T: Element>(
    workers: &Workers,
    key: RngKey,
    below: u64,
    y: &mut [T],
    body: impl Fn(usize, &[bool], &mut [T], &mut [T::Acc]) + Send + Sync,
) {
    workers.for_each_chunk(y, DRAWN, |block, y| {
        let (mut drawn, mut room) = ([false; CHUNK], accumulator_buffer());
        for (i, y) in y.chunks_mut(CHUNK).enumerate() {
            let start = block * DRAWN + i * CHUNK;
            vectorized(
                #[inline(always)]
                || {
                    let counters = start as u64 / 4..;
                    for (drawn, j) in drawn.as_chunks_mut::<4>().0.iter_mut().zip(counters) {
                        *drawn = key.words(j).map(|word| u64::from(word) < below);
                    }
                },
            );
            body(start, &drawn[..y.len()], y, &mut room);
        }
    });
}

/// `yᵢ ~` the integers below `bound`: the upper half of `word · bound`. No value is likelier
/// than another by more than 2⁻³².
///
/// # Errors
/// [`Error::InvalidInput`] unless `1 ≤ bound ≤ 2³²`.
#[doc(alias = "caffe_rng_rand")]
pub fn random_integers(workers: &Workers, key: RngKey, bound: u64, y: &mut [u32]) -> Result<()> {
    expect_bound(bound)?;
    by_counter(workers, y, |j| key.words(j).map(|word| ((u64::from(word) * bound) >> 32) as u32));
    Ok(())
}

/// 2³²
const WORDS: f64 = 4_294_967_296.0;

/// 2⁻⁵³
const UNIT: f64 = 1.0 / 9_007_199_254_740_992.0;

/// The two fractions of a counter, in [0, 1).
#[inline(always)]
fn fractions(key: RngKey, counter: u64) -> (f64, f64) {
    let [a, b, c, d] = key.words(counter);
    let fraction = |a: u32, b: u32| (((u64::from(a) << 32) | u64::from(b)) >> 11) as f64 * UNIT;
    (fraction(a, b), fraction(c, d))
}

/// Fills `y` in runs of `N`: `make(j)` gives elements from `N·j` on.
fn by_counter<T: Copy + Send, const N: usize>(
    workers: &Workers,
    y: &mut [T],
    make: impl Fn(u64) -> [T; N] + Send + Sync,
) {
    workers.for_each_chunk(y, BLOCK, |block, y| {
        vectorized(
            #[inline(always)]
            || {
                let first = (block * (BLOCK / N)) as u64;
                let (whole, rest) = y.as_chunks_mut::<N>();
                whole.iter_mut().zip(first..).for_each(|(y, j)| *y = make(j));
                let last = make(first + whole.len() as u64);
                rest.copy_from_slice(&last[..rest.len()]);
            },
        );
    });
}

/// The least and the greatest value of `T` in `[lo, hi)`; both are `lo`'s nearest if there is none.
pub(crate) fn bounds<T: Element>(lo: f64, hi: f64) -> (T, T) {
    let nearest = T::from_f64(lo);
    let least = if nearest.to_f64() < lo { step(nearest, true) } else { nearest };
    let under = T::from_f64(hi);
    let most = if under.to_f64() < hi { under } else { step(under, false) };
    if least <= most { (least, most) } else { (nearest, nearest) }
}

/// The next value up or down.
fn step<T: Element>(value: T, up: bool) -> T {
    match T::DTYPE {
        DType::F64 => {
            let value = value.to_f64();
            T::from_f64(if up { value.next_up() } else { value.next_down() })
        }
        DType::F32 => {
            let value = value.to_f64() as f32;
            T::from_f64(f64::from(if up { value.next_up() } else { value.next_down() }))
        }
        DType::F16 | DType::Bf16 => {
            let mut value = [value];
            let bits: &mut [u16] = bytemuck::cast_slice_mut(&mut value);
            let magnitude = bits[0] & 0x7fff;
            bits[0] = match (magnitude, up) {
                (0, true) => 0x0001,
                (0, false) => 0x8001,
                // The bits of positive values grow with them, those of negative ones fall.
                _ if up == (bits[0] == magnitude) => bits[0] + 1,
                _ => bits[0] - 1,
            };
            value[0]
        }
    }
}
