//! Sums, differences and products of two operands in vectors of 128 bits.

use crate::{element::Element, op::Binary};
use num_traits::Float;

/// `yᵢ ← f(aᵢ, bᵢ)` in vectors of 128 bits. Returns false, and leaves `y` unchanged, unless `op` is a
/// sum, a difference or a product. `a`, `b` and `y` have the same length.
///
/// The vectors have 128 bits because the loops are compiled for the compilation target and not for a
/// SIMD level: x86-64 without further features has vectors of 128 bits.
pub(crate) fn binary_run_128<A: Element + Float>(
    op: Binary<A>,
    a: &[A],
    b: &[A],
    y: &mut [A],
) -> bool {
    match op {
        Binary::Add => zip(a, b, y, |a, b| a + b),
        Binary::Sub => zip(a, b, y, |a, b| a - b),
        Binary::Mul => zip(a, b, y, |a, b| a * b),
        _ => return false,
    }
    true
}

#[inline(always)]
fn zip<A: Copy>(a: &[A], b: &[A], y: &mut [A], f: impl Fn(A, A) -> A) {
    for ((y, &a), &b) in y.iter_mut().zip(a).zip(b) {
        *y = f(a, b);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::elementwise::map::binary_run;

    fn check<A: Element + Float>() {
        let a: Vec<A> = (0..37).map(|i| A::from_f64(0.3 * f64::from(i) - 5.0)).collect();
        let b: Vec<A> = a.iter().map(|x| A::from_f64(1.7) - *x * *x).collect();
        for op in [Binary::Add, Binary::Sub, Binary::Mul] {
            let (mut y, mut expected) = (vec![A::zero(); 37], vec![A::zero(); 37]);
            assert!(binary_run_128(op, &a, &b, &mut y));
            binary_run(op, &a, &b, &mut expected);
            assert_eq!(y, expected, "{op:?}");
        }
        let mut y = vec![A::one(); 37];
        assert!(!binary_run_128(Binary::Div, &a, &b, &mut y));
        assert_eq!(y, [A::one(); 37]);
    }

    #[test]
    fn vectors_of_128_bits_give_the_results_of_wider_vectors() {
        check::<f32>();
        check::<f64>();
    }
}
