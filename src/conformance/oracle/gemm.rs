//! Oracles for GEMM and GEMV.

use crate::{
    conformance::expected::Expected,
    element::Element,
    op::{Gemm, Gemv, Transpose},
};

/// Returns element (`row`, `column`) of `op(X)` for an `X` that is stored with leading dimension
/// `ld`.
fn matrix_element(x: &[f64], ld: usize, trans: Transpose, row: usize, column: usize) -> f64 {
    match trans {
        Transpose::No => x[row * ld + column],
        Transpose::Yes => x[column * ld + row],
    }
}

/// Computes `C ← α·op(A)·op(B) + β·C`. The elements between and after the rows of `C` do not
/// change.
pub(crate) fn gemm<T: Element>(op: &Gemm<T>, a: &[f64], b: &[f64], c: &[f64]) -> Vec<Expected> {
    let (alpha, beta) = (op.alpha.to_f64(), op.beta.to_f64());
    let mut want: Vec<_> = c.iter().map(|&c| Expected::exact(c)).collect();
    for i in 0..op.m {
        for j in 0..op.n {
            let c = &mut want[i * op.ldc + j];
            let term = |p| {
                let (a, b) = (
                    matrix_element(a, op.lda, op.trans_a, i, p),
                    matrix_element(b, op.ldb, op.trans_b, p, j),
                );
                alpha * a * b
            };
            let terms = if alpha == 0.0 { 0 } else { op.k };
            let old = (beta != 0.0).then_some(beta * c.value);
            *c = (0..terms).map(term).chain(old).collect();
        }
    }
    want
}

/// Computes `y ← α·op(A)·x + β·y`. `A` and `x` are not read if α is 0.
pub(crate) fn gemv<T: Element>(op: &Gemv<T>, a: &[f64], x: &[f64], y: &[f64]) -> Vec<Expected> {
    let (alpha, beta) = (op.alpha.to_f64(), op.beta.to_f64());
    let sum = |(i, y): (usize, &f64)| {
        let term = |(j, x): (usize, &f64)| alpha * matrix_element(a, op.lda, op.trans, i, j) * x;
        let old = (beta != 0.0).then_some(beta * y);
        let terms = if alpha == 0.0 { &[] } else { x };
        terms.iter().enumerate().map(term).chain(old).collect()
    };
    y.iter().enumerate().map(sum).collect()
}
