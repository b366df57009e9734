//! Conversion between element types, and conversion from integers to element types.

use crate::cast::{cast_slice, cast_slice_mut};
use crate::{
    element::{DType, Element, Storable, bf16, f16, is_same, round_to_odd},
    error::{Result, check_len},
    host::{
        simd::{
            accumulator::{CHUNK, accumulator_buffer, narrow, overwrite_widened, widen, widened},
            vectorized,
        },
        threads::Workers,
    },
};

const GRAIN: usize = 1 << 17;

/// `y ← x`, rounded to nearest, ties to even.
///
/// Values beyond the range of type `U` become infinite, and NaN stays NaN.
///
/// # Errors
/// [`Error::Length`](crate::Error::Length) unless `y` is as long as `x`.
pub(crate) fn convert<T: Element, U: Element>(
    workers: &Workers,
    x: &[T],
    y: &mut [U],
) -> Result<()> {
    check_len("convert", "y", x.len(), y.len())?;
    convert_bytes(workers, (T::DTYPE, cast_slice(x)), (U::DTYPE, cast_slice_mut(y)));
    Ok(())
}

/// Converts between element types that are passed as run-time values, so that the code for each
/// pair of types is compiled only once.
fn convert_bytes(workers: &Workers, (from, x): (DType, &[u8]), (to, y): (DType, &mut [u8])) {
    match from {
        DType::F16 => convert_from::<f16>(workers, cast_slice(x), to, y),
        DType::Bf16 => convert_from::<bf16>(workers, cast_slice(x), to, y),
        DType::F32 => convert_from::<f32>(workers, cast_slice(x), to, y),
        DType::F64 => convert_from::<f64>(workers, cast_slice(x), to, y),
    }
}

fn convert_from<T: Element>(workers: &Workers, x: &[T], to: DType, y: &mut [u8]) {
    match to {
        DType::F16 => convert_slice::<T, f16>(workers, x, cast_slice_mut(y)),
        DType::Bf16 => convert_slice::<T, bf16>(workers, x, cast_slice_mut(y)),
        DType::F32 => convert_slice::<T, f32>(workers, x, cast_slice_mut(y)),
        DType::F64 => convert_slice::<T, f64>(workers, x, cast_slice_mut(y)),
    }
}

fn convert_slice<T: Element, U: Element>(workers: &Workers, x: &[T], y: &mut [U]) {
    workers.for_each_chunk(y, GRAIN, |i, y| convert_chunk(&x[i * GRAIN..][..y.len()], y));
}

/// `y ← x`, converted from integers to `T` and rounded once.
///
/// # Errors
/// [`Error::Length`](crate::Error::Length) unless `y` is as long as `x`.
pub(crate) fn convert_integers<N: Storable + Into<f64>, T: Element>(
    workers: &Workers,
    x: &[N],
    y: &mut [T],
) -> Result<()> {
    check_len("convert_integers", "y", x.len(), y.len())?;
    workers.for_each_chunk(y, GRAIN, |i, y| {
        let x = &x[i * GRAIN..][..y.len()];
        vectorized(
            #[inline(always)]
            |_| y.iter_mut().zip(x).for_each(|(y, &x)| *y = T::from_f64(x.into())),
        );
    });
    Ok(())
}

/// `y ← x`, by the most direct conversion from type `T` to type `U`. `x` and `y` have the same
/// length.
fn convert_chunk<T: Element, U: Element>(x: &[T], y: &mut [U]) {
    if const { is_same::<T, U>() } {
        y.copy_from_slice(cast_slice(x));
    } else if const { is_same::<T, f64>() && is_same::<U, f32>() } {
        let (x, y): (&[f64], &mut [f32]) = (cast_slice(x), cast_slice_mut(y));
        vectorized(
            #[inline(always)]
            |_| y.iter_mut().zip(x).for_each(|(y, &x)| *y = x as f32),
        );
    } else if const { is_same::<T, f64>() } {
        // Convert `f64` to `f32` with rounding to odd, so that the second rounding, to 16 bits,
        // yields the correctly rounded value.
        let mut buffer = accumulator_buffer::<f32>();
        for (x, y) in cast_slice::<T, f64>(x).chunks(CHUNK).zip(y.chunks_mut(CHUNK)) {
            let buffer = &mut buffer[..x.len()];
            vectorized(
                #[inline(always)]
                |_| buffer.iter_mut().zip(x).for_each(|(y, &x)| *y = round_to_odd(x)),
            );
            narrow(cast_slice(buffer), y);
        }
    } else if const { is_same::<U, f64>() } {
        let mut buffer = accumulator_buffer::<T::Acc>();
        for (x, y) in x.chunks(CHUNK).zip(cast_slice_mut::<U, f64>(y).chunks_mut(CHUNK)) {
            let x: &[f32] = cast_slice(widened(x, &mut buffer));
            vectorized(
                #[inline(always)]
                |_| y.iter_mut().zip(x).for_each(|(y, &x)| *y = f64::from(x)),
            );
        }
    } else if const { is_same::<T, f32>() } {
        // Conversions without `f64` go through `f32`, which represents every 16-bit value exactly.
        narrow(cast_slice(x), y);
    } else if const { is_same::<U, f32>() } {
        widen(x, cast_slice_mut(y));
    } else {
        let mut buffer = accumulator_buffer::<U::Acc>();
        for (x, y) in x.chunks(CHUNK).zip(y.chunks_mut(CHUNK)) {
            overwrite_widened(y, &mut buffer, |y| widen(x, cast_slice_mut(y)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        element::{bf16 as Bf16, f16 as F16},
        host::testing::{for_each_element, integers, operand, threads, wide},
    };

    /// Converts all values of a 16-bit type, the midpoints between neighbouring values, and `f64`
    /// values so close to a midpoint that a conversion to `f32` would round them to the midpoint.
    fn check_ties<U: Element>(from_bits: impl Fn(u16) -> U, to_bits: impl Fn(U) -> u16) {
        let mut x = Vec::new();
        let mut expected = Vec::new();
        for bits in 0..u16::MAX {
            let (low, high) = (from_bits(bits).to_f64(), from_bits(bits + 1).to_f64());
            if low.is_sign_negative() != high.is_sign_negative() || !(low - high).is_finite() {
                continue;
            }
            let midpoint = (low + high) / 2.0;
            let even_bits = if bits % 2 == 0 { bits } else { bits + 1 };
            x.extend([low, midpoint, midpoint * (1.0 - 1e-15), midpoint * (1.0 + 1e-15)]);
            expected.extend([bits, even_bits, bits, bits + 1]);
        }
        let mut y = vec![U::default(); x.len()];
        convert(&Workers::sequential(), &x, &mut y).unwrap();
        for ((x, y), expected) in x.iter().zip(y).zip(expected) {
            assert_eq!(to_bits(y), expected, "{x:e}");
        }
    }

    /// Converts positive and negative integers, including integers with more digits than `T`
    /// represents exactly.
    fn converted_integers_are_rounded_once<T: Element>() {
        let x: Vec<i32> =
            integers::<f64>(3, GRAIN + 7).iter().map(|x| *x as i32 * 8_123_457).collect();
        let expected: Vec<T> = x.iter().map(|&x| T::from_f64(f64::from(x))).collect();
        let unsigned_x: Vec<u32> = x.iter().map(|&x| x.unsigned_abs()).collect();
        let magnitudes: Vec<T> = unsigned_x.iter().map(|&x| T::from_f64(f64::from(x))).collect();
        for workers in threads() {
            let mut y = vec![T::from_f64(f64::NAN); x.len()];
            convert_integers(&workers, &x, &mut y).unwrap();
            assert_eq!(y, expected);
            convert_integers(&workers, &unsigned_x, &mut y).unwrap();
            assert_eq!(y, magnitudes);
        }
        let result = convert_integers(&Workers::sequential(), &[1], &mut [T::default(); 2]);
        assert_eq!(operand(result), ("convert_integers", "y"));
    }

    for_each_element!(converted_integers_are_rounded_once);

    #[test]
    fn conversion_from_f64_rounds_once() {
        check_ties(F16::from_bits, F16::to_bits);
        check_ties(Bf16::from_bits, Bf16::to_bits);
    }

    #[test]
    fn f64_outside_the_16_bit_range_becomes_zero_or_infinite() {
        let x = [f64::MAX, -f64::MAX, 5e-324, -5e-324, 65519.999, 65520.0];
        let mut y = [F16::NAN; 6];
        convert(&Workers::sequential(), &x, &mut y).unwrap();
        let infinity = f64::INFINITY;
        assert_eq!(wide(&y), [infinity, -infinity, 0.0, 0.0, 65504.0, infinity]);
        assert!(y[3].is_sign_negative());
        let mut y = [Bf16::NAN; 6];
        convert(&Workers::sequential(), &x, &mut y).unwrap();
        assert_eq!(wide(&y), [infinity, -infinity, 0.0, 0.0, 65536.0, 65536.0]);
    }

    #[test]
    fn conversion_errors_name_the_operand() {
        let result = convert(&Workers::sequential(), &[1.0f32; 3], &mut [0.0f64; 2]);
        assert_eq!(operand(result), ("convert", "y"));
    }
}
