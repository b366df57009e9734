//! `s^(−3/4)`, of which normalisation is made.

use crate::element::{DType, Element};
use bytemuck::cast_slice_mut;
use num_traits::Float;

/// What [`newton`] is for: of elements outside, powers would leave `f32`.
const PLAIN: std::ops::Range<f32> = 1e-28..1e28;

/// `s ← s^(−3/4)`, in `f32` within 2.2 units in the last place.
#[inline(always)]
pub(in crate::host) fn to_minus_three_quarters<A: Element + Float>(s: &mut [A]) {
    if A::DTYPE == DType::F64 {
        s.iter_mut().for_each(|s| *s = by_roots(*s));
        return;
    }
    let s: &mut [f32] = cast_slice_mut(s);
    let mut plain = true;
    for s in &*s {
        plain &= (*s >= PLAIN.start) & (*s < PLAIN.end);
    }
    if plain {
        for s in s {
            *s = newton(*s);
        }
    } else {
        for s in s {
            *s = if PLAIN.contains(s) { newton(*s) } else { by_roots(*s) };
        }
    }
}

/// For any `s`; two roots and a division take several times as long as [`newton`].
#[inline(always)]
fn by_roots<A: Float>(s: A) -> A {
    A::one() / (s.sqrt() * s.sqrt().sqrt())
}

/// A step of third order towards `y = s^(−1/4)`, from a guess by a quarter of the exponent, and
/// one more for `y³`; both are series of what `s·y⁴` lacks of 1.
#[inline(always)]
fn newton(s: f32) -> f32 {
    // Found by trial: what the guess lacks is 1/8 at most.
    const GUESS: u32 = 0x4f58_0000;
    let y = f32::from_bits(GUESS.wrapping_sub(s.to_bits() >> 2));
    let square = y * y;
    let lack = (-(s * square)).mul_add(square, 1.0);
    let y = (y * lack).mul_add(lack.mul_add(5.0 / 32.0, 0.25), y);
    let square = y * y;
    let lack = (-(s * square)).mul_add(square, 1.0);
    let cube = y * square;
    (cube * lack).mul_add(lack.mul_add(21.0 / 32.0, 0.75), cube)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_are_close() {
        let mut worst = 0.0f64;
        for exponent in [-90i32, -3, 0, 1, 2, 3, 60] {
            for i in 0..1 << 14 {
                let s = (1.0 + f64::from(i) / f64::from(1 << 14)) * f64::from(exponent).exp2();
                let mut got = [s as f32];
                to_minus_three_quarters(&mut got);
                let want = f64::from(s as f32).powf(-0.75);
                let unit = f64::from((want as f32).next_up() - want as f32);
                worst = worst.max((f64::from(got[0]) - want).abs() / unit);
            }
        }
        assert!(worst < 2.2, "{worst} units in the last place");
    }

    #[test]
    fn special_values_are_those_of_the_definition() {
        let mut s = [0.0, f32::INFINITY, -1.0, f32::NAN, 1e-40, f32::MAX, 1.0];
        to_minus_three_quarters(&mut s);
        assert_eq!(s[..2], [f32::INFINITY, 0.0]);
        assert!(s[2].is_nan() && s[3].is_nan());
        for (got, x) in s[4..].iter().zip([1e-40f32, f32::MAX, 1.0]) {
            let want = f64::from(x).powf(-0.75);
            assert!((f64::from(*got) / want - 1.0).abs() < 1e-6, "{x}: {got}, not {want}");
        }
        let mut s = [16.0f64, 0.0];
        to_minus_three_quarters(&mut s);
        assert_eq!(s, [0.125, f64::INFINITY]);
    }
}
