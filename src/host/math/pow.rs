//! Powers in `f32`, computed in `f64` as `2^(p·log₂ x)`.

use crate::host::math::elementary::polynomial;
use std::{
    f32::consts::FRAC_1_SQRT_2,
    f64::consts::{LN_2, LOG2_E},
};

/// Constant whose addition to a number rounds the number to the nearest integer, which the low bits
/// of the sum hold.
const ROUND: f64 = 1.5 * (1u64 << 52) as f64;

/// Bit pattern of √½. Significands are normalized to the range from √½ to √2.
const SQRT_HALF_BITS: u32 = FRAC_1_SQRT_2.to_bits();

/// Number of fraction bits of an `f32`.
const FRACTION_BITS: u32 = f32::MANTISSA_DIGITS - 1;

/// Largest `|p|` for which `2^(p·log₂ x)` is a normal `f64` for every normal `f32` `x`, so that the
/// exponent needs no clamp.
const UNCLAMPED_MAX: f64 = 6.0;

/// Returns `xᵖ`. For special arguments, such as zeros, infinities and NaN, the result equals that
/// of [`f32::powf`].
#[inline(always)]
pub(crate) fn powf(x: f32, p: f32) -> f32 {
    let magnitude = x.abs();
    let power = powf_normal_range(magnitude, p);
    let [at_zero, at_infinity] = match () {
        () if p > 0.0 => [0.0, f32::INFINITY],
        () if p < 0.0 => [f32::INFINITY, 0.0],
        () => [p, p],
    };
    let power = if magnitude == 0.0 { at_zero } else { power };
    let power = if magnitude == f32::INFINITY { at_infinity } else { power };
    let power = if magnitude.is_nan() | p.is_nan() { magnitude + p } else { power };
    let (is_integer, is_odd) = (p.trunc() == p, (0.5 * p).trunc() != 0.5 * p);
    let sign = if is_odd && is_integer { 1 << 31 } else { 0 };
    let signed_power = f32::from_bits(power.to_bits() | (x.to_bits() & sign));
    let is_undefined = x < 0.0 && magnitude < f32::INFINITY && !is_integer;
    let power = if is_undefined { f32::NAN } else { signed_power };
    if p == 0.0 || x == 1.0 { 1.0 } else { power }
}

/// Returns [`powf`] for a positive finite `x` and a `p` that is not NaN.
#[inline(always)]
pub(crate) fn powf_normal_range(x: f32, p: f32) -> f32 {
    exp2(clamp(finite_exponent(p) * log2(x)))
}

/// `xᵢ ← xᵢᵖ`, like [`powf_normal_range`], for normal `x`. The powers are computed in several
/// passes with short loop bodies, so that the processor overlaps the computations of more elements.
/// Vectors of the `f32` passes hold twice as many elements as vectors of the `f64` passes.
#[inline(always)]
pub(crate) fn pow_block<const N: usize>(x: &mut [f32], p: f32) {
    let p = finite_exponent(p);
    let (mut exponents, mut logarithms) = ([0; N], [0.0; N]);
    let (mut fractions, mut estimates) = ([0.0; N], [0.0; N]);
    for i in 0..N {
        (exponents[i], fractions[i]) = exponent_and_fraction(x[i]);
        estimates[i] = estimate_reciprocal(fractions[i]);
    }
    for i in 0..N {
        logarithms[i] = p * log2_of_exponent_and_fraction(exponents[i], fractions[i], estimates[i]);
    }
    if p.abs() <= UNCLAMPED_MAX {
        for i in 0..N {
            x[i] = exp2(logarithms[i]);
        }
    } else {
        for i in 0..N {
            x[i] = exp2(clamp(logarithms[i]));
        }
    }
}

/// Clamps the exponent `p` to finite values, because the logarithm of 1 is 0, and 0 times infinity
/// is NaN.
#[inline(always)]
fn finite_exponent(p: f32) -> f64 {
    let p = if p > f32::MAX { f32::MAX } else { p };
    f64::from(if p < f32::MIN { f32::MIN } else { p })
}

/// Clamps the exponent `x` of `2ˣ` to −160..=130. Rounded to `f32`, 2⁻¹⁶⁰ is 0 and 2¹³⁰ is
/// infinite.
#[inline(always)]
fn clamp(x: f64) -> f64 {
    let x = if x < -160.0 { -160.0 } else { x };
    if x > 130.0 { 130.0 } else { x }
}

/// Returns `2ˣ`, with a relative error of at most 2⁻²⁸ before rounding to `f32`. The caller ensures
/// that `2ˣ` is a normal `f64`.
#[inline(always)]
fn exp2(x: f64) -> f32 {
    let shifted = x + ROUND;
    let r = x - (shifted - ROUND);
    let power = polynomial!(
        r,
        [
            1.0,
            LN_2,
            LN_2 * LN_2 * 0.49999993447938323,
            LN_2 * LN_2 * LN_2 * 0.16666520628716955,
            LN_2 * LN_2 * LN_2 * LN_2 * 0.04166838799102061,
            LN_2 * LN_2 * LN_2 * LN_2 * LN_2 * 0.008368717157050887,
            LN_2 * LN_2 * LN_2 * LN_2 * LN_2 * LN_2 * 0.0013814602454716909
        ]
    );
    // Add the integer part of `x` to the exponent field, which multiplies `power` by 2 raised to
    // this integer.
    f64::from_bits(power.to_bits().wrapping_add(shifted.to_bits() << 52)) as f32
}

/// Returns `log₂ x` of a positive finite `x`, with a relative error of at most 2⁻³⁷.
#[inline(always)]
fn log2(x: f32) -> f64 {
    let is_subnormal = x < f32::MIN_POSITIVE;
    let (e, f) =
        exponent_and_fraction(if is_subnormal { x * (1 << FRACTION_BITS) as f32 } else { x });
    let e = if is_subnormal { e - FRACTION_BITS as i32 } else { e };
    log2_of_exponent_and_fraction(e, f, estimate_reciprocal(f))
}

/// Returns `e` and `f` for a normal `x = 2ᵉ·(1 + f)`, where `1 + f` is between √½ and √2.
#[inline(always)]
fn exponent_and_fraction(x: f32) -> (i32, f32) {
    let offset = x.to_bits().wrapping_sub(SQRT_HALF_BITS);
    let significand = (offset & ((1 << FRACTION_BITS) - 1)).wrapping_add(SQRT_HALF_BITS);
    (offset as i32 >> FRACTION_BITS, f32::from_bits(significand) - 1.0)
}

/// Returns `1 / (2 + f)`, with a relative error of at most 2⁻²³.
#[inline(always)]
fn estimate_reciprocal(f: f32) -> f32 {
    1.0 / (2.0 + f)
}

/// Returns `log₂` of `2ᵉ·(1 + f)`, by a power series in `s = f / (2 + f)`. A Newton step computes
/// `s` from `estimate ≈ 1 / (2 + f)`, because a division in `f64` would take longer than all other
/// operations.
#[inline(always)]
fn log2_of_exponent_and_fraction(e: i32, f: f32, estimate: f32) -> f64 {
    let (f, estimate) = (f64::from(f), f64::from(estimate));
    let quotient = f * estimate;
    let s = (-(2.0 + f)).mul_add(quotient, f).mul_add(estimate, quotient);
    let series = polynomial!(
        s * s,
        [
            LOG2_E * 2.0,
            LOG2_E * 0.6666666564544229,
            LOG2_E * 0.4000033519321874,
            LOG2_E * 0.285373084257317,
            LOG2_E * 0.23582153131653977
        ]
    );
    s.mul_add(series, f64::from(e))
}
