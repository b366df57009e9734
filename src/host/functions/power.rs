//! Powers in `f32`, through `f64`.

use super::elementary::polynomial;
use std::f64::consts::{LN_2, LOG2_E, SQRT_2};

/// What leaves an integer in the low bits when it is added to it.
const ROUND: f64 = 1.5 * (1u64 << 52) as f64;

/// `xᵖ`, in all that is special as the library's.
#[inline(always)]
pub(super) fn powf(x: f32, p: f32) -> f32 {
    let size = x.abs();
    let power = exp(f64::from(p) * ln(size));
    // Also for infinite exponents, whose product with the logarithm is none.
    let power = if size == 1.0 { 1.0 } else { power };
    let (whole, odd) = (p.trunc() == p, (0.5 * p).trunc() != 0.5 * p);
    let negative = if odd && whole { power.copysign(x) } else { power };
    let outside = x < 0.0 && size < f32::INFINITY && !whole;
    let power = if outside { f32::NAN } else { negative };
    if p == 0.0 || x == 1.0 { 1.0 } else { power }
}

/// `eˣ`, within 2⁻²⁸ of it before it is rounded.
#[inline(always)]
fn exp(x: f64) -> f32 {
    // What is below is 0 in f32, what is above infinite; NaN stays.
    let x = if x < -110.0 { -110.0 } else { x };
    let x = if x > 90.0 { 90.0 } else { x };
    let shifted = x * LOG2_E + ROUND;
    let r = x - (shifted - ROUND) * LN_2;
    let tail = polynomial!(
        r,
        [
            0.49999993447938323,
            0.16666520628716955,
            0.04166838799102061,
            0.008368717157050887,
            0.0013814602454716909
        ]
    );
    let n = shifted.to_bits().wrapping_add(1023) << 52;
    ((1.0 + (r + r * r * tail)) * f64::from_bits(n)) as f32
}

/// `ln x` of what is not negative, within 2⁻³⁷ of it.
#[inline(always)]
fn ln(x: f32) -> f64 {
    const FRACTION: u64 = (1 << 52) - 1;
    const LOW: u64 = (0.5 * SQRT_2).to_bits();
    let wide = f64::from(x);
    let above = wide.to_bits().wrapping_sub(LOW);
    let f = f64::from_bits((above & FRACTION).wrapping_add(LOW)) - 1.0;
    let e = (above as i64 >> 52) as u64;
    let e = f64::from_bits(ROUND.to_bits().wrapping_add(e)) - ROUND;
    let s = f / (2.0 + f);
    let z = s * s;
    let series = polynomial!(
        z,
        [0.6666666564544229, 0.4000033519321874, 0.285373084257317, 0.23582153131653977]
    );
    let value = e * LN_2 + (2.0 * s + s * z * series);
    let value = if x == 0.0 { f64::NEG_INFINITY } else { value };
    if x < f32::INFINITY { value } else { wide }
}
