//! [`Elementwise`](crate::kernel::Elementwise).

use super::{
    axes,
    vectors::{Case, maps, refused, refuses_lengths},
};
use crate::{
    conformance::{
        bench::Bench,
        check::{Check, checks},
        compare::{exact, same},
        failure::Verdict,
        operand::{Operand, Placement, unset},
        oracle::map,
        values::{Sum, Values, epsilon, wide},
    },
    device::Device,
    element::{DType, Element, bf16, f16},
    memory::{Src, View, ViewMut},
    op::{Axis, Binary, Unary},
};

pub(super) fn checks<D: Device>() -> Vec<Check<D>> {
    checks! {
        "fill" of "fill": fill();
        "unary_abs" of "unary": unary(&[Unary::Abs]);
        "unary_neg" of "unary": unary(&[Unary::Neg]);
        "unary_exp" of "unary": unary(&[Unary::Exp]);
        "unary_ln" of "unary": unary(&[Unary::Ln]);
        "unary_sqr" of "unary": unary(&[Unary::Sqr]);
        "unary_sqrt" of "unary": unary(&[Unary::Sqrt]);
        "unary_recip" of "unary": unary(&[Unary::Recip]);
        "unary_tanh" of "unary": unary(&[Unary::Tanh]);
        "unary_sigmoid" of "unary": unary(&[Unary::Sigmoid]);
        "unary_sign" of "unary": unary(&[Unary::Sign]);
        "unary_sign_bit" of "unary": unary(&[Unary::SignBit]);
        "unary_pow" of "unary": unary(&POW);
        "unary_add_scalar" of "unary": unary(&[Unary::AddScalar(0.5)]);
        "unary_scale" of "unary": unary(&[Unary::Scale(-2.0), Unary::Scale(0.375)]);
        "unary_relu" of "unary": unary(&RELU);
        "unary_clip" of "unary": unary(&CLIP);
        "binary_add" of "binary": binary(&[Binary::Add]);
        "binary_sub" of "binary": binary(&[Binary::Sub]);
        "binary_mul" of "binary": binary(&[Binary::Mul]);
        "binary_div" of "binary": binary(&[Binary::Div]);
        "binary_max" of "binary": binary(&[Binary::Max]);
        "binary_min" of "binary": binary(&[Binary::Min]);
        "binary_relu_grad" of "binary": binary(&RELU_GRAD);
        "binary_sigmoid_grad" of "binary": binary(&[Binary::SigmoidGrad]);
        "binary_tanh_grad" of "binary": binary(&[Binary::TanhGrad]);
        "broadcast" of "broadcast": broadcast();
        "convert" of "convert": convert();
    }
}

const RELU: [Unary<f64>; 2] = [Unary::Relu { slope: 0.0 }, Unary::Relu { slope: 0.25 }];
const CLIP: [Unary<f64>; 2] =
    [Unary::Clip { low: -0.5, high: 2.0 }, Unary::Clip { low: 1.0, high: -1.0 }];
const POW: [Unary<f64>; 6] = [
    Unary::Pow(0.0),
    Unary::Pow(1.0),
    Unary::Pow(2.0),
    Unary::Pow(3.0),
    Unary::Pow(-1.0),
    Unary::Pow(0.75),
];
const RELU_GRAD: [Binary<f64>; 2] =
    [Binary::ReluGrad { slope: 0.0 }, Binary::ReluGrad { slope: 0.25 }];

/// Where functions turn, overflow or stop being defined; and values all over their range.
const SPECIAL: [f64; 19] = [
    0.0,
    -0.0,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
    1e-3,
    -1e-3,
    0.1,
    -0.1,
    0.7,
    -0.7,
    1.5,
    -1.5,
    3.0,
    -3.0,
    7.5,
    -7.5,
    10.0,
    -10.0,
];

fn fill<T: Element, D: Device>(bench: &Bench<'_, D>) -> Verdict {
    let kernel = |case: &Case, _: View<'_, T, D>, y: ViewMut<'_, T, D>| {
        bench.device.fill(T::from_f64(case.alpha), y)
    };
    maps(bench, |_| true, &kernel, &|case, _, _| Sum::once(case.alpha))?;
    bench.all([-0.0, f64::NAN, f64::INFINITY, 1e-3], |&value: &f64| {
        let value = T::from_f64(value);
        let mut y = Operand::output(bench.device, &[T::default(); 9], Placement::CORNERS[1])?;
        bench.device.fill(value, y.view_mut()?)?;
        same("y", &y.finish()?, &[value; 9])
    })
}

fn unary<T: Element, D: Device>(bench: &Bench<'_, D>, ops: &[Unary<f64>]) -> Verdict {
    bench.all(ops, |&&op: &&Unary<f64>| {
        let (device, typed) = (bench.device, typed_unary(op));
        let from = |_: &Case, x: View<'_, T, D>, y: ViewMut<'_, T, D>| {
            device.unary(typed, Src::From(x), y)
        };
        maps(bench, |_| true, &from, &|_, x, _| map::unary(op, x))?;
        let in_place = |_: &Case, _: View<'_, T, D>, y: ViewMut<'_, T, D>| {
            device.unary(typed, Src::InPlace, y)
        };
        maps(bench, |_| false, &in_place, &|_, _, y| map::unary(op, y))?;
        refuses_lengths(bench, &from)?;
        let xs = SPECIAL.map(T::from_f64);
        let x = Operand::input(device, &xs, Placement::WHOLE)?;
        let mut y = Operand::output(device, &unset::<T>(xs.len()), Placement::WHOLE)?;
        device.unary(typed, Src::From(x.view()?), y.view_mut()?)?;
        let want: Vec<_> = wide(&xs).into_iter().map(|x| map::unary(op, x)).collect();
        Values::Reals.judge("y", &y.finish()?, &want)
    })
}

/// The function with its scalars, which are exact in all types, in the accumulator's.
fn typed_unary<A: Element>(op: Unary<f64>) -> Unary<A> {
    let typed = A::from_f64;
    match op {
        Unary::Abs => Unary::Abs,
        Unary::Neg => Unary::Neg,
        Unary::Exp => Unary::Exp,
        Unary::Ln => Unary::Ln,
        Unary::Sqr => Unary::Sqr,
        Unary::Sqrt => Unary::Sqrt,
        Unary::Recip => Unary::Recip,
        Unary::Tanh => Unary::Tanh,
        Unary::Sigmoid => Unary::Sigmoid,
        Unary::Sign => Unary::Sign,
        Unary::SignBit => Unary::SignBit,
        Unary::Pow(p) => Unary::Pow(typed(p)),
        Unary::AddScalar(c) => Unary::AddScalar(typed(c)),
        Unary::Scale(c) => Unary::Scale(typed(c)),
        Unary::Relu { slope } => Unary::Relu { slope: typed(slope) },
        Unary::Clip { low, high } => Unary::Clip { low: typed(low), high: typed(high) },
    }
}

fn typed_binary<A: Element>(op: Binary<f64>) -> Binary<A> {
    match op {
        Binary::Add => Binary::Add,
        Binary::Sub => Binary::Sub,
        Binary::Mul => Binary::Mul,
        Binary::Div => Binary::Div,
        Binary::Max => Binary::Max,
        Binary::Min => Binary::Min,
        Binary::ReluGrad { slope } => Binary::ReluGrad { slope: A::from_f64(slope) },
        Binary::SigmoidGrad => Binary::SigmoidGrad,
        Binary::TanhGrad => Binary::TanhGrad,
    }
}

fn binary<T: Element, D: Device>(bench: &Bench<'_, D>, ops: &[Binary<f64>]) -> Verdict {
    bench.all(ops, |&&op: &&Binary<f64>| {
        let (device, typed) = (bench.device, typed_binary(op));
        let in_place = |_: &Case, b: View<'_, T, D>, y: ViewMut<'_, T, D>| {
            device.binary(typed, Src::InPlace, b, y)
        };
        maps(bench, |_| false, &in_place, &|_, b, y| map::binary(op, y, b))?;
        refuses_lengths(bench, &in_place)?;
        let test = |case: &Case| {
            let mut draw = case.values.from(case.seed);
            let (xs, ys) = (draw.take::<T>(case.len), draw.take::<T>(case.len));
            let want = wide(&xs).into_iter().zip(wide(&ys)).map(|(a, b)| map::binary(op, a, b));
            let a = Operand::input(device, &xs, case.x)?;
            let b = Operand::input(device, &ys, case.y)?;
            let mut y = Operand::output(device, &unset::<T>(case.len), case.y)?;
            device.binary(typed, Src::From(a.view()?), b.view()?, y.view_mut()?)?;
            a.unchanged("a")?;
            b.unchanged("b")?;
            case.values.judge("y", &y.finish()?, &want.collect::<Vec<_>>())
        };
        bench.all(Case::corners(), test)?;
        bench.each(Case::any(), test)?;
        specials::<T, D>(bench, op)?;
        refuses_pairs::<T, D>(bench, typed)
    })
}

/// Tries an operation on every pair of special values.
fn specials<T: Element, D: Device>(bench: &Bench<'_, D>, op: Binary<f64>) -> Verdict {
    let pairs = SPECIAL.iter().flat_map(|&a| SPECIAL.map(|b| [a, b].map(T::from_f64)));
    let (xs, ys): (Vec<T>, Vec<T>) = pairs.map(|[a, b]| (a, b)).unzip();
    let a = Operand::input(bench.device, &xs, Placement::WHOLE)?;
    let b = Operand::input(bench.device, &ys, Placement::WHOLE)?;
    let mut y = Operand::output(bench.device, &unset::<T>(xs.len()), Placement::WHOLE)?;
    let typed = typed_binary(op);
    bench.device.binary(typed, Src::From(a.view()?), b.view()?, y.view_mut()?)?;
    let want = wide(&xs).into_iter().zip(wide(&ys)).map(|(a, b)| map::binary(op, a, b));
    Values::Reals.judge("y of special values", &y.finish()?, &want.collect::<Vec<_>>())
}

/// Tries that an operation refuses operands of which one is of another length.
fn refuses_pairs<T: Element, D: Device>(bench: &Bench<'_, D>, op: Binary<T::Acc>) -> Verdict {
    bench.all([[4, 3, 3], [3, 4, 3], [3, 3, 4]], |lengths: &[usize; 3]| {
        let [a, b, y] = lengths.map(|len| vec![T::from_f64(1.0); len]);
        let a = Operand::input(bench.device, &a, Placement::WHOLE)?;
        let b = Operand::input(bench.device, &b, Placement::WHOLE)?;
        let mut y = Operand::output(bench.device, &y, Placement::WHOLE)?;
        let result = bench.device.binary(op, Src::From(a.view()?), b.view()?, y.view_mut()?);
        refused(result, "operands of different lengths")?;
        y.unchanged("y")
    })
}

fn broadcast<T: Element, D: Device>(bench: &Bench<'_, D>) -> Verdict {
    let ops = [Binary::Add, Binary::Sub, Binary::Mul, Binary::Div, Binary::Max, Binary::Min];
    let grads = [Binary::SigmoidGrad, Binary::TanhGrad];
    let ops: Vec<Binary<f64>> = ops.into_iter().chain(RELU_GRAD).chain(grads).collect();
    let device = bench.device;
    let test = |case: &axes::Case| {
        let (axis, op) = (case.axis()?, ops[case.seed as usize % ops.len()]);
        let mut draw = case.values.from(case.seed);
        let (xs, bs) = (draw.take::<T>(axis.count()), draw.take::<T>(axis.extent));
        let b = Operand::input(device, &bs, case.x)?;
        let want = wide(&xs)
            .into_iter()
            .enumerate()
            .map(|(i, x)| map::binary(op, x, bs[i / axis.inner % axis.extent].to_f64()));
        let want: Vec<Sum> = want.collect();
        let a = Operand::input(device, &xs, case.x)?;
        let mut y = Operand::output(device, &unset::<T>(xs.len()), case.y)?;
        let from = Src::From(a.view()?);
        device.broadcast(typed_binary(op), &axis, from, b.view()?, y.view_mut()?)?;
        a.unchanged("a")?;
        b.unchanged("b")?;
        case.values.judge("y", &y.finish()?, &want)?;
        let mut y = Operand::output(device, &xs, case.y)?;
        device.broadcast(typed_binary(op), &axis, Src::InPlace, b.view()?, y.view_mut()?)?;
        case.values.judge("y in place", &y.finish()?, &want)
    };
    bench.all(axes::Case::corners(), test)?;
    bench.each(axes::Case::any(), test)?;
    let axis = Axis::new(2, 3, 4)?;
    bench.all([[23, 3, 24], [24, 4, 24], [24, 3, 25]], |lengths: &[usize; 3]| {
        let [a, b, y] = lengths.map(|len| vec![T::from_f64(1.0); len]);
        let a = Operand::input(device, &a, Placement::WHOLE)?;
        let b = Operand::input(device, &b, Placement::WHOLE)?;
        let mut y = Operand::output(device, &y, Placement::WHOLE)?;
        let a = Src::From(a.view()?);
        let result = device.broadcast(Binary::Add, &axis, a, b.view()?, y.view_mut()?);
        refused(result, "operands that do not fit the axis")?;
        y.unchanged("y")
    })
}

fn convert<T: Element, D: Device>(bench: &Bench<'_, D>) -> Verdict {
    convert_to::<T, f16, D>(bench)?;
    convert_to::<T, bf16, D>(bench)?;
    convert_to::<T, f32, D>(bench)?;
    convert_to::<T, f64, D>(bench)
}

fn convert_to<T: Element, U: Element, D: Device>(bench: &Bench<'_, D>) -> Verdict {
    let try_on = |xs: &[T], want: &[f64], from, to| {
        let x = Operand::input(bench.device, xs, from)?;
        let mut y = Operand::output(bench.device, &unset::<U>(xs.len()), to)?;
        bench.device.convert(x.view()?, y.view_mut()?)?;
        x.unchanged("x")?;
        exact(&format!("y ({})", U::DTYPE.name()), &y.finish()?, want)
    };
    let test = |case: &Case| {
        let xs = case.values.from(case.seed).take::<T>(case.len);
        try_on(&xs, &wide(&xs), case.x, case.y)
    };
    bench.all(Case::corners(), test)?;
    bench.each(Case::any(), test)?;
    // Ties go to even, and what lies a hair beside them does not: rounding twice would. No type
    // that is wider than `f64` has ties of it.
    let e = epsilon::<U>();
    let ties = [
        (f64::NAN, f64::NAN),
        (f64::INFINITY, f64::INFINITY),
        (1.0 + e / 2.0, 1.0),
        (1.0 + 1.5 * e, 1.0 + 2.0 * e),
        (1.0 + e / 2.0 * (1.0 + 1.0 / 1024.0), 1.0 + e),
        (1.0 + e / 2.0 * (1.0 - 1.0 / 1024.0), 1.0),
        ((1.0 + e / 2.0).next_up(), 1.0 + e),
        ((1.0 + e / 2.0).next_down(), 1.0),
    ];
    let kinds = if U::DTYPE == DType::F64 { 2 } else { ties.len() };
    let held = |&(x, _): &(f64, f64)| x.is_nan() || T::from_f64(x).to_f64() == x;
    let ties = ties.into_iter().take(kinds).filter(held).flat_map(|(x, y)| [(x, y), (-x, -y)]);
    let (xs, want): (Vec<_>, Vec<_>) = ties.map(|(x, y)| (T::from_f64(x), y)).unzip();
    try_on(&xs, &want, Placement::WHOLE, Placement::WHOLE)?;
    bench.all([(3, 4), (4, 3)], |&(xs, ys): &(usize, usize)| {
        let x = Operand::input(bench.device, &vec![T::from_f64(1.0); xs], Placement::WHOLE)?;
        let ys = vec![U::from_f64(2.0); ys];
        let mut y = Operand::output(bench.device, &ys, Placement::WHOLE)?;
        refused(bench.device.convert(x.view()?, y.view_mut()?), "different lengths")?;
        y.unchanged("y")
    })
}
