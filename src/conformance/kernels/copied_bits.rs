//! Check of the bits that a kernel copies.

use super::prelude::*;
use crate::element::DType;

/// Checks that a kernel copies the bits of subnormal numbers, of −0, and of quiet and signalling
/// NaNs. A kernel that copied by converting elements to another type could change the bits of
/// subnormal numbers and NaNs.
pub(super) fn expect_copied_bits<T: Element>(
    runner: &CheckRunner<'_>,
    kernel: impl FnMut([View<'_, T, AnyDevice>; 1], [ViewMut<'_, T, AnyDevice>; 1]) -> Result<()>,
) -> Verdict {
    let x = unusual_bits::<T>();
    let y = ("y of unusual bits", &vec![T::default(); x.len()][..]);
    let [got] = runner.call(&CaseSetup::WHOLE, [("x", &x)], [y], kernel)?;
    expect_bits(y.0, &got, &x)
}

/// Returns eight elements: the smallest and the largest subnormal number with each sign, ±0, and a
/// quiet and a signalling NaN with payloads.
fn unusual_bits<T: Element>() -> Vec<T> {
    let (bits, mantissa) = match T::DTYPE {
        DType::F16 => (16, 10),
        DType::Bf16 => (16, 7),
        DType::F32 => (32, 23),
        DType::F64 => (64, 52),
    };
    let (sign, fraction) = (1u64 << (bits - 1), (1u64 << mantissa) - 1);
    let exponent = (sign - 1) & !fraction;
    let signalling_nan = exponent | fraction >> 1;
    let patterns =
        [1, sign | 1, fraction, sign | fraction, 0, sign, exponent | fraction, signalling_nan];
    let element = |bits: u64| {
        let mut element = [T::default()];
        let bytes = T::bytes_of_mut(&mut element);
        bytes.copy_from_slice(&bits.to_le_bytes()[..bytes.len()]);
        if cfg!(target_endian = "big") {
            bytes.reverse();
        }
        element[0]
    };
    patterns.into_iter().map(element).collect()
}
