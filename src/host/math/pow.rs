//! Powers in `f32`, through `f64`.

use crate::host::math::elementary::polynomial;
use std::{
    f32::consts::FRAC_1_SQRT_2,
    f64::consts::{LN_2, LOG2_E},
};

/// What leaves an integer in the low bits when it is added to it.
const ROUND: f64 = 1.5 * (1u64 << 52) as f64;

/// The bits of √½: significands are taken from there to √2.
const LOW: u32 = FRAC_1_SQRT_2.to_bits();

/// Bits of an `f32`'s fraction.
const FRACTION: u32 = f32::MANTISSA_DIGITS - 1;

/// The greatest exponent, either way, to which the logarithm of no power of an `f32` leaves an
/// exponent of `f64`.
const SMALL: f64 = 6.0;

/// `xᵖ`, in all that is special as the library's.
#[inline(always)]
pub(crate) fn powf(x: f32, p: f32) -> f32 {
    let size = x.abs();
    let power = usual_powf(size, p);
    let [at_zero, at_infinity] = match () {
        () if p > 0.0 => [0.0, f32::INFINITY],
        () if p < 0.0 => [f32::INFINITY, 0.0],
        () => [p, p],
    };
    let power = if size == 0.0 { at_zero } else { power };
    let power = if size == f32::INFINITY { at_infinity } else { power };
    let power = if size.is_nan() | p.is_nan() { size + p } else { power };
    let (whole, odd) = (p.trunc() == p, (0.5 * p).trunc() != 0.5 * p);
    let sign = if odd && whole { 1 << 31 } else { 0 };
    let signed = f32::from_bits(power.to_bits() | (x.to_bits() & sign));
    let outside = x < 0.0 && size < f32::INFINITY && !whole;
    let power = if outside { f32::NAN } else { signed };
    if p == 0.0 || x == 1.0 { 1.0 } else { power }
}

/// As [`powf`] of what is positive and finite to what is a number.
#[inline(always)]
pub(crate) fn usual_powf(x: f32, p: f32) -> f32 {
    exp2(clamped(finite(p) * log2(x)))
}

/// As [`usual_powf`] of each, none subnormal, in passes: the processor has more of them before it
/// at a time than of all at once, and so waits less for any; and of `f32`, a vector has twice as
/// many.
#[inline(always)]
pub(crate) fn usual_powers<const N: usize>(x: &mut [f32], p: f32) {
    let p = finite(p);
    let (mut exponents, mut logarithms) = ([0; N], [0.0; N]);
    let (mut fractions, mut estimates) = ([0.0; N], [0.0; N]);
    for i in 0..N {
        (exponents[i], fractions[i]) = parts(x[i]);
        estimates[i] = estimate(fractions[i]);
    }
    for i in 0..N {
        logarithms[i] = p * log2_of_parts(exponents[i], fractions[i], estimates[i]);
    }
    if p.abs() <= SMALL {
        for i in 0..N {
            x[i] = exp2(logarithms[i]);
        }
    } else {
        for i in 0..N {
            x[i] = exp2(clamped(logarithms[i]));
        }
    }
}

/// An exponent, finite: of 1, the logarithm is 0, and so is what it is multiplied to.
#[inline(always)]
fn finite(p: f32) -> f64 {
    let p = if p > f32::MAX { f32::MAX } else { p };
    f64::from(if p < f32::MIN { f32::MIN } else { p })
}

/// An exponent of 2: below is what is 0 in `f32`, above what is infinite.
#[inline(always)]
fn clamped(x: f64) -> f64 {
    let x = if x < -160.0 { -160.0 } else { x };
    if x > 130.0 { 130.0 } else { x }
}

/// `2ˣ`, within 2⁻²⁸ of it before it is rounded; normal in `f64`.
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
    // An integer added to the exponent: times 2 to it.
    f64::from_bits(power.to_bits().wrapping_add(shifted.to_bits() << 52)) as f32
}

/// `log₂ x` of what is positive and finite, within 2⁻³⁷ of it.
#[inline(always)]
fn log2(x: f32) -> f64 {
    let small = x < f32::MIN_POSITIVE;
    let (e, f) = parts(if small { x * (1 << FRACTION) as f32 } else { x });
    let e = if small { e - FRACTION as i32 } else { e };
    log2_of_parts(e, f, estimate(f))
}

/// `e` and `f` of `x = 2ᵉ·(1 + f)`, normal; `1 + f` is from √½ to √2.
#[inline(always)]
fn parts(x: f32) -> (i32, f32) {
    let above = x.to_bits().wrapping_sub(LOW);
    let significand = (above & ((1 << FRACTION) - 1)).wrapping_add(LOW);
    (above as i32 >> FRACTION, f32::from_bits(significand) - 1.0)
}

/// `1 / (2 + f)`, within 2⁻²³ of it.
#[inline(always)]
fn estimate(f: f32) -> f32 {
    1.0 / (2.0 + f)
}

/// `log₂` of what is in these [`parts`]: the series of `s = f / (2 + f)`, which is the product with
/// the estimate after a step of Newton's. A division in `f64` would take longer than all the rest.
#[inline(always)]
fn log2_of_parts(e: i32, f: f32, estimate: f32) -> f64 {
    let (f, estimate) = (f64::from(f), f64::from(estimate));
    let near = f * estimate;
    let s = (-(2.0 + f)).mul_add(near, f).mul_add(estimate, near);
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
