//! From elements to the type they are computed in and back, a slice at a time.
//!
//! Kernels on [`Element::Acc`] are written and compiled once for `f32` and `f64`; 16-bit
//! elements go through them in chunks that stay in the first-level cache. For `f32` and `f64`
//! themselves nothing is copied.

#[cfg(target_arch = "x86_64")]
use crate::host::simd::{has_avx512, x86::half};
use crate::{
    element::{DType, Element, bf16, f16},
    host::simd::vectorized,
};
use ::half::slice::HalfFloatSliceExt;
use bytemuck::{cast_slice, cast_slice_mut};

/// Elements widened at a time.
pub(crate) const CHUNK: usize = 1024;

/// Room for a widened chunk.
pub(crate) type AccumulatorBuffer<A> = [A; CHUNK];

/// Room for a widened chunk, zeroed.
#[inline(always)]
pub(crate) fn accumulator_buffer<A: Element>() -> AccumulatorBuffer<A> {
    [A::default(); CHUNK]
}

/// Whether `T` is computed in its own type.
#[inline(always)]
pub(crate) const fn is_wide<T: Element>() -> bool {
    matches!(T::DTYPE, DType::F32 | DType::F64)
}

/// Returns the elements of scratch needed to widen `len` elements of `T`.
pub(crate) fn accumulator_len<T: Element>(len: usize) -> usize {
    if is_wide::<T>() { 0 } else { len }
}

/// `x` itself if it is wide, else its values in `room`, of at least its length.
#[inline(always)]
pub(crate) fn widened<'a, T: Element>(x: &'a [T], room: &'a mut [T::Acc]) -> &'a [T::Acc] {
    if is_wide::<T>() {
        return cast_slice(x);
    }
    let room = &mut room[..x.len()];
    widen(x, room);
    room
}

/// `y ← x`, exactly; equal lengths.
#[inline]
pub(crate) fn widen<T: Element>(x: &[T], y: &mut [T::Acc]) {
    #[cfg(target_arch = "x86_64")]
    if !is_wide::<T>() && has_avx512() {
        // SAFETY: the processor has what it is compiled for.
        #[allow(unsafe_code)]
        return unsafe { half::widen(x, cast_slice_mut(y)) };
    }
    match T::DTYPE {
        DType::F32 | DType::F64 => y.copy_from_slice(cast_slice(x)),
        DType::F16 => cast_slice::<T, f16>(x).convert_to_f32_slice(cast_slice_mut(y)),
        DType::Bf16 => {
            let (x, y): (&[bf16], &mut [f32]) = (cast_slice(x), cast_slice_mut(y));
            vectorized(
                #[inline(always)]
                || y.iter_mut().zip(x).for_each(|(y, x)| *y = x.to_f32()),
            );
        }
    }
}

/// `y ← x`, rounded to nearest, ties to even; equal lengths.
#[inline]
pub(crate) fn narrow<T: Element>(x: &[T::Acc], y: &mut [T]) {
    #[cfg(target_arch = "x86_64")]
    if !is_wide::<T>() && has_avx512() {
        // SAFETY: the processor has what it is compiled for.
        #[allow(unsafe_code)]
        return unsafe { half::narrow(cast_slice(x), y) };
    }
    match T::DTYPE {
        DType::F32 | DType::F64 => y.copy_from_slice(cast_slice(x)),
        DType::F16 => cast_slice_mut::<T, f16>(y).convert_from_f32_slice(cast_slice(x)),
        DType::Bf16 => {
            let (x, y): (&[f32], &mut [bf16]) = (cast_slice(x), cast_slice_mut(y));
            vectorized(
                #[inline(always)]
                || y.iter_mut().zip(x).for_each(|(y, x)| *y = bf16::from_f32(*x)),
            );
        }
    }
}

/// Changes `y` through `body`, which sees its values in `room` unless `y` is wide.
#[inline(always)]
pub(crate) fn update_widened<T: Element>(
    y: &mut [T],
    room: &mut [T::Acc],
    body: impl FnOnce(&mut [T::Acc]),
) {
    if is_wide::<T>() {
        return body(cast_slice_mut(y));
    }
    let room = &mut room[..y.len()];
    widen(y, room);
    body(room);
    narrow(room, y);
}

/// Overwrites `y` with what `body` writes; `body` finds unspecified values.
#[inline(always)]
pub(crate) fn overwrite_widened<T: Element>(
    y: &mut [T],
    room: &mut [T::Acc],
    body: impl FnOnce(&mut [T::Acc]),
) {
    if is_wide::<T>() {
        return body(cast_slice_mut(y));
    }
    let room = &mut room[..y.len()];
    body(room);
    narrow(room, y);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every finite 16-bit value survives the way to `f32` and back.
    #[test]
    fn round_trip_of_all_values() {
        fn check<T: Element<Acc = f32>>(from_bits: impl Fn(u16) -> T) {
            let all: Vec<T> = (0..=u16::MAX).map(from_bits).collect();
            let finite: Vec<T> = all.into_iter().filter(|v| v.to_f64().is_finite()).collect();
            let mut wide = vec![0.0; finite.len()];
            widen(&finite, &mut wide);
            assert!(finite.iter().zip(&wide).all(|(x, y)| x.to_f64() == f64::from(*y)));
            let mut back = vec![T::default(); finite.len()];
            narrow(&wide, &mut back);
            assert_eq!(bytemuck::cast_slice::<T, u16>(&back), cast_slice::<T, u16>(&finite));
        }
        check(f16::from_bits);
        check(bf16::from_bits);
    }

    /// Of `f32`s of all kinds, and of all 16-bit values, NaN too: as the crate `half` has it.
    #[test]
    fn bits_are_those_of_single_values() {
        let x: Vec<f32> =
            (0..=u32::MAX)
                .step_by(4999)
                .chain((0..=u32::from(u16::MAX)).flat_map(|high| {
                    [0, 0x1000, 0x7fff, 0x8000, 0x8001].map(|low| high << 16 | low)
                }))
                .map(f32::from_bits)
                .collect();
        let (mut half, mut brain) = (vec![f16::ZERO; x.len()], vec![bf16::ZERO; x.len()]);
        narrow(&x, &mut half);
        narrow(&x, &mut brain);
        for ((x, half), brain) in x.iter().zip(half).zip(brain) {
            assert_eq!(half.to_bits(), f16::from_f32(*x).to_bits(), "{x:e}");
            assert_eq!(brain.to_bits(), bf16::from_f32(*x).to_bits(), "{x:e}");
        }
        let half: Vec<f16> = (0..=u16::MAX).map(f16::from_bits).collect();
        let brain: Vec<bf16> = (0..=u16::MAX).map(bf16::from_bits).collect();
        let (mut y, mut z) = (vec![0.0; half.len()], vec![0.0; brain.len()]);
        widen(&half[1..], &mut y[1..]);
        widen(&brain[1..], &mut z[1..]);
        for i in 1..half.len() {
            assert_eq!(y[i].to_bits(), half[i].to_f32().to_bits());
            assert_eq!(z[i].to_bits(), brain[i].to_f32().to_bits());
        }
    }

    #[test]
    fn rounds_ties_to_even() {
        let x = [1.0 + 1.0 / 256.0, 1.0 + 3.0 / 256.0];
        let mut y = [bf16::ZERO; 2];
        narrow(&x, &mut y);
        assert_eq!(y.map(f32::from), [1.0, 1.0 + 4.0 / 256.0]);
        let x = [1.0 + 1.0 / 2048.0, 1.0 + 3.0 / 2048.0];
        let mut y = [f16::ZERO; 2];
        narrow(&x, &mut y);
        assert_eq!(y.map(f32::from), [1.0, 1.0 + 4.0 / 2048.0]);
    }
}
