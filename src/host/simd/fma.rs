//! Fused multiply-add, in hardware or emulated.

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
            (Self::Emulated, DType::F32) => {
                A::from_f64(emulated_mul_add(a.to_f64(), b.to_f64(), c.to_f64()).into())
            }
            _ => a * b + c,
        }
    }

    /// Returns `a·b + c`, rounded once for `f32` and `f64`. If code for `f64` is compiled without
    /// the FMA instruction, `f64::mul_add` calls the C library.
    #[inline(always)]
    pub(crate) fn fused_mul_add<A: Element + Float>(self, a: A, b: A, c: A) -> A {
        if A::DTYPE == DType::F64 { a.mul_add(b, c) } else { self.mul_add(a, b, c) }
    }
}

/// Returns `a·b + c` for operands that are `f32` values, rounded once, as a hardware FMA does.
///
/// The product of two `f32` is exact in `f64`. Rounding the sum first to `f64` and then to `f32`
/// gives another result than rounding once only if the `f64` sum lies halfway between two `f32`
/// values. The significand of a normal `f32` has 29 bits less than that of an `f64`. The last 29
/// bits of such a sum are therefore a one followed by zeros. The significand of a subnormal `f32`
/// is shorter, so [`rounded_to_odd`] rounds every subnormal sum.
#[inline(always)]
fn emulated_mul_add(a: f64, b: f64, c: f64) -> f32 {
    let product = a * b;
    let sum = product + c;
    let bits = sum.to_bits();
    let is_halfway = bits & 0x1fff_ffff == 0x1000_0000;
    // The sum 0 is exact. The subtraction wraps around for 0.
    let magnitude = bits & (u64::MAX >> 1);
    let is_subnormal = magnitude.wrapping_sub(1) < f64::to_bits(f32::MIN_POSITIVE as f64) - 1;
    if is_halfway | is_subnormal { rounded_to_odd(product, c, sum) } else { sum as f32 }
}

/// Returns `product + c`, rounded once to `f32`. `sum` is `product + c`, rounded to `f64`.
///
/// The function rounds an inexact sum to odd. The sum rounded to odd lies halfway between two `f32`
/// values only if the exact sum does (Boldo and Melquiond, "Emulation of a FMA and correctly rounded
/// sums", 2008). Knuth's TwoSum algorithm computes the rounding error of the sum.
#[cold]
fn rounded_to_odd(product: f64, c: f64, sum: f64) -> f32 {
    let rest = sum - product;
    let error = (product - (sum - rest)) + (c - rest);
    let bits = sum.to_bits();
    if error == 0.0 || bits & 1 == 1 {
        return sum as f32;
    }
    // If `sum` and `error` have the same sign, the exact sum has a greater magnitude than `sum`.
    // The neighbour of `sum` towards the exact sum then has a greater bit pattern than `sum`.
    let is_greater = sum.is_sign_negative() == error.is_sign_negative();
    f64::from_bits(if is_greater { bits + 1 } else { bits - 1 }) as f32
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
