//! Powers in `f32`, through `f64`.

use super::elementary::polynomial;
use std::f64::consts::{LN_2, LOG2_E, SQRT_2};

/// What leaves an integer in the low bits when it is added to it.
const ROUND: f64 = 1.5 * (1u64 << 52) as f64;

/// `xᵖ`, in all that is special as the library's.
#[inline(always)]
pub(super) fn powf(x: f32, p: f32) -> f32 {
    let size = x.abs();
    let power = usual_powf(size, p);
    let [at_zero, at_infinity] = match () {
        () if p > 0.0 => [0.0, f32::INFINITY],
        () if p < 0.0 => [f32::INFINITY, 0.0],
        () => [p, p],
    };
    let power = if size == 0.0 { at_zero } else { power };
    let power = if size == f32::INFINITY { at_infinity } else { power };
    let power = if size.is_nan() { size } else { power };
    let (whole, odd) = (p.trunc() == p, (0.5 * p).trunc() != 0.5 * p);
    let sign = if odd && whole { 1 << 31 } else { 0 };
    let signed = f32::from_bits(power.to_bits() | (x.to_bits() & sign));
    let outside = x < 0.0 && size < f32::INFINITY && !whole;
    let power = if outside { f32::NAN } else { signed };
    if p == 0.0 || x == 1.0 { 1.0 } else { power }
}

/// As [`powf`] of what is positive and finite to what is a number.
#[inline(always)]
pub(super) fn usual_powf(x: f32, p: f32) -> f32 {
    exp2(finite(p) * log2(x))
}

/// As [`usual_powf`] of each, in two passes: the processor has more of them before it at a time than
/// of both at once, and so waits less for any.
#[inline(always)]
pub(super) fn usual_powers<const N: usize>(x: &mut [f32], p: f32) {
    let (p, mut logarithms) = (finite(p), [0.0; N]);
    for (logarithm, &mut x) in logarithms.iter_mut().zip(x.iter_mut()) {
        *logarithm = p * log2(x);
    }
    for (x, &logarithm) in x.iter_mut().zip(&logarithms) {
        *x = exp2(logarithm);
    }
}

/// An exponent, finite: of 1, the logarithm is 0, and so is what it is multiplied to.
#[inline(always)]
fn finite(p: f32) -> f64 {
    let p = if p > f32::MAX { f32::MAX } else { p };
    f64::from(if p < f32::MIN { f32::MIN } else { p })
}

/// `2ˣ`, within 2⁻²⁸ of it before it is rounded.
#[inline(always)]
fn exp2(x: f64) -> f32 {
    // What is below is 0 in f32, what is above infinite; NaN stays.
    let x = if x < -160.0 { -160.0 } else { x };
    let x = if x > 130.0 { 130.0 } else { x };
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
    let n = shifted.to_bits().wrapping_add(1023) << 52;
    (power * f64::from_bits(n)) as f32
}

/// `log₂ x` of what is positive and finite, within 2⁻³⁷ of it.
#[inline(always)]
fn log2(x: f32) -> f64 {
    const FRACTION: u64 = (1 << 52) - 1;
    const LOW: u64 = (0.5 * SQRT_2).to_bits();
    let above = f64::from(x).to_bits().wrapping_sub(LOW);
    let f = f64::from_bits((above & FRACTION).wrapping_add(LOW)) - 1.0;
    let e = (above as i64 >> 52) as u64;
    let e = f64::from_bits(ROUND.to_bits().wrapping_add(e)) - ROUND;
    let s = f / (2.0 + f);
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
    s.mul_add(series, e)
}
