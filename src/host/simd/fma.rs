//! Products that are added with one rounding.

use crate::element::{DType, Element};
use bytemuck::cast;
use num_traits::Float;

/// How `a·b + c` is computed where a kernel runs.
#[derive(Clone, Copy)]
pub(crate) enum FmaMode {
    /// By an instruction.
    Hardware,
    /// From others, where there is none or it is not known at compile time.
    Emulated,
}

impl FmaMode {
    /// What this target has wherever it runs.
    pub(crate) const BASE: Self = if cfg!(any(target_arch = "aarch64", target_feature = "fma")) {
        Self::Hardware
    } else {
        Self::Emulated
    };

    /// `a·b + c`: of `f32` rounded once, of `f64`, whose products nothing wider holds, twice.
    #[inline(always)]
    pub(crate) fn mul_add<A: Element + Float>(self, a: A, b: A, c: A) -> A {
        match (self, A::DTYPE) {
            (Self::Hardware, DType::F32) => a.mul_add(b, c),
            (Self::Emulated, DType::F32) => cast(composed(cast(a), cast(b), cast(c))),
            _ => a * b + c,
        }
    }
}

/// `a·b + c`, rounded once.
///
/// The product is exact in `f64`. Where the sum is not, its last bit is made odd: so it is never
/// halfway between two `f32` when the exact one is not (S. Boldo and G. Melquiond, "Emulation of a
/// FMA and correctly rounded sums", 2008). What was rounded away is found by D. Knuth's TwoSum.
#[inline(always)]
fn composed(a: f32, b: f32, c: f32) -> f32 {
    let (product, c) = (f64::from(a) * f64::from(b), f64::from(c));
    let sum = product + c;
    let rest = sum - product;
    let lost = (product - (sum - rest)) + (c - rest);
    // What is lost of infinities is NaN, which is not larger.
    let inexact = if lost.abs() > 0.0 { u64::MAX } else { 0 };
    let bits = sum.to_bits();
    let even = (bits & 1).wrapping_sub(1);
    // One up, or down: towards what was lost.
    let towards = ((bits ^ lost.to_bits()) >> 63).wrapping_neg() | 1;
    f64::from_bits(bits.wrapping_add(towards & even & inexact)) as f32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::RngKey;
    use rand_core::Rng;

    /// Operands of all kinds, sums that nearly cancel, and halves of units among them.
    #[test]
    fn rounds_once_without_the_instruction() {
        let mut rng = RngKey::new(11).rng();
        let check = |a: f32, b: f32, c: f32| {
            let (got, want) = (FmaMode::Emulated.mul_add(a, b, c), a.mul_add(b, c));
            let same = got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan();
            assert!(same, "{a:e} · {b:e} + {c:e}: {got:e}, not {want:e}");
        };
        for _ in 0..200_000 {
            let [a, b, c] = [(); 3].map(|()| f32::from_bits(rng.next_u32()));
            check(a, b, c);
            let near = f32::from_bits((-(a * b)).to_bits().wrapping_add(rng.next_u32() % 5));
            check(a, b, near);
            // One bit far below, on either side of where the other is rounded.
            let [a, b] = [a, b].map(|x| f32::from_bits(x.to_bits() & 0xbf80_0fff | 0x3000_0000));
            check(
                a,
                b,
                f32::from_bits(
                    c.to_bits() & 0x807f_ffff | (rng.next_u32() % 64) << 23 | 0x3000_0000,
                ),
            );
        }
        let edges =
            [0.0, -0.0, 1.0, -1.0, f32::MIN_POSITIVE, 1e-45, f32::MAX, f32::INFINITY, f32::NAN];
        for (a, b, c) in
            edges.iter().flat_map(|&a| edges.map(|b| edges.map(|c| (a, b, c)))).flatten()
        {
            check(a, b, c);
        }
    }

    #[test]
    fn doubles_are_rounded_twice() {
        let (a, b, c) = (1.0 + f64::EPSILON, 1.0 - f64::EPSILON, -1.0);
        assert_eq!(
            [FmaMode::Hardware, FmaMode::Emulated].map(|fused| fused.mul_add(a, b, c)),
            [a * b + c; 2]
        );
    }
}
