//! Arithmetic of single values as the PTX ISA defines it, where Rust's operators differ.
//!
//! Results that are NaN have the bit pattern that the ISA states: `7fffffff` for `.f32`.

/// Replaces a NaN by the canonical NaN of `.f32` results.
#[inline(always)]
pub(crate) fn canonical(value: f32) -> f32 {
    // Compares bits, because the compiler may replace a NaN by another one in arithmetic.
    let bits = value.to_bits();
    f32::from_bits(if bits & 0x7fff_ffff > 0x7f80_0000 { 0x7fff_ffff } else { bits })
}

/// Replaces subnormal numbers by zero of the same sign, as `.ftz` demands.
#[inline(always)]
pub(crate) fn flush(value: f32) -> f32 {
    if value.is_subnormal() { 0.0f32.copysign(value) } else { value }
}

macro_rules! extrema {
    ($min:ident, $max:ident, $type:ty) => {
        /// Returns the lesser number. −0 is less than +0, and the result is NaN only if both
        /// operands are NaN.
        #[inline(always)]
        pub(crate) fn $min(a: $type, b: $type) -> $type {
            if a.is_nan() {
                b
            } else if b.is_nan() || a < b || (a == b && a.is_sign_negative()) {
                a
            } else {
                b
            }
        }

        /// Returns the greater number. +0 is greater than −0, and the result is NaN only if both
        /// operands are NaN.
        #[inline(always)]
        pub(crate) fn $max(a: $type, b: $type) -> $type {
            if a.is_nan() {
                b
            } else if b.is_nan() || a > b || (a == b && a.is_sign_positive()) {
                a
            } else {
                b
            }
        }
    };
}

extrema!(min_f32, max_f32, f32);
extrema!(min_f64, max_f64, f64);

/// Returns `a + b` as the rounded sum and the rounding error, whose sum is exact.
fn exact_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let b_part = sum - a;
    (sum, (a - (sum - b_part)) + (b - b_part))
}

/// Compares `value` with the exact number `sum + error`.
fn exceeds(value: f32, (sum, error): (f64, f64)) -> bool {
    let difference = f64::from(value) - sum;
    difference > error
}

fn is_below(value: f32, (sum, error): (f64, f64)) -> bool {
    let difference = f64::from(value) - sum;
    difference < error
}

/// Rounds the exact number `sum + error` towards −∞.
fn round_down(exact: (f64, f64)) -> f32 {
    let nearest = exact.0 as f32;
    if !exact.0.is_finite() {
        return nearest;
    }
    if exceeds(nearest, exact) { nearest.next_down() } else { nearest }
}

/// Returns `a + b`, rounded towards zero (`add.rz.f32`).
pub(crate) fn add_toward_zero(a: f32, b: f32) -> f32 {
    let exact = exact_sum(a.into(), b.into());
    let nearest = exact.0 as f32;
    if !exact.0.is_finite() || nearest == 0.0 {
        return canonical(nearest);
    }
    if nearest > 0.0 && exceeds(nearest, exact) {
        nearest.next_down()
    } else if nearest < 0.0 && is_below(nearest, exact) {
        nearest.next_up()
    } else {
        nearest
    }
}

/// Returns `a·b + c`, rounded towards −∞ (`fma.rm.f32`).
pub(crate) fn fma_down(a: f32, b: f32, c: f32) -> f32 {
    // The product of two numbers of 24 bits is exact in 53 bits.
    let (product, c) = (f64::from(a) * f64::from(b), f64::from(c));
    if product + c == 0.0 && (product != 0.0 || product.is_sign_negative() || c.is_sign_negative())
    {
        // An exact sum of zero is −0 in this rounding mode, unless both addends are +0.
        return -0.0;
    }
    canonical(round_down(exact_sum(product, c)))
}

/// The precision of results for which the ISA allows several values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Precision {
    /// Approximations are rounded correctly, a matrix product is rounded once, and products are
    /// rounded before sums.
    #[default]
    Best,
    /// Approximations have the largest errors that the ISA allows, and sums of a matrix product are
    /// truncated to `f32` after each addition. A `mul` and an `add` without rounding modifiers
    /// become an `fma`, as the driver's compiler may do.
    Least,
}

/// Returns `value` moved by up to `ulps` units in the last place, by an amount that depends on its
/// bits. Zeros, infinities and NaN stay the same.
pub(crate) fn displace(value: f32, ulps: u32) -> f32 {
    let bits = value.to_bits();
    if !value.is_normal() {
        return value;
    }
    let choice = bits.wrapping_mul(0x9e37_79b1) >> 16;
    let moved = f32::from_bits(bits + choice % (2 * ulps + 1) - ulps);
    if moved.is_normal() { moved } else { value }
}

/// Returns 2 to the power of `x` (`ex2.approx.f32`).
#[inline(always)]
pub(crate) fn exp2(x: f32) -> f32 {
    canonical(f64::from(x).exp2() as f32)
}

/// Like [`exp2`], but with an error of up to 2 ulp. For an integer `x`, the result is exact:
/// NVIDIA's functions in the PTX rely on exact powers of 2, although the ISA does not guarantee
/// them.
pub(crate) fn imprecise_exp2(x: f32) -> f32 {
    if x == x.trunc() || x.is_subnormal() { exp2(x) } else { displace(exp2(x), 2) }
}

/// Returns `1/x` (`rcp.approx.ftz.f32`).
#[inline(always)]
pub(crate) fn reciprocal_ftz(x: f32) -> f32 {
    canonical(flush(1.0 / flush(x)))
}

/// Returns an approximation of `1/x` (`rcp.approx.ftz.f64`). The instruction ignores the lower 32
/// bits of the operand, and the lower 32 bits of the result are zero.
pub(crate) fn reciprocal_high(x: f64) -> f64 {
    const HIGH: u64 = !0 << 32;
    let x = f64::from_bits(x.to_bits() & HIGH);
    let x = if x.is_subnormal() { 0.0f64.copysign(x) } else { x };
    let quotient = 1.0 / x;
    if quotient.is_subnormal() {
        return 0.0f64.copysign(quotient);
    }
    f64::from_bits(quotient.to_bits() & HIGH)
}

/// Like [`reciprocal_high`], but with an error in the last bit of the upper word.
pub(crate) fn imprecise_reciprocal_high(x: f64) -> f64 {
    let quotient = reciprocal_high(x);
    let moved = f64::from_bits(quotient.to_bits().wrapping_sub(1 << 32));
    if quotient.is_normal() && moved.is_normal() { moved } else { quotient }
}

/// Inserts `length` bits of `field` into `base` at bit `start` (`bfi.b32`).
pub(crate) fn insert_bits(field: u32, base: u32, start: u32, length: u32) -> u32 {
    let (start, length) = (start & 0xff, length & 0xff);
    let mut result = base;
    for i in 0..length.min(32_u32.saturating_sub(start)) {
        let bit = if i < 32 { field >> i & 1 } else { 0 };
        result = result & !(1 << (start + i)) | bit << (start + i);
    }
    result
}

/// Returns the shift that moves the highest set bit to bit 31, or all ones for zero
/// (`bfind.shiftamt.u32`).
pub(crate) fn find_shift(a: u32) -> u32 {
    if a == 0 { u32::MAX } else { a.leading_zeros() }
}

/// Selects four of the eight bytes of `a` and `b` (`prmt.b32`). Bit 3 of a selector replicates the
/// sign of the selected byte.
pub(crate) fn permute_bytes(a: u32, b: u32, selectors: u32) -> u32 {
    let bytes = u64::from(b) << 32 | u64::from(a);
    (0..4).fold(0, |result, i| {
        let selector = selectors >> (4 * i) & 0xf;
        let byte = (bytes >> (8 * (selector & 7)) & 0xff) as u32;
        let byte = if selector & 8 == 0 { byte } else { (byte >> 7) * 0xff };
        result | byte << (8 * i)
    })
}

/// Shifts left; an amount above the width gives zero.
macro_rules! shifts {
    ($left:ident, $right:ident, $type:ty) => {
        #[inline(always)]
        pub(crate) fn $left(a: $type, amount: u32) -> $type {
            if amount < <$type>::BITS { a << amount } else { 0 }
        }

        #[inline(always)]
        pub(crate) fn $right(a: $type, amount: u32) -> $type {
            if amount < <$type>::BITS { a >> amount } else { 0 }
        }
    };
}

shifts!(shl_u32, shr_u32, u32);
shifts!(shl_u64, shr_u64, u64);

/// Shifts right and copies the sign (`shr.s32`).
#[inline(always)]
pub(crate) fn shr_i32(a: i32, amount: u32) -> i32 {
    a >> amount.min(31)
}
