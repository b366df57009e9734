//! Checks shared by the tests of neural-network kernels.

use crate::{error::Result, host::testing::operand};

/// Returns the derivative of `f` for each element of `x`, from central differences.
pub(crate) fn numeric_gradient(x: &[f64], step: f64, f: impl Fn(&[f64]) -> f64) -> Vec<f64> {
    let shifted = |i: usize, step: f64| {
        let mut x = x.to_vec();
        x[i] += step;
        f(&x)
    };
    (0..x.len()).map(|i| (shifted(i, step) - shifted(i, -step)) / (2.0 * step)).collect()
}

pub(crate) fn expect_close(got: &[f64], want: &[f64], atol: f64, rtol: f64, case: &str) {
    assert_eq!(got.len(), want.len());
    for (i, (got, want)) in got.iter().zip(want).enumerate() {
        assert!(
            (got - want).abs() <= atol + rtol * want.abs(),
            "{case} at {i}: got {got}, expected {want}"
        );
    }
}

/// Calls `kernel` with each operand in turn, made one element too short or too long. The error must
/// name the kernel and that operand.
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
