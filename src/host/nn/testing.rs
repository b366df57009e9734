//! Checks shared by the tests of neural-network kernels.

use crate::{error::Result, host::testing::operand};

/// Calls `kernel` several times, each time with one operand that is one element too short or too
/// long. Each call must return an error that names the kernel and that operand.
pub(crate) fn expect_length_errors<const N: usize>(
    name: &str,
    operands: [(&str, usize); N],
    kernel: impl Fn([Vec<f32>; N]) -> Result<()>,
) {
    for i in 0..N {
        for len in [operands[i].1 - 1, operands[i].1 + 1] {
            let mut lens = operands.map(|(_, len)| len);
            lens[i] = len;
            let result = kernel(lens.map(|len| vec![0.0; len]));
            assert_eq!(operand(result), (name, operands[i].0), "{lens:?}");
        }
    }
}
