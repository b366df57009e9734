//! Logarithm, sine and cosine, computed with IEEE operations only.
//!
//! Random number generation does not call the C library, whose results differ in the last bits
//! between machines.

/// High part of ln 2; its product with any exponent of an `f64` is exact.
const LN2_HIGH: f64 = f64::from_bits(0x3fe6_2e42_fee0_0000);
/// Low part of ln 2: ln 2 − [`LN2_HIGH`].
const LN2_LOW: f64 = f64::from_bits(0x3dea_39ef_3579_3c76);

/// Returns the natural logarithm of a positive normal number, with an error of at most 2 ulp.
///
/// Let `x = 2ᵉ·m`, where `m` is between √½ and √2. With `s = (m − 1)/(m + 1)`, the logarithm of `m`
/// is `2·artanh s`, computed by a power series up to `s²¹`. Since `|s| < 0.172`, the omitted terms
/// of the series add up to less than 2⁻⁵⁷ times the logarithm of `m`.
#[inline(always)]
pub(crate) fn ln(x: f64) -> f64 {
    const FRACTION: u64 = (1 << 52) - 1;
    let bits = x.to_bits();
    let exponent = (bits >> 52) as i64 - 1023;
    let m = f64::from_bits(bits & FRACTION | 1.0f64.to_bits());
    let exceeds_sqrt_2 = m > std::f64::consts::SQRT_2;
    let m = if exceeds_sqrt_2 { 0.5 * m } else { m };
    let e = (exponent + i64::from(exceeds_sqrt_2)) as f64;
    let s = (m - 1.0) / (m + 1.0);
    let z = s * s;
    let mut series = 1.0 / 21.0;
    for &divisor in &[19.0, 17.0, 15.0, 13.0, 11.0, 9.0, 7.0, 5.0, 3.0] {
        series = series * z + 1.0 / divisor;
    }
    let tail = 2.0 * s * z * series;
    e * LN2_HIGH + (2.0 * s + (tail + e * LN2_LOW))
}

/// Returns the cosine and the sine of `2π·turns` for `0 ≤ turns < 1`, each with an error of at most
/// 2⁻⁵².
///
/// First, the nearest multiple of a quarter turn is subtracted from `turns`, without a rounding
/// error. The remainder, at most an eighth of a turn, is the argument of power series up to `x¹⁸`
/// with errors below 2⁻⁵⁷.
#[inline(always)]
pub(crate) fn cos_sin_turns(turns: f64) -> (f64, f64) {
    let quarters = 4.0 * turns;
    let quarter = (quarters + 0.5) as i64;
    let x = (quarters - quarter as f64) * std::f64::consts::FRAC_PI_2;
    let z = x * x;
    let mut sin = 1.0;
    for &product in &[272.0, 210.0, 156.0, 110.0, 72.0, 42.0, 20.0, 6.0] {
        sin = 1.0 - z / product * sin;
    }
    let sin = x * sin;
    let mut cos = 1.0;
    for &product in &[306.0, 240.0, 182.0, 132.0, 90.0, 56.0, 30.0, 12.0, 2.0] {
        cos = 1.0 - z / product * cos;
    }
    match quarter & 3 {
        0 => (cos, sin),
        1 => (-sin, cos),
        2 => (-cos, -sin),
        _ => (sin, -cos),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ulps(got: f64, expected: f64) -> f64 {
        (got - expected).abs() / (expected.abs().next_up() - expected.abs())
    }

    #[test]
    fn ln_is_within_2_ulp_of_the_standard_library() {
        let mut max_error: f64 = 0.0;
        for i in 1..200_000u32 {
            let x = f64::from(i) / 200_000.0;
            for x in [x, x * x * x * 1e-12, 1.0 - x * 1e-9] {
                max_error = max_error.max(ulps(ln(x), x.ln()));
            }
        }
        assert_eq!(ln(1.0), 0.0);
        assert!(max_error <= 2.0, "{max_error} ulp");
    }

    #[test]
    fn cosine_and_sine_are_close_to_the_standard_library() {
        let mut max_error: f64 = 0.0;
        for i in 0..100_000u32 {
            let turns = f64::from(i) / 100_000.0;
            // Subtract the nearest multiple of a quarter turn first, because the product 2π·turns
            // is rounded.
            let quarter = (4.0 * turns + 0.5).floor();
            let x = (4.0 * turns - quarter) * std::f64::consts::FRAC_PI_2;
            let (sin, cos) = x.sin_cos();
            let expected = match quarter as i64 % 4 {
                0 => (cos, sin),
                1 => (-sin, cos),
                2 => (-cos, -sin),
                _ => (sin, -cos),
            };
            let got = cos_sin_turns(turns);
            max_error = max_error.max((got.0 - expected.0).abs()).max((got.1 - expected.1).abs());
        }
        assert!(max_error <= 1.0 / (1u64 << 52) as f64, "{max_error}");
    }
}
