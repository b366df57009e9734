//! Fused multiply-add, in hardware or emulated.

use crate::cast::cast;
use crate::element::{DType, Element};
use num_traits::Float;

/// Method by which a kernel computes `a·b + c`.
#[derive(Clone, Copy)]
pub(crate) enum FmaMode {
    /// Hardware FMA, for code that is compiled with the processor's FMA instruction.
    Hardware,
    /// Emulated FMA in `f64` arithmetic, for code that is compiled without the FMA instruction.
    Emulated,
}

impl FmaMode {
    /// FMA mode of code that is compiled only for the features of the compilation target.
    pub(crate) const BASE: Self = if cfg!(any(target_arch = "aarch64", target_feature = "fma")) {
        Self::Hardware
    } else {
        Self::Emulated
    };

    /// Returns `a·b + c`, rounded once for `f32` and twice for `f64`. A fused multiply-add of `f64`
    /// would be expensive to emulate.
    #[inline(always)]
    pub(crate) fn mul_add<A: Element + Float>(self, a: A, b: A, c: A) -> A {
        match (self, A::DTYPE) {
            (Self::Hardware, DType::F32) => a.mul_add(b, c),
            (Self::Emulated, DType::F32) => cast(emulated_mul_add(cast(a), cast(b), cast(c))),
            _ => a * b + c,
        }
    }
}

/// Returns `a·b + c`, rounded once, as a hardware FMA does.
///
/// The product of two `f32` is exact in `f64`, and an inexact sum is rounded to odd. The sum
/// rounded to odd lies halfway between two `f32` values only if the exact sum does (Boldo and
/// Melquiond, "Emulation of a FMA and correctly rounded sums", 2008). Knuth's TwoSum algorithm
/// computes the rounding error of the sum.
#[inline(always)]
fn emulated_mul_add(a: f32, b: f32, c: f32) -> f32 {
    let (product, c) = (f64::from(a) * f64::from(b), f64::from(c));
    let sum = product + c;
    let rest = sum - product;
    let error = (product - (sum - rest)) + (c - rest);
    // If the sum is infinite, `error` is NaN, and the comparison with NaN is false.
    let inexact_mask = if error.abs() > 0.0 { u64::MAX } else { 0 };
    let bits = sum.to_bits();
    let even_mask = (bits & 1).wrapping_sub(1);
    // Adding `step` (+1 or −1) to the bit pattern of `sum` moves `sum` towards the exact sum.
    let step = ((bits ^ error.to_bits()) >> 63).wrapping_neg() | 1;
    f64::from_bits(bits.wrapping_add(step & even_mask & inexact_mask)) as f32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::RngKey;
    use rand_core::Rng;

    /// The operands include products and addends that nearly cancel, and sums halfway between two
    /// `f32` values.
    #[test]
    fn emulated_mul_add_of_f32_rounds_once() {
        let mut rng = RngKey::new(11).rng();
        let check_emulated_mul_add = |a: f32, b: f32, c: f32| {
            let (got, expected) = (FmaMode::Emulated.mul_add(a, b, c), a.mul_add(b, c));
            let is_same = got.to_bits() == expected.to_bits() || got.is_nan() && expected.is_nan();
            assert!(is_same, "{a:e} · {b:e} + {c:e}: got {got:e}, expected {expected:e}");
        };
        for _ in 0..200_000 {
            let [a, b, c] = [(); 3].map(|()| f32::from_bits(rng.next_u32()));
            check_emulated_mul_add(a, b, c);
            let addend = f32::from_bits((-(a * b)).to_bits().wrapping_add(rng.next_u32() % 5));
            check_emulated_mul_add(a, b, addend);
            // If the factors have few significant bits and the addend is arbitrary, the product is
            // often far smaller than the last bit of the addend, or the addend is far smaller than
            // the last bit of the product.
            let [a, b] = [a, b].map(|x| f32::from_bits(x.to_bits() & 0xbf80_0fff | 0x3000_0000));
            let exponent = (rng.next_u32() % 64) << 23 | 0x3000_0000;
            check_emulated_mul_add(a, b, f32::from_bits(c.to_bits() & 0x807f_ffff | exponent));
        }
        let edge_values =
            [0.0, -0.0, 1.0, -1.0, f32::MIN_POSITIVE, 1e-45, f32::MAX, f32::INFINITY, f32::NAN];
        for (a, b) in edge_values.into_iter().flat_map(|a| edge_values.map(|b| (a, b))) {
            edge_values.into_iter().for_each(|c| check_emulated_mul_add(a, b, c));
        }
    }

    #[test]
    fn mul_add_of_f64_rounds_twice() {
        let (a, b, c) = (1.0 + f64::EPSILON, 1.0 - f64::EPSILON, -1.0);
        for mode in [FmaMode::Hardware, FmaMode::Emulated] {
            assert_eq!(mode.mul_add(a, b, c), a * b + c);
        }
    }
}
