use super::*;
use crate::host::testing::{for_each_element, fractions, integers, operand, rounded, threads};
use std::iter::zip;

const LENGTHS: [usize; 6] = [0, 1, 7, CHUNK, CHUNK + 1, 2 * CHUNK + 19];

fn nan<T: Element>(len: usize) -> Vec<T> {
    vec![T::from_f64(f64::NAN); len]
}

fn f64s<T: Element>(x: &[T]) -> Vec<f64> {
    x.iter().map(|x| x.to_f64()).collect()
}

/// Formulas in `f64`, written out anew.
fn oracle<A: Element + Float>(op: Unary<A>, x: f64) -> f64 {
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
        Unary::Sign if x == 0.0 => 0.0,
        Unary::Sign => x.signum(),
        Unary::SignBit => f64::from(u8::from(x.is_sign_negative())),
        Unary::Pow(p) => x.powf(p.to_f64()),
        Unary::AddScalar(c) => x + c.to_f64(),
        Unary::Scale(c) => c.to_f64() * x,
        Unary::Relu { slope } => x.max(0.0) + slope.to_f64() * x.min(0.0),
        Unary::Clip { low, high } => x.clamp(low.to_f64(), high.to_f64()),
    }
}

fn exact_unary<A: Element + Float>() -> [Unary<A>; 11] {
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
        Unary::Relu { slope: c(0.0) },
        Unary::Relu { slope: c(0.25) },
        Unary::Clip { low: c(-1.0), high: c(2.0) },
    ]
}

fn small_integers_are_exact<T: Element>() {
    let workers = Workers::sequential();
    for len in LENGTHS {
        let x = integers::<T>(1, len);
        for op in exact_unary::<T::Acc>() {
            let want = rounded::<T>(&f64s(&x).iter().map(|&x| oracle(op, x)).collect::<Vec<_>>());
            let mut y = nan(len);
            unary(&workers, op, &x, &mut y).unwrap();
            assert_eq!(f64s(&y), want, "{}", op.name());
            let mut y = x.clone();
            unary_in_place(&workers, op, &mut y).unwrap();
            assert_eq!(f64s(&y), want, "{}", op.name());
        }
    }
}

fn transcendental_functions_are_close<T: Element>() {
    let workers = Workers::sequential();
    let ulp = match T::DTYPE.name() {
        "f16" => 2f64.powi(-11),
        "bf16" => 2f64.powi(-8),
        "f32" => 2f64.powi(-22),
        _ => 2f64.powi(-51),
    };
    let x: Vec<T> = f64s(&fractions::<T>(2, CHUNK + 9))
        .into_iter()
        .map(|x| T::from_f64(2.0 * x + 2.01))
        .collect();
    for op in [
        Unary::Exp,
        Unary::Ln,
        Unary::Sqrt,
        Unary::Recip,
        Unary::Tanh,
        Unary::Sigmoid,
        Unary::Pow(T::acc(0.75)),
    ] {
        let mut y = nan(x.len());
        unary(&workers, op, &x, &mut y).unwrap();
        for (x, y) in zip(f64s(&x), f64s(&y)) {
            let want = oracle(op, x);
            let error = (y - want).abs() / want.abs().max(0.1);
            assert!(error <= ulp, "{} of {x}: {y}, not {want}", op.name());
        }
        let mut in_place = x.clone();
        unary_in_place(&workers, op, &mut in_place).unwrap();
        assert_eq!(f64s(&in_place), f64s(&y));
    }
}

fn binary_oracle<A: Element + Float>(op: Binary<A>, a: f64, b: f64) -> f64 {
    match op {
        Binary::Add => a + b,
        Binary::Sub => a - b,
        Binary::Mul => a * b,
        Binary::Div => a / b,
        Binary::Max => a.max(b),
        Binary::Min => a.min(b),
        Binary::ReluGrad { slope } => a * if b > 0.0 { 1.0 } else { slope.to_f64() },
        Binary::SigmoidGrad => a * b * (1.0 - b),
        Binary::TanhGrad => a * (1.0 - b * b),
    }
}

fn all_binary<A: Element + Float>() -> [Binary<A>; 9] {
    [
        Binary::Add,
        Binary::Sub,
        Binary::Mul,
        Binary::Div,
        Binary::Max,
        Binary::Min,
        Binary::ReluGrad { slope: A::from_f64(0.5) },
        Binary::SigmoidGrad,
        Binary::TanhGrad,
    ]
}

/// Integers but for the divisor, whose inverses are exact.
fn operands<T: Element>(op: Binary<T::Acc>, len: usize, other: usize) -> (Vec<T>, Vec<T>) {
    let b = integers::<T>(4, other).into_iter().map(|b| match op {
        Binary::Div => T::from_f64(2f64.powi(b.to_f64() as i32)),
        _ => b,
    });
    (integers(3, len), b.collect())
}

fn two_operands<T: Element>() {
    let workers = Workers::sequential();
    for (len, op) in LENGTHS.into_iter().flat_map(|len| all_binary().map(|op| (len, op))) {
        let (a, b) = operands::<T>(op, len, len);
        let pairs = zip(f64s(&a), f64s(&b));
        let want = rounded::<T>(&pairs.map(|(a, b)| binary_oracle(op, a, b)).collect::<Vec<_>>());
        let mut y = nan(len);
        binary(&workers, op, &a, &b, &mut y).unwrap();
        assert_eq!(f64s(&y), want, "{}", op.name());
        let mut y = a.clone();
        binary_in_place(&workers, op, &b, &mut y).unwrap();
        assert_eq!(f64s(&y), want, "{}", op.name());
    }
}

fn along_an_axis<T: Element>() {
    let extents = [(3, 5, 1), (7, 300, 1), (2, 1500, 1), (2, 3, 4), (1, 900, 3), (2, 3, 1700)];
    for (outer, extent, inner) in extents.into_iter().chain([(0, 3, 2), (2, 0, 2), (2, 3, 0)]) {
        let axis = Axis::new(outer, extent, inner).unwrap();
        for op in all_binary::<T::Acc>() {
            let (a, b) = operands::<T>(op, axis.count(), extent);
            let want: Vec<_> = (0..axis.count())
                .map(|j| binary_oracle(op, a[j].to_f64(), b[j / inner % extent].to_f64()))
                .collect();
            let want = rounded::<T>(&want);
            for workers in &threads()[..2] {
                let mut y = nan(axis.count());
                broadcast(workers, op, &axis, &a, &b, &mut y).unwrap();
                assert_eq!(f64s(&y), want, "{} {axis:?}", op.name());
                let mut y = a.clone();
                broadcast_in_place(workers, op, &axis, &b, &mut y).unwrap();
                assert_eq!(f64s(&y), want, "{} {axis:?}", op.name());
            }
        }
    }
}

fn any_number_of_threads<T: Element>() {
    let len = 2 * TASK + 77;
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
    small_integers_are_exact,
    transcendental_functions_are_close,
    two_operands,
    along_an_axis,
    any_number_of_threads
);

#[test]
fn special_values_are_those_of_the_definition() {
    let workers = Workers::sequential();
    let x =
        [f32::NAN, -0.0, 0.0, f32::INFINITY, f32::NEG_INFINITY, f32::MIN_POSITIVE, -3.5].repeat(9);
    for op in exact_unary::<f32>() {
        let mut y = vec![7.0; x.len()];
        unary(&workers, op, &x, &mut y).unwrap();
        assert!(zip(&x, &y).all(|(&x, y)| {
            let want = op.eval(x);
            want.to_bits() == y.to_bits() || want.is_nan() && y.is_nan()
        }));
    }
    let reversed: Vec<_> = x.iter().rev().copied().collect();
    for op in all_binary::<f32>() {
        let mut y = vec![7.0; x.len()];
        binary(&workers, op, &x, &reversed, &mut y).unwrap();
        assert!(zip(zip(&x, &reversed), &y).all(|((&a, &b), y)| {
            let want = op.eval(a, b);
            want.to_bits() == y.to_bits() || want.is_nan() && y.is_nan()
        }));
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
}
