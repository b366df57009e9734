//! Conversion of slices between the element type and the accumulator type.
//!
//! Kernels compute in the type [`Element::Acc`], so their loops are compiled for `f32` and `f64`
//! only. Kernels widen and narrow 16-bit elements in chunks that stay in L1, and read `f32` and
//! `f64` elements in place.
//!
//! With AVX-512, [`widen`] and [`narrow`] call `x86::half`. Without AVX-512, [`widen`] and
//! [`narrow`] call the crate `half` for `f16`, and run vectorized loops for `bf16`.

use crate::cast::{cast_slice, cast_slice_mut};
#[cfg(target_arch = "x86_64")]
use crate::host::simd::{level::has_avx512, x86::half};
use crate::{
    element::{DType, Element, bf16, f16, is_same},
    host::simd::level::vectorized,
};
use ::half::slice::HalfFloatSliceExt;

/// Number of 16-bit elements that a kernel widens at a time.
pub(crate) const CHUNK: usize = 1024;

pub(crate) type AccumulatorBuffer<A> = [A; CHUNK];

/// Returns a zeroed buffer for a chunk of [`CHUNK`] widened elements.
#[inline(always)]
pub(crate) fn accumulator_buffer<A: Element>() -> AccumulatorBuffer<A> {
    [A::default(); CHUNK]
}

/// Returns whether `T` is `f32` or `f64`, which need no widening. If the condition of an `if` is
/// `const { is_wide::<T>() }`, rustc generates code for only one of the two branches.
#[inline(always)]
pub(crate) const fn is_wide<T: Element>() -> bool {
    matches!(T::DTYPE, DType::F32 | DType::F64)
}

/// Returns the number of scratch elements that a kernel needs to widen `len` elements of `T`.
pub(crate) fn accumulator_len<T: Element>(len: usize) -> usize {
    if const { is_wide::<T>() } { 0 } else { len }
}

/// Returns `x` if `T` is `f32` or `f64`, else widens `x` into `buffer`, which is at least as long
/// as `x`.
#[inline(always)]
pub(crate) fn widened<'a, T: Element>(x: &'a [T], buffer: &'a mut [T::Acc]) -> &'a [T::Acc] {
    if const { is_wide::<T>() } {
        return cast_slice(x);
    }
    let buffer = &mut buffer[..x.len()];
    widen(x, buffer);
    buffer
}

/// `y ← x`, converted exactly. `x` and `y` have the same length.
#[inline]
pub(crate) fn widen<T: Element>(x: &[T], y: &mut [T::Acc]) {
    #[cfg(target_arch = "x86_64")]
    if const { !is_wide::<T>() } && has_avx512() {
        // SAFETY: the called function is compiled for processor features that `has_avx512` has
        // detected.
        return unsafe { half::widen(x, cast_slice_mut(y)) };
    }
    if const { is_wide::<T>() } {
        y.copy_from_slice(cast_slice(x));
    } else if const { is_same::<T, f16>() } {
        cast_slice::<T, f16>(x).convert_to_f32_slice(cast_slice_mut(y));
    } else {
        let (x, y): (&[bf16], &mut [f32]) = (cast_slice(x), cast_slice_mut(y));
        vectorized(
            #[inline(always)]
            |_| y.iter_mut().zip(x).for_each(|(y, x)| *y = x.to_f32()),
        );
    }
}

/// `y ← x`, rounded to nearest, ties to even. `x` and `y` have the same length.
#[inline]
pub(crate) fn narrow<T: Element>(x: &[T::Acc], y: &mut [T]) {
    #[cfg(target_arch = "x86_64")]
    if const { !is_wide::<T>() } && has_avx512() {
        // SAFETY: the called function is compiled for processor features that `has_avx512` has
        // detected.
        return unsafe { half::narrow(cast_slice(x), y) };
    }
    if const { is_wide::<T>() } {
        y.copy_from_slice(cast_slice(x));
    } else if const { is_same::<T, f16>() } {
        cast_slice_mut::<T, f16>(y).convert_from_f32_slice(cast_slice(x));
    } else {
        let (x, y): (&[f32], &mut [bf16]) = (cast_slice(x), cast_slice_mut(y));
        vectorized(
            #[inline(always)]
            |_| y.iter_mut().zip(x).for_each(|(y, x)| *y = bf16::from_f32(*x)),
        );
    }
}

/// Calls `body` on the elements of `y`, which `body` changes in place. If `y` has 16-bit elements,
/// `body` gets the elements widened into `buffer`, which are then narrowed to `y`.
#[inline(always)]
pub(crate) fn update_widened<T: Element>(
    y: &mut [T],
    buffer: &mut [T::Acc],
    body: impl FnOnce(&mut [T::Acc]),
) {
    if const { is_wide::<T>() } {
        return body(cast_slice_mut(y));
    }
    let buffer = &mut buffer[..y.len()];
    widen(y, buffer);
    body(buffer);
    narrow(buffer, y);
}

/// Like [`update_widened`], but `body` must overwrite all elements of `y` and must not read the old
/// values.
#[inline(always)]
pub(crate) fn overwrite_widened<T: Element>(
    y: &mut [T],
    buffer: &mut [T::Acc],
    body: impl FnOnce(&mut [T::Acc]),
) {
    if const { is_wide::<T>() } {
        return body(cast_slice_mut(y));
    }
    let buffer = &mut buffer[..y.len()];
    body(buffer);
    narrow(buffer, y);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::simd::level::with_each_simd_level;

    /// The `f32` values that the test narrows have every 16-bit pattern as their upper half, and
    /// include ties and NaN.
    #[test]
    fn widen_and_narrow_match_the_crate_half_in_every_bit() {
        let x: Vec<f32> =
            (0..=u32::MAX)
                .step_by(4999)
                .chain((0..=u32::from(u16::MAX)).flat_map(|high| {
                    [0, 0x1000, 0x7fff, 0x8000, 0x8001].map(|low| high << 16 | low)
                }))
                .map(f32::from_bits)
                .collect();
        let f16_values: Vec<f16> = (0..=u16::MAX).map(f16::from_bits).collect();
        let bf16_values: Vec<bf16> = (0..=u16::MAX).map(bf16::from_bits).collect();
        with_each_simd_level(|| {
            let (mut y, mut z) = (vec![f16::ZERO; x.len()], vec![bf16::ZERO; x.len()]);
            narrow(&x, &mut y);
            narrow(&x, &mut z);
            for ((x, y), z) in x.iter().zip(y).zip(z) {
                assert_eq!(y.to_bits(), f16::from_f32(*x).to_bits(), "{x:e}");
                assert_eq!(z.to_bits(), bf16::from_f32(*x).to_bits(), "{x:e}");
            }
            let (mut y, mut z) = (vec![0.0f32; f16_values.len()], vec![0.0f32; bf16_values.len()]);
            widen(&f16_values[1..], &mut y[1..]);
            widen(&bf16_values[1..], &mut z[1..]);
            for i in 1..f16_values.len() {
                assert_eq!(y[i].to_bits(), f16_values[i].to_f32().to_bits());
                assert_eq!(z[i].to_bits(), bf16_values[i].to_f32().to_bits());
            }
        });
    }

    #[test]
    fn narrow_rounds_ties_to_even() {
        fn check_ties_of<T: Element<Acc = f32>>(ulp: f32) {
            let mut y = [T::default(); 2];
            narrow(&[1.0 + 0.5 * ulp, 1.0 + 1.5 * ulp], &mut y);
            assert_eq!(y.map(Element::to_acc), [1.0, 1.0 + 2.0 * ulp]);
        }
        check_ties_of::<bf16>(1.0 / 128.0);
        check_ties_of::<f16>(1.0 / 1024.0);
    }
}
