//! Conversions between number formats, and conversions to integers (`cvt`).

use crate::arithmetic::canonical;

/// Bit pattern of a result in `f16` or `bf16` that is NaN.
const NAN_16: u16 = 0x7fff;

/// Converts an `f16` to `f32` (`cvt.f32.f16`).
#[inline(always)]
pub(crate) fn f16_to_f32(half: u16) -> f32 {
    let sign = u32::from(half & 0x8000) << 16;
    let magnitude = u32::from(half & 0x7fff);
    // The factor 2^112 changes the bias of the exponent from that of `f16` to that of `f32`, and
    // the multiplication normalizes subnormal numbers.
    let scaled = f32::from_bits(magnitude << 13) * f32::from_bits((127 + 112) << 23);
    let value = if magnitude > 0x7c00 {
        f32::NAN
    } else if magnitude == 0x7c00 {
        f32::INFINITY
    } else {
        scaled
    };
    canonical(f32::from_bits(value.to_bits() | sign))
}

/// Converts a `bf16` to `f32`.
#[inline(always)]
pub(crate) fn bf16_to_f32(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

/// Rounds to `f16`, ties to even (`cvt.rn.f16.f32`).
#[inline(always)]
pub(crate) fn f32_to_f16(value: f32) -> u16 {
    f64_to_f16(value.into())
}

/// Rounds to `f16`, ties to even (`cvt.rn.f16.f64`).
#[inline(always)]
pub(crate) fn f64_to_f16(value: f64) -> u16 {
    let (sign, magnitude) = ((value.to_bits() >> 48) as u16 & 0x8000, value.abs());
    let rounded = if magnitude < f64::from_bits((1023 - 14) << 52) {
        // A subnormal `f16` is a multiple of 2^−24.
        (magnitude * f64::from_bits((1023 + 24) << 52)).round_ties_even() as u16
    } else {
        let bits = magnitude.to_bits();
        let bits = bits + ((1 << 41) - 1) + (bits >> 42 & 1);
        ((bits >> 42) - ((1023 - 15) << 10)).min(0x7c00) as u16
    };
    if value.is_nan() { NAN_16 } else { sign | rounded }
}

/// Rounds to `bf16`, ties to even (`cvt.rn.bf16.f32`).
#[inline(always)]
pub(crate) fn f32_to_bf16(value: f32) -> u16 {
    let bits = value.to_bits();
    if value.is_nan() { NAN_16 } else { ((bits + 0x7fff + (bits >> 16 & 1)) >> 16) as u16 }
}

/// Rounds to TF32, ties away from zero (`cvt.rna.tf32.f32`).
#[inline(always)]
pub(crate) fn f32_to_tf32(value: f32) -> u32 {
    let bits = value.to_bits();
    if value.is_finite() { (bits + 0x1000) & !0x1fff } else { canonical(value).to_bits() }
}

/// Limits a number to [0, 1]; NaN becomes 0 (`cvt.sat.f32.f32`).
#[inline(always)]
pub(crate) fn saturate(value: f32) -> f32 {
    if value > 1.0 {
        1.0
    } else if value > 0.0 {
        value
    } else {
        0.0
    }
}

/// Truncates to an integer within the range of the type; NaN becomes 0 (`cvt.rzi.s32.f32`).
#[inline(always)]
pub(crate) fn f32_to_i32(value: f32) -> i32 {
    value as i32
}

/// Truncates to an integer within the range of the type; NaN becomes 0 (`cvt.rzi.u32.f32`).
#[inline(always)]
pub(crate) fn f32_to_u32(value: f32) -> u32 {
    value as u32
}

/// Truncates to an integer within the range of the type; NaN becomes 2^63 (`cvt.rzi.s64.f64`).
#[inline(always)]
pub(crate) fn f64_to_i64(value: f64) -> i64 {
    if value.is_nan() { i64::MIN } else { value as i64 }
}

/// Truncates to an integer within the range of the type; NaN becomes 2^31 (`cvt.rzi.u32.f64`).
#[inline(always)]
pub(crate) fn f64_to_u32(value: f64) -> u32 {
    if value.is_nan() { 1 << 31 } else { value as u32 }
}
