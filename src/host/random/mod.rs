//! Counter-based random number generation: element `i` of a result depends only on the key and on
//! `i`.
//!
//! Every device must compute random numbers by the following rules, with bit-identical results:
//! - [`bernoulli`], [`random_integers`] and [`dropout`] compute element `i` from word `i mod 4` of
//!   the Philox output for counter `i / 4`.
//! - [`uniform`] and [`gaussian`] compute elements `2j` and `2j + 1` from the four words of the
//!   Philox output for counter `j`. A pair of 32-bit words `(a, b)` gives the 53-bit fraction
//!   `((a·2³² + b) >> 11) / 2⁵³`. Words 0 and 1 for a counter give the fraction `u`, and words 2
//!   and 3 give the fraction `v`.
//! - All arithmetic is in `f64`, with IEEE additions, multiplications, divisions and square roots,
//!   in the order of the formulas and without FMA. Each random number is rounded once, from `f64`
//!   to the element type.
//!
//! The loops over random numbers contain no code for specific processors. `ieee_math` implements
//! the logarithm, sine and cosine for [`gaussian`]. [`RngKey::words`] computes the 32-bit words
//! with Philox.

mod ieee_math;

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

/// Number of random elements that one task draws: a multiple of four, because one counter gives
/// four random words.
const GRAIN: usize = 1 << 14;

/// Number of elements in one task of [`dropout`], which takes less time per element than the other
/// kernels, because `dropout` only compares random words with a threshold.
const DROPOUT_GRAIN: usize = 1 << 16;

/// `yᵢ ~ U[lo, hi)`, computed as `lo + (hi − lo)·u` for even elements and `lo + (hi − lo)·v` for
/// odd elements.
///
/// The random numbers lie in the interval `[lo, hi)` even after rounding to `T`, provided that `T`
/// has a value in the interval. If `lo = hi`, all random numbers are `lo`.
///
/// # Errors
/// [`Error::InvalidInput`] unless `lo ≤ hi` and `hi − lo` is finite.
#[doc(alias = "caffe_rng_uniform")]
pub(crate) fn uniform<T: Element>(
    workers: &Workers,
    key: RngKey,
    lo: f64,
    hi: f64,
    y: &mut [T],
) -> Result<()> {
    let width = expect_interval(lo, hi)?;
    let (min, max) = bounds::<T>(lo, hi);
    let number = |u: f64| {
        let value = T::from_f64(lo + width * u);
        if value < min {
            min
        } else if value > max {
            max
        } else {
            value
        }
    };
    fill_groups(workers, y, |j| {
        let (u, v) = fractions(key, j);
        [number(u), number(v)]
    });
    Ok(())
}

/// `yᵢ ~ N(mean, std²)`, computed as `mean + std·r·cos 2πv` for even elements and `mean + std·r·sin
/// 2πv` for odd elements, with `r = √(−2 ln(u + 2⁻⁵³))`. These formulas are the Box-Muller
/// transform (Box and Muller, 1958).
///
/// # Errors
/// [`Error::InvalidInput`] unless `mean` and `std` are finite and `std ≥ 0`.
#[doc(alias = "caffe_rng_gaussian")]
pub(crate) fn gaussian<T: Element>(
    workers: &Workers,
    key: RngKey,
    mean: f64,
    std: f64,
    y: &mut [T],
) -> Result<()> {
    expect_normal(mean, std)?;
    fill_groups(workers, y, |j| {
        let (u, v) = fractions(key, j);
        let r = (-2.0 * ln(u + UNIT)).sqrt();
        let (cos, sin) = cos_sin_turns(v);
        [T::from_f64(mean + std * (r * cos)), T::from_f64(mean + std * (r * sin))]
    });
    Ok(())
}

/// `yᵢ ← 1` with probability `p`, else 0. `p` is rounded up to a multiple of 2⁻³².
///
/// # Errors
/// [`Error::InvalidInput`] unless `0 ≤ p ≤ 1`.
#[doc(alias = "caffe_rng_bernoulli")]
pub(crate) fn bernoulli(workers: &Workers, key: RngKey, p: f64, y: &mut [u32]) -> Result<()> {
    let threshold = expect_probability(p)?;
    fill_groups(workers, y, |j| key.words(j).map(|word| u32::from(u64::from(word) < threshold)));
    Ok(())
}

/// `yᵢ ← xᵢ / keep` if [`bernoulli`] with the same key and `p = keep` yields 1, else 0.
///
/// # Errors
/// [`Error::InvalidInput`] unless `0 < keep ≤ 1`; [`Error::Length`] unless `y` is as long as `x`.
pub(crate) fn dropout<T: Element>(
    workers: &Workers,
    key: RngKey,
    keep: f64,
    x: &[T],
    y: &mut [T],
) -> Result<()> {
    let threshold = expect_keep(keep)?;
    check_len("dropout", "y", x.len(), y.len())?;
    let factor = T::acc(1.0 / keep);
    for_dropout_chunks(workers, key, threshold, y, |start, mask, y, buffer_y| {
        let mut buffer_x = accumulator_buffer();
        let x = widened(&x[start..][..y.len()], &mut buffer_x);
        overwrite_widened(y, buffer_y, |y| {
            vectorized(
                #[inline(always)]
                |_| {
                    for ((y, &x), &keep) in y.iter_mut().zip(x).zip(mask) {
                        *y = if keep { factor * x } else { T::Acc::zero() };
                    }
                },
            );
        });
    });
    Ok(())
}

/// Like [`dropout`], but reads the elements from `y` and overwrites `y`.
///
/// # Errors
/// [`Error::InvalidInput`] unless `0 < keep ≤ 1`.
pub(crate) fn dropout_in_place<T: Element>(
    workers: &Workers,
    key: RngKey,
    keep: f64,
    y: &mut [T],
) -> Result<()> {
    let threshold = expect_keep(keep)?;
    let factor = T::acc(1.0 / keep);
    for_dropout_chunks(workers, key, threshold, y, |_, mask, y, buffer_y| {
        update_widened(y, buffer_y, |y| {
            vectorized(
                #[inline(always)]
                |_| {
                    for (y, &keep) in y.iter_mut().zip(mask) {
                        *y = if keep { factor * *y } else { T::Acc::zero() };
                    }
                },
            );
        });
    });
    Ok(())
}

/// Returns the width of the interval of [`uniform`], or an error if the bounds are invalid.
pub(crate) fn expect_interval(lo: f64, hi: f64) -> Result<f64> {
    let width = hi - lo;
    if lo <= hi && width.is_finite() {
        return Ok(width);
    }
    Err(Error::invalid_input(
        "uniform",
        format!("lo is {lo} and hi is {hi}; expected finite lo ≤ hi"),
    ))
}

/// Fails unless `mean` and `std` are valid parameters of [`gaussian`].
pub(crate) fn expect_normal(mean: f64, std: f64) -> Result<()> {
    if mean.is_finite() && std.is_finite() && std >= 0.0 {
        return Ok(());
    }
    let reason = format!("mean is {mean} and std is {std}; expected a finite mean and std ≥ 0");
    Err(Error::invalid_input("gaussian", reason))
}

/// Returns the threshold below which the random word of an element makes [`bernoulli`] yield 1.
pub(crate) fn expect_probability(p: f64) -> Result<u64> {
    if (0.0..=1.0).contains(&p) {
        return Ok(word_threshold(p));
    }
    Err(Error::invalid_input("bernoulli", format!("p is {p}, expected 0 ≤ p ≤ 1")))
}

/// Returns the threshold below which the random word of an element makes [`dropout`] keep the
/// element.
pub(crate) fn expect_keep(keep: f64) -> Result<u64> {
    if keep > 0.0 && keep <= 1.0 {
        return Ok(word_threshold(keep));
    }
    Err(Error::invalid_input("dropout", format!("keep is {keep}, expected 0 < keep ≤ 1")))
}

/// Fails unless `bound` is valid for [`random_integers`].
pub(crate) fn expect_bound(bound: u64) -> Result<()> {
    if (1..=1 << 32).contains(&bound) {
        return Ok(());
    }
    Err(Error::invalid_input(
        "random_integers",
        format!("bound is {bound}, expected 1 ≤ bound ≤ 2³²"),
    ))
}

/// Returns `p·2³²`, rounded up: the threshold below which a 32-bit random word lies with
/// probability `p`.
fn word_threshold(p: f64) -> u64 {
    (p * WORDS).ceil() as u64
}

/// Calls `body(start, mask, chunk, buffer)` for each chunk of `y`. The first element of the chunk
/// is element `start` of `y`. `mask` holds, for each element of the chunk, whether the element's
/// random word is below `threshold`. `buffer` is long enough for the widened chunk.
fn for_dropout_chunks<T: Element>(
    workers: &Workers,
    key: RngKey,
    threshold: u64,
    y: &mut [T],
    body: impl Fn(usize, &[bool], &mut [T], &mut [T::Acc]) + Send + Sync,
) {
    let chunk_len = workers.even_chunk_len(y.len(), DROPOUT_GRAIN, CHUNK);
    workers.for_each_chunk(y, chunk_len, |task, y| {
        let (mut mask, mut buffer) = ([false; CHUNK], accumulator_buffer());
        for (i, y) in y.chunks_mut(CHUNK).enumerate() {
            let start = task * chunk_len + i * CHUNK;
            vectorized(
                #[inline(always)]
                |_| {
                    let counters = start as u64 / 4..;
                    for (mask, j) in mask.as_chunks_mut::<4>().0.iter_mut().zip(counters) {
                        *mask = key.words(j).map(|word| u64::from(word) < threshold);
                    }
                },
            );
            body(start, &mask[..y.len()], y, &mut buffer);
        }
    });
}

/// Draws `yᵢ` from the integers below `bound`, as the upper half of `word · bound`. The
/// probabilities of any two integers below `bound` differ by at most 2⁻³².
///
/// # Errors
/// [`Error::InvalidInput`] unless `1 ≤ bound ≤ 2³²`.
#[doc(alias = "caffe_rng_rand")]
pub(crate) fn random_integers(
    workers: &Workers,
    key: RngKey,
    bound: u64,
    y: &mut [u32],
) -> Result<()> {
    expect_bound(bound)?;
    fill_groups(workers, y, |j| key.words(j).map(|word| ((u64::from(word) * bound) >> 32) as u32));
    Ok(())
}

/// Number of different 32-bit random words, 2³².
const WORDS: f64 = 4_294_967_296.0;

/// Smallest nonzero 53-bit fraction, 2⁻⁵³.
const UNIT: f64 = 1.0 / 9_007_199_254_740_992.0;

/// Returns the two fractions `u` and `v`, in [0, 1), from the four random words for `counter`.
#[inline(always)]
fn fractions(key: RngKey, counter: u64) -> (f64, f64) {
    let [a, b, c, d] = key.words(counter);
    let fraction = |a: u32, b: u32| (((u64::from(a) << 32) | u64::from(b)) >> 11) as f64 * UNIT;
    (fraction(a, b), fraction(c, d))
}

/// Fills `y` with random elements in groups of `N`. `make(j)` returns the `N` elements from index
/// `N·j` on.
fn fill_groups<T: Copy + Send, const N: usize>(
    workers: &Workers,
    y: &mut [T],
    make: impl Fn(u64) -> [T; N] + Send + Sync,
) {
    workers.for_each_chunk(y, GRAIN, |task, y| {
        vectorized(
            #[inline(always)]
            |_| {
                let first_group = (task * (GRAIN / N)) as u64;
                let (groups, rest) = y.as_chunks_mut::<N>();
                groups.iter_mut().zip(first_group..).for_each(|(y, j)| *y = make(j));
                let last_group = make(first_group + groups.len() as u64);
                rest.copy_from_slice(&last_group[..rest.len()]);
            },
        );
    });
}

/// Returns the smallest and the greatest value in `[lo, hi)` that `T` can represent. If `T` has no
/// value in `[lo, hi)`, returns the value nearest to `lo` twice.
pub(crate) fn bounds<T: Element>(lo: f64, hi: f64) -> (T, T) {
    let nearest_lo = T::from_f64(lo);
    let min = if nearest_lo.to_f64() < lo { adjacent_value(nearest_lo, true) } else { nearest_lo };
    let nearest_hi = T::from_f64(hi);
    let max = if nearest_hi.to_f64() < hi { nearest_hi } else { adjacent_value(nearest_hi, false) };
    if min <= max { (min, max) } else { (nearest_lo, nearest_lo) }
}

fn adjacent_value<T: Element>(value: T, up: bool) -> T {
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
            let bits: &mut [u16] = crate::cast::cast_slice_mut(&mut value);
            let magnitude = bits[0] & 0x7fff;
            bits[0] = match (magnitude, up) {
                (0, true) => 0x0001,
                (0, false) => 0x8001,
                // The bit patterns of positive 16-bit floating-point values increase with the
                // value, and those of negative values decrease.
                _ if up == (bits[0] == magnitude) => bits[0] + 1,
                _ => bits[0] - 1,
            };
            value[0]
        }
    }
}
