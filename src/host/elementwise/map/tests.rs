use super::*;
use crate::{
    host::{
        elementwise::broadcast::{affine, affine_in_place, broadcast, broadcast_in_place},
        simd::level::with_each_simd_level,
        testing::{for_each_element, fractions, integers, nan, operand, rounded, threads, wide},
    },
    op::Axis,
};
use std::{cell::RefCell, iter::zip};

const LENGTHS: [usize; 6] = [0, 1, 7, CHUNK, CHUNK + 1, 2 * CHUNK + 19];

/// Evaluates the function at `x` in `f64`.
fn unary_oracle<A: Element + Float>(op: Unary<A>, x: f64) -> f64 {
    match op {
        Unary::Abs => x.abs(),
        Unary::Neg => -x,
        Unary::Exp => x.exp(),
        Unary::Ln => x.ln(),
        Unary::Sqr => x * x,
        Unary::Sqrt => x.sqrt(),
        Unary::Recip => x.recip(),
        Unary::Tanh => x.tanh(),
        Unary::Sigmoid => (1.0 + (-x).exp()).recip(),
        Unary::Softplus => x.exp().ln_1p(),
        Unary::Sign if x == 0.0 => 0.0,
        Unary::Sign => x.signum(),
        Unary::SignBit => f64::from(u8::from(x.is_sign_negative())),
        Unary::Pow(p) => x.powf(p.to_f64()),
        Unary::AddScalar(c) => x + c.to_f64(),
        Unary::Scale(c) => c.to_f64() * x,
        Unary::Relu { slope } => x.max(0.0) + slope.to_f64() * x.min(0.0),
        Unary::Threshold(t) => f64::from(u8::from(x > t.to_f64())),
        Unary::Elu { alpha } => x.max(0.0) + alpha.to_f64() * (x.min(0.0).exp() - 1.0),
        Unary::Swish { beta } => x * (1.0 + (-beta.to_f64() * x).exp()).recip(),
        Unary::Clip { low, high } => x.clamp(low.to_f64(), high.to_f64()),
        Unary::ExpAffine { scale, shift } => (scale.to_f64() * x + shift.to_f64()).exp(),
        Unary::LnAffine { scale, shift, factor } => {
            factor.to_f64() * (scale.to_f64() * x + shift.to_f64()).ln()
        }
        Unary::PowAffine { scale, shift, power } => {
            (scale.to_f64() * x + shift.to_f64()).powf(power.to_f64())
        }
    }
}

/// Returns functions whose results for small integers are exact.
fn exact_unary<A: Element + Float>() -> [Unary<A>; 15] {
    let c = |v| A::from_f64(v);
    [
        Unary::Abs,
        Unary::Neg,
        Unary::Sqr,
        Unary::Sign,
        Unary::SignBit,
        Unary::Pow(c(2.0)),
        Unary::AddScalar(c(3.0)),
        Unary::Scale(c(-2.0)),
        Unary::Threshold(c(1.0)),
        Unary::PowAffine { scale: c(0.5), shift: c(1.0), power: c(0.0) },
        Unary::PowAffine { scale: c(0.5), shift: c(1.0), power: c(1.0) },
        Unary::PowAffine { scale: c(0.5), shift: c(1.0), power: c(2.0) },
        Unary::Relu { slope: c(0.0) },
        Unary::Relu { slope: c(0.25) },
        Unary::Clip { low: c(-1.0), high: c(2.0) },
    ]
}

fn unary_of_small_integers_is_exact<T: Element>() {
    let workers = Workers::sequential();
    for len in LENGTHS {
        let x = integers::<T>(1, len);
        for op in exact_unary::<T::Acc>() {
            let exact: Vec<_> = wide(&x).into_iter().map(|x| unary_oracle(op, x)).collect();
            let (mut y, mut in_place) = (nan(len), x.clone());
            unary(&workers, op, &x, &mut y).unwrap();
            unary_in_place(&workers, op, &mut in_place).unwrap();
            for y in [y, in_place] {
                assert_eq!(wide(&y), rounded::<T>(&exact), "{}", op.name());
            }
        }
    }
}

/// Returns functions with rounding errors.
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

fn results_do_not_depend_on_the_simd_level<T: Element>() {
    let (w, x) = (Workers::sequential(), fractions::<T>(12, CHUNK + 9));
    for op in inexact_unary::<T::Acc>() {
        let results = RefCell::new(Vec::new());
        with_each_simd_level(|| {
            let (mut y, mut z) = (nan::<T>(x.len()), nan::<T>(x.len()));
            unary(&w, op, &x, &mut y).unwrap();
            binary(&w, Binary::Div, &y, &x, &mut z).unwrap();
            results.borrow_mut().push(bytemuck::cast_slice::<T, u8>(&[y, z].concat()).to_vec());
        });
        assert!(results.into_inner().windows(2).all(|pair| pair[0] == pair[1]), "{}", op.name());
    }
}

fn elementary_functions_are_close_to_the_definition<T: Element>() {
    let workers = Workers::sequential();
    let tolerance = match T::DTYPE.name() {
        "f16" => 2f64.powi(-11),
        "bf16" => 2f64.powi(-8),
        "f32" => 2f64.powi(-22),
        _ => 2f64.powi(-51),
    };
    let x = fractions::<T>(2, CHUNK + 9);
    let x: Vec<T> = x.iter().map(|x| T::from_f64(2.0 * x.to_f64() + 2.01)).collect();
    for op in inexact_unary::<T::Acc>() {
        let mut y = nan(x.len());
        unary(&workers, op, &x, &mut y).unwrap();
        for (x, y) in zip(wide(&x), wide(&y)) {
            let expected = unary_oracle(op, x);
            let error = (y - expected).abs() / expected.abs().max(0.1);
            assert!(error <= tolerance, "{} of {x}: got {y}, expected {expected}", op.name());
        }
        let mut in_place = x.clone();
        unary_in_place(&workers, op, &mut in_place).unwrap();
        assert_eq!(wide(&in_place), wide(&y));
    }
}

/// Evaluates the function of `a` and `b` in `f64`.
fn binary_oracle<A: Element + Float>(op: Binary<A>, a: f64, b: f64) -> f64 {
    match op {
        Binary::Add => a + b,
        Binary::Sub => a - b,
        Binary::Mul => a * b,
        Binary::Div => a / b,
        Binary::MulScaled(c) => c.to_f64() * a * b,
        Binary::MulNegative => a * b.min(0.0),
        Binary::DivOrZero => a / b,
        Binary::Greater => f64::from(u8::from(a > b)),
        Binary::GreaterEqual => f64::from(u8::from(a >= b)),
        Binary::Prelu => a.max(0.0) + b * a.min(0.0),
        Binary::PreluSlope => [b, 1.0][usize::from(a > 0.0)],
        Binary::AbsGrad => a * [0.0, b.signum()][usize::from(b != 0.0)],
        Binary::EluGrad { alpha } => a * [b + alpha.to_f64(), 1.0][usize::from(b > 0.0)],
        Binary::SoftplusGrad => a * (1.0 - (-b).exp()),
        Binary::SwishGrad { beta } => {
            let (x, s) = (beta.to_f64() * b, (1.0 + (-beta.to_f64() * b).exp()).recip());
            a * (s + x * s * (1.0 - s))
        }
        Binary::ClipGrad { low, high } => {
            a * f64::from(u8::from((low.to_f64()..=high.to_f64()).contains(&b)))
        }
        Binary::LnAffineGrad { scale, shift, factor } => {
            a * factor.to_f64() * scale.to_f64() / (scale.to_f64() * b + shift.to_f64())
        }
        Binary::PowAffineGrad { scale, shift, power } => {
            let sum = scale.to_f64() * b + shift.to_f64();
            a * power.to_f64() * scale.to_f64() * sum.powf(power.to_f64() - 1.0)
        }
        Binary::Max => a.max(b),
        Binary::Min => a.min(b),
        Binary::ReluGrad { slope } => a * if b > 0.0 { 1.0 } else { slope.to_f64() },
        Binary::SigmoidGrad => a * b * (1.0 - b),
        Binary::TanhGrad => a * (1.0 - b * b),
    }
}

/// Returns functions whose results for small integers are exact.
fn exact_binary<A: Element + Float>() -> [Binary<A>; 21] {
    let c = |v| A::from_f64(v);
    [
        Binary::Add,
        Binary::Sub,
        Binary::Mul,
        Binary::MulScaled(c(-0.5)),
        Binary::MulNegative,
        Binary::Div,
        Binary::DivOrZero,
        Binary::Max,
        Binary::Min,
        Binary::Greater,
        Binary::GreaterEqual,
        Binary::Prelu,
        Binary::PreluSlope,
        Binary::AbsGrad,
        Binary::ReluGrad { slope: c(0.5) },
        Binary::EluGrad { alpha: c(0.5) },
        Binary::ClipGrad { low: c(-1.0), high: c(2.0) },
        Binary::PowAffineGrad { scale: c(0.5), shift: c(1.0), power: c(1.0) },
        Binary::PowAffineGrad { scale: c(0.5), shift: c(1.0), power: c(2.0) },
        Binary::SigmoidGrad,
        Binary::TanhGrad,
    ]
}

/// Returns integer operands. Divisors are powers of two, so that quotients are exact.
fn operands<T: Element>(op: Binary<T::Acc>, a_len: usize, b_len: usize) -> (Vec<T>, Vec<T>) {
    let b = integers::<T>(4, b_len).into_iter().map(|b| match op {
        Binary::Div | Binary::DivOrZero => T::from_f64(2f64.powi(b.to_f64() as i32)),
        _ => b,
    });
    (integers(3, a_len), b.collect())
}

fn binary_of_small_integers_is_exact<T: Element>() {
    let workers = Workers::sequential();
    for (len, op) in LENGTHS.into_iter().flat_map(|len| exact_binary().map(|op| (len, op))) {
        let (a, b) = operands::<T>(op, len, len);
        let exact: Vec<_> = zip(wide(&a), wide(&b)).map(|(a, b)| binary_oracle(op, a, b)).collect();
        let (mut y, mut in_place) = (nan(len), a.clone());
        binary(&workers, op, &a, &b, &mut y).unwrap();
        binary_in_place(&workers, op, &b, &mut in_place).unwrap();
        for y in [y, in_place] {
            assert_eq!(wide(&y), rounded::<T>(&exact), "{}", op.name());
        }
    }
}

fn derivatives_are_close_to_the_definition<T: Element>() {
    let (workers, c) = (Workers::sequential(), T::acc);
    let tolerance = match T::DTYPE.name() {
        "f16" => 2f64.powi(-11),
        "bf16" => 2f64.powi(-8),
        "f32" => 2f64.powi(-21),
        _ => 2f64.powi(-50),
    };
    let (a, b) = (fractions::<T>(7, CHUNK + 9), fractions::<T>(8, CHUNK + 9));
    for op in [
        Binary::SoftplusGrad,
        Binary::SwishGrad { beta: c(1.5) },
        Binary::LnAffineGrad { scale: c(0.5), shift: c(2.0), factor: c(-0.5) },
        Binary::PowAffineGrad { scale: c(0.5), shift: c(2.0), power: c(-0.75) },
    ] {
        let mut y = nan(a.len());
        binary(&workers, op, &a, &b, &mut y).unwrap();
        for (y, (a, b)) in zip(wide(&y), zip(wide(&a), wide(&b))) {
            let expected = binary_oracle(op, a, b);
            let error = (y - expected).abs() / expected.abs().max(0.1);
            let name = op.name();
            assert!(error <= tolerance, "{name} of {a}, {b}: got {y}, expected {expected}");
        }
        let mut in_place = a.clone();
        binary_in_place(&workers, op, &b, &mut in_place).unwrap();
        assert_eq!(wide(&in_place), wide(&y));
    }
    let decreasing = Binary::EluGrad { alpha: c(-0.5) };
    let (a, b) = ([T::from_f64(3.0)], [T::from_f64(0.0)]);
    let mut y = nan::<T>(1);
    binary(&workers, decreasing, &a, &b, &mut y).unwrap();
    assert_eq!(wide(&y), [-1.5]);
}

fn broadcasts_of_small_integers_are_exact<T: Element>() {
    let extents = [(3, 5, 1), (7, 300, 1), (2, 1500, 1), (2, 3, 4), (1, 900, 3), (2, 3, 1700)];
    for (outer, extent, inner) in extents.into_iter().chain([(0, 3, 2), (2, 0, 2), (2, 3, 0)]) {
        let axis = Axis::new(outer, extent, inner).unwrap();
        for op in exact_binary::<T::Acc>() {
            let (a, b) = operands::<T>(op, axis.count(), extent);
            let exact: Vec<_> = (0..axis.count())
                .map(|j| binary_oracle(op, a[j].to_f64(), b[j / inner % extent].to_f64()))
                .collect();
            for workers in &threads()[..2] {
                let (mut y, mut in_place) = (nan(axis.count()), a.clone());
                broadcast(workers, op, &axis, &a, &b, &mut y).unwrap();
                broadcast_in_place(workers, op, &axis, &b, &mut in_place).unwrap();
                for y in [y, in_place] {
                    assert_eq!(wide(&y), rounded::<T>(&exact), "{} {axis:?}", op.name());
                }
            }
        }
    }
}

fn affine_of_small_integers_is_exact<T: Element>() {
    for (outer, extent, inner) in [(3, 5, 1), (2, 1500, 1), (2, 3, 4), (2, 3, 1700), (2, 0, 2)] {
        let axis = Axis::new(outer, extent, inner).unwrap();
        let x = integers::<T>(9, axis.count());
        let (scale, shift) = (integers::<T>(10, extent), integers::<T>(11, extent));
        let exact = |j: usize| {
            let e = j / inner % extent;
            x[j].to_f64() * scale[e].to_f64() + shift[e].to_f64()
        };
        let expected = rounded::<T>(&(0..axis.count()).map(exact).collect::<Vec<_>>());
        for workers in &threads()[..2] {
            let (mut y, mut in_place) = (nan(axis.count()), x.clone());
            affine(workers, &axis, &x, &scale, &shift, &mut y).unwrap();
            affine_in_place(workers, &axis, &scale, &shift, &mut in_place).unwrap();
            assert!([y, in_place].iter().all(|y| wide(y) == expected), "{axis:?}");
        }
    }
}

fn results_do_not_depend_on_the_number_of_threads<T: Element>() {
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
        bytemuck::cast_slice::<T, u8>(&sum).to_vec()
    });
    assert_eq!(results[0], results[1]);
    assert_eq!(results[0], results[2]);
}

for_each_element!(
    unary_of_small_integers_is_exact,
    elementary_functions_are_close_to_the_definition,
    binary_of_small_integers_is_exact,
    derivatives_are_close_to_the_definition,
    broadcasts_of_small_integers_are_exact,
    affine_of_small_integers_is_exact,
    results_do_not_depend_on_the_simd_level,
    results_do_not_depend_on_the_number_of_threads
);

#[test]
fn special_values_match_the_definition() {
    let same = |x: f32, y: f32| x.to_bits() == y.to_bits() || x.is_nan() && y.is_nan();
    let workers = Workers::sequential();
    let x =
        [f32::NAN, -0.0, 0.0, f32::INFINITY, f32::NEG_INFINITY, f32::MIN_POSITIVE, -3.5].repeat(9);
    for op in exact_unary::<f32>() {
        let mut y = vec![7.0; x.len()];
        unary(&workers, op, &x, &mut y).unwrap();
        assert!(zip(&x, &y).all(|(&x, &y)| same(op.eval(x), y)), "{}", op.name());
    }
    let reversed: Vec<_> = x.iter().rev().copied().collect();
    for op in exact_binary::<f32>() {
        let mut y = vec![7.0; x.len()];
        binary(&workers, op, &x, &reversed, &mut y).unwrap();
        let mut results = zip(zip(&x, &reversed), &y);
        assert!(results.all(|((&a, &b), &y)| same(op.eval(a, b), y)), "{}", op.name());
    }
}

#[test]
fn errors_name_the_operand() {
    let w = Workers::sequential();
    let (x, mut y) = ([1.0f32; 6], [0.0; 5]);
    let axis = Axis::new(1, 2, 3).unwrap();
    assert_eq!(operand(unary(&w, Unary::Exp, &x, &mut y)), ("exp", "y"));
    assert_eq!(operand(binary(&w, Binary::Add, &x, &x, &mut y)), ("add", "y"));
    assert_eq!(operand(binary(&w, Binary::Add, &x, &x[1..], &mut y)), ("add", "b"));
    assert_eq!(operand(binary_in_place(&w, Binary::Mul, &x, &mut y)), ("mul", "b"));
    assert_eq!(operand(broadcast(&w, Binary::Max, &axis, &x, &x[..2], &mut y)), ("max", "y"));
    assert_eq!(operand(broadcast(&w, Binary::Max, &axis, &x[1..], &x, &mut y)), ("max", "a"));
    assert_eq!(operand(broadcast(&w, Binary::Max, &axis, &x, &x, &mut y)), ("max", "b"));
    assert_eq!(operand(broadcast_in_place(&w, Binary::Sub, &axis, &x[..2], &mut y)), ("sub", "y"));
    assert_eq!(operand(broadcast_in_place(&w, Binary::Sub, &axis, &x, &mut y)), ("sub", "b"));
    assert_eq!(operand(affine(&w, &axis, &x[1..], &x[..2], &x[..2], &mut y)), ("affine", "x"));
    assert_eq!(operand(affine(&w, &axis, &x, &x, &x[..2], &mut y)), ("affine", "scale"));
    assert_eq!(operand(affine(&w, &axis, &x, &x[..2], &x, &mut y)), ("affine", "shift"));
    assert_eq!(operand(affine(&w, &axis, &x, &x[..2], &x[..2], &mut y)), ("affine", "y"));
}

/// The operands are long enough for non-temporal stores.
#[test]
fn long_operands_match_the_definition() {
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

/// A NaN makes its whole block take the slower path for special arguments.
#[test]
fn results_do_not_depend_on_neighbouring_elements() {
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
            assert!(x.is_nan() || y.to_bits() == z.to_bits(), "{op:?} of {x:e}: {y:e}, {z:e}");
        }
    }
}
