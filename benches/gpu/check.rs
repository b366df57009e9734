//! Checks of the values that the benchmarked kernels compute. A fast kernel with wrong values must
//! fail the benchmark.

use cortado::{
    Element, Error, Result,
    element::DType,
    op::{Gemm, Transpose},
};

/// Number of rows and of columns of `C` whose elements are checked.
const SAMPLES: usize = 8;

/// Fails with `name` and the position of the first wrong value, if `found` and `expected` differ by
/// more than `bound(expected)`, or have different lengths.
pub(crate) fn values(
    name: &str,
    found: &[f64],
    expected: &[f64],
    bound: impl Fn(f64) -> f64,
) -> Result<()> {
    // A NaN fails the comparison.
    let is_right = |(x, y): (&f64, &f64)| (x - y).abs() <= bound(*y);
    let position = match found.len() == expected.len() {
        true => found.iter().zip(expected).position(|pair| !is_right(pair)),
        false => Some(found.len().min(expected.len())),
    };
    let Some(position) = position else { return Ok(()) };
    let value = |values: &[f64]| values.get(position).map_or("none".into(), f64::to_string);
    let (found, expected) = (value(found), value(expected));
    let reason =
        format!("{name}: wrong value at position {position}: found {found}, expected {expected}");
    Err(Error::InvalidData(reason))
}

/// Compares sampled elements of `C = A·B` with sums in `f64`. If `tf32` is true, the tolerance
/// covers the rounding of the operands to TF32.
pub(crate) fn product<T: Element>(op: &Gemm<T>, [a, b, c]: [&[T]; 3], tf32: bool) -> Result<()> {
    assert!((op.trans_a, op.trans_b) == (Transpose::No, Transpose::No));
    let samples = |extent: usize| {
        let last = extent.saturating_sub(1);
        (0..SAMPLES).map(move |sample| sample * last / (SAMPLES - 1))
    };
    // Bounds of the relative errors from rounding the operands, the partial sums and the result.
    let operand = if tf32 { 2f64.powi(-9) } else { 0.0 };
    let sum = op.k as f64 * 2f64.powi(-24);
    let result = if T::DTYPE == DType::F32 { 2f64.powi(-24) } else { 2f64.powi(-8) };
    for (i, j) in samples(op.m).flat_map(|i| samples(op.n).map(move |j| (i, j))) {
        let terms = (0..op.k).map(|p| a[i * op.lda + p].to_f64() * b[p * op.ldb + j].to_f64());
        let (want, size) =
            terms.fold((0.0, 0.0), |(sum, size), term| (sum + term, size + f64::abs(term)));
        let name = format!("gemm {} × {} × {} at ({i}, {j})", op.m, op.n, op.k);
        let bound = |want: f64| size * (operand + sum) + want.abs() * result;
        values(&name, &[c[i * op.ldc + j].to_f64()], &[want], bound)?;
    }
    Ok(())
}
