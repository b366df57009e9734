//! Tests of elementwise functions at every SIMD level, on several threads and at block boundaries.

use super::*;
use crate::{
    host::{
        elementwise::broadcast::{affine, broadcast, broadcast_in_place},
        simd::level::with_each_simd_level,
        testing::{for_each_element, fractions, nan, operand, threads},
    },
    op::Axis,
};
use std::cell::RefCell;

/// Returns unary functions whose results are not exact but rounded.
fn inexact_unary<A: Element + Float>() -> [Unary<A>; 13] {
    let c = |v| A::from_f64(v);
    [
        Unary::Exp,
        Unary::Ln,
        Unary::Sqrt,
        Unary::Recip,
        Unary::Tanh,
        Unary::Sigmoid,
        Unary::Softplus,
        Unary::Elu { alpha: c(0.5) },
        Unary::Swish { beta: c(-0.5) },
        Unary::Pow(c(0.75)),
        Unary::ExpAffine { scale: c(-0.5), shift: c(0.25) },
        Unary::LnAffine { scale: c(0.5), shift: c(2.0), factor: c(-0.5) },
        Unary::PowAffine { scale: c(0.5), shift: c(0.25), power: c(0.75) },
    ]
}

fn elementwise_results_do_not_depend_on_the_simd_level<T: Element>() {
    let (w, x) = (Workers::sequential(), fractions::<T>(12, CHUNK + 9));
    for op in inexact_unary::<T::Acc>() {
        let results = RefCell::new(Vec::new());
        with_each_simd_level(|| {
            let (mut y, mut z) = (nan::<T>(x.len()), nan::<T>(x.len()));
            unary(&w, op, &x, &mut y).unwrap();
            binary(&w, Binary::Div, &y, &x, &mut z).unwrap();
            results.borrow_mut().push(crate::cast::cast_slice::<T, u8>(&[y, z].concat()).to_vec());
        });
        assert!(results.into_inner().windows(2).all(|pair| pair[0] == pair[1]), "{}", op.name());
    }
}

fn elementwise_results_do_not_depend_on_the_number_of_threads<T: Element>() {
    let len = 2 * GRAIN + 77;
    let (x, b) = (fractions::<T>(5, len), fractions::<T>(6, 700));
    let axis = Axis::new(len / 700, 700, 1).unwrap();
    let results = threads().map(|workers| {
        let (mut filled, mut y, mut z) = (nan::<T>(len), nan::<T>(len), x.clone());
        fill(&workers, T::from_f64(3.0), &mut filled).unwrap();
        assert!(filled.iter().all(|y| y.to_f64() == 3.0));
        unary(&workers, Unary::Sigmoid, &x, &mut y).unwrap();
        unary_in_place(&workers, Unary::Sqr, &mut z).unwrap();
        let mut sum = nan::<T>(len);
        binary(&workers, Binary::Add, &y, &z, &mut sum).unwrap();
        binary_in_place(&workers, Binary::Mul, &x, &mut sum).unwrap();
        broadcast_in_place(&workers, Binary::Sub, &axis, &b, &mut sum[..axis.count()]).unwrap();
        crate::cast::cast_slice::<T, u8>(&sum).to_vec()
    });
    assert_eq!(results[0], results[1]);
    assert_eq!(results[0], results[2]);
}

for_each_element!(
    elementwise_results_do_not_depend_on_the_simd_level,
    elementwise_results_do_not_depend_on_the_number_of_threads
);

#[test]
fn elementwise_errors_name_the_operand() {
    let w = Workers::sequential();
    let (x, mut y) = ([1.0f32; 6], [0.0; 5]);
    let axis = Axis::new(1, 2, 3).unwrap();
    assert_eq!(operand(unary(&w, Unary::Exp, &x, &mut y)), ("unary_exp", "y"));
    assert_eq!(operand(binary(&w, Binary::Add, &x, &x, &mut y)), ("binary_add", "y"));
    assert_eq!(operand(binary(&w, Binary::Add, &x, &x[1..], &mut y)), ("binary_add", "b"));
    assert_eq!(operand(binary_in_place(&w, Binary::Mul, &x, &mut y)), ("binary_mul", "b"));
    assert_eq!(operand(broadcast(&w, Binary::Max, &axis, &x, &x[..2], &mut y)), ("broadcast", "y"));
    assert_eq!(operand(broadcast(&w, Binary::Max, &axis, &x[1..], &x, &mut y)), ("broadcast", "a"));
    assert_eq!(operand(broadcast(&w, Binary::Max, &axis, &x, &x, &mut y)), ("broadcast", "b"));
    assert_eq!(
        operand(broadcast_in_place(&w, Binary::Sub, &axis, &x[..2], &mut y)),
        ("broadcast", "y")
    );
    assert_eq!(operand(broadcast_in_place(&w, Binary::Sub, &axis, &x, &mut y)), ("broadcast", "b"));
    assert_eq!(operand(affine(&w, &axis, &x[1..], &x[..2], &x[..2], &mut y)), ("affine", "x"));
    assert_eq!(operand(affine(&w, &axis, &x, &x, &x[..2], &mut y)), ("affine", "scale"));
    assert_eq!(operand(affine(&w, &axis, &x, &x[..2], &x, &mut y)), ("affine", "shift"));
    assert_eq!(operand(affine(&w, &axis, &x, &x[..2], &x[..2], &mut y)), ("affine", "y"));
}

/// The operands are long enough that the kernels use non-temporal stores.
#[test]
fn elementwise_results_of_long_operands_match_the_definition() {
    let w = Workers::sequential();
    let len = (8 << 20) / size_of::<f32>() + 5001;
    let (a, b) = (fractions::<f32>(1, len), fractions::<f32>(2, len));
    let (mut y, mut z) = (vec![0.0; len], vec![0.0; len]);
    unary(&w, Unary::Sqr, &a, &mut y).unwrap();
    binary(&w, Binary::Sub, &a, &b, &mut z).unwrap();
    for (i, (a, b)) in a.iter().zip(&b).enumerate() {
        assert_eq!((y[i], z[i]), (a * a, a - b), "element {i}");
    }
}

/// One NaN in a block makes all elements of that block take the slower code path for special
/// arguments.
#[test]
fn elementwise_results_do_not_depend_on_neighbouring_elements() {
    let w = Workers::sequential();
    let ops = [
        (Unary::Exp, -86.0, 86.0),
        (Unary::Sigmoid, -86.0, 86.0),
        (Unary::Softplus, -86.0, 86.0),
        (Unary::Ln, 1e-37, 3e4),
        (Unary::Pow(0.75), 1e-37, 3e4),
        (Unary::Pow(-3.0), 1e-10, 3e4),
        (Unary::Pow(f32::INFINITY), 0.5, 2.0),
    ];
    for (op, low, high) in ops {
        let x: Vec<f32> = (0..BLOCK * 200)
            .map(|i| low + (high - low) * (i * 7919 % 12_799) as f32 / 12_798.0)
            .chain([low, high, 1.0].repeat(BLOCK))
            .collect();
        let mut with_nan = x.clone();
        with_nan.iter_mut().step_by(BLOCK / 2).for_each(|x| *x = f32::NAN);
        let (mut y, mut z) = (vec![0.0; x.len()], vec![0.0; x.len()]);
        unary(&w, op, &x, &mut y).unwrap();
        unary(&w, op, &with_nan, &mut z).unwrap();
        for ((x, y), z) in with_nan.iter().zip(y).zip(z) {
            assert!(
                x.is_nan() || y.to_bits() == z.to_bits(),
                "{op:?} of {x:e} is {y:e}, but {z:e} in a block with NaN"
            );
        }
    }
}
