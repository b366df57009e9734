//! What the tests of dense kernels share: operands, thread counts and naive products.

use crate::{
    element::Element,
    error::{Error, Result},
    host::threads::Workers,
    op::{RngKey, Transpose},
};
use rand_core::Rng;

/// Integers from -4 to 4: exact in every element type, as are short sums of their products.
pub(crate) fn integers<T: Element>(tag: u64, len: usize) -> Vec<T> {
    let mut rng = RngKey::new(7).child(tag).rng();
    (0..len).map(|_| T::from_f64(f64::from(rng.next_u32() % 9) - 4.0)).collect()
}

/// Numbers in [-1, 1).
pub(crate) fn fractions<T: Element>(tag: u64, len: usize) -> Vec<T> {
    let mut rng = RngKey::new(8).child(tag).rng();
    (0..len).map(|_| T::from_f64(f64::from(rng.next_u32()) / f64::from(1u32 << 31) - 1.0)).collect()
}

/// One, two and three threads.
pub(crate) fn threads() -> [Workers; 3] {
    [1, 2, 3].map(|count| Workers::new(count).unwrap())
}

pub(crate) fn wide<T: Element>(x: &[T]) -> Vec<f64> {
    x.iter().map(|x| x.to_f64()).collect()
}

/// What `T` holds of exact results: a kernel rounds once.
pub(crate) fn rounded<T: Element>(v: &[f64]) -> Vec<f64> {
    v.iter().map(|&v| T::from_f64(v).to_f64()).collect()
}

/// Element (i, j) of `op(A)`.
pub(crate) fn at<T: Element>(a: &[T], trans: Transpose, lda: usize, i: usize, j: usize) -> f64 {
    match trans {
        Transpose::No => a[i * lda + j].to_f64(),
        Transpose::Yes => a[j * lda + i].to_f64(),
    }
}

/// Kernel and operand of a length error.
pub(crate) fn operand(result: Result<()>) -> (&'static str, &'static str) {
    match result {
        Err(Error::Length { op, operand, .. }) => (op, operand),
        other => panic!("{other:?}"),
    }
}

/// Lists generic checks as tests for every element type.
macro_rules! for_each_element {
    ($($check:ident),*) => {
        mod f32 { $(#[test] fn $check() { super::$check::<f32>() })* }
        mod f64 { $(#[test] fn $check() { super::$check::<f64>() })* }
        mod f16 { $(#[test] fn $check() { super::$check::<crate::element::f16>() })* }
        mod bf16 { $(#[test] fn $check() { super::$check::<crate::element::bf16>() })* }
    };
}
pub(crate) use for_each_element;
