//! [`Elementwise`](crate::kernel::Elementwise).

use super::{
    axis_cases, harness,
    vector_cases::{Case, maps, refused, refuses_lengths},
};
use crate::{
    conformance::{
        runner::CheckRunner,
        check::{Check, checks},
        compare::{exact, same},
        failure::Verdict,
        operand::{Operand, Placement, unset},
        oracle::elementwise,
        values::{Expected, Values, epsilon, wide},
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
        "unary_softplus" of "unary": unary(&[Unary::Softplus]);
        "unary_sign" of "unary": unary(&[Unary::Sign]);
        "unary_sign_bit" of "unary": unary(&[Unary::SignBit]);
        "unary_pow" of "unary": unary(&POWERS.map(Unary::Pow));
        "unary_add_scalar" of "unary": unary(&[Unary::AddScalar(0.5)]);
        "unary_scale" of "unary": unary(&[Unary::Scale(-2.0), Unary::Scale(0.375)]);
        "unary_threshold" of "unary": unary(&[Unary::Threshold(1.0)]);
        "unary_relu" of "unary": unary(&RELU);
        "unary_elu" of "unary": unary(&[Unary::Elu { alpha: 0.25 }]);
        "unary_swish" of "unary": unary(&[Unary::Swish { beta: 1.0 }, Unary::Swish { beta: -0.5 }]);
        "unary_clip" of "unary": unary(&CLIP);
        "unary_exp_affine" of "unary": unary(&[Unary::ExpAffine { scale: -0.5, shift: 0.25 }]);
        "unary_ln_affine" of "unary": unary(&[LN_AFFINE]);
        "unary_pow_affine" of "unary": unary(&pow_affine());
        "binary_add" of "binary": binary(&[Binary::Add]);
        "binary_sub" of "binary": binary(&[Binary::Sub]);
        "binary_mul" of "binary": binary(&[Binary::Mul]);
        "binary_mul_scaled" of "binary": binary(&[Binary::MulScaled(-0.75)]);
        "binary_mul_negative" of "binary": binary(&[Binary::MulNegative]);
        "binary_div" of "binary": binary(&[Binary::Div]);
        "binary_div_or_zero" of "binary": binary(&[Binary::DivOrZero]);
        "binary_max" of "binary": binary(&[Binary::Max]);
        "binary_min" of "binary": binary(&[Binary::Min]);
        "binary_greater" of "binary": binary(&[Binary::Greater]);
        "binary_greater_equal" of "binary": binary(&[Binary::GreaterEqual]);
        "binary_prelu" of "binary": binary(&[Binary::Prelu]);
        "binary_prelu_slope" of "binary": binary(&[Binary::PreluSlope]);
        "binary_abs_grad" of "binary": binary(&[Binary::AbsGrad]);
        "binary_relu_grad" of "binary": binary(&RELU_GRAD);
        "binary_elu_grad" of "binary": binary(&ELU_GRAD);
        "binary_sigmoid_grad" of "binary": binary(&[Binary::SigmoidGrad]);
        "binary_tanh_grad" of "binary": binary(&[Binary::TanhGrad]);
        "binary_softplus_grad" of "binary": binary(&[Binary::SoftplusGrad]);
        "binary_swish_grad" of "binary": binary(&[Binary::SwishGrad { beta: 0.5 }]);
        "binary_clip_grad" of "binary": binary(&[Binary::ClipGrad { low: -0.5, high: 2.0 }]);
        "binary_ln_affine_grad" of "binary": binary(&[LN_AFFINE_GRAD]);
        "binary_pow_affine_grad" of "binary": binary(&pow_affine_grad());
        "broadcast" of "broadcast": broadcast();
        "affine" of "affine": affine();
        "convert" of "convert": convert();
    }
}

const RELU: [Unary<f64>; 2] = [Unary::Relu { slope: 0.0 }, Unary::Relu { slope: 0.25 }];
const CLIP: [Unary<f64>; 2] =
    [Unary::Clip { low: -0.5, high: 2.0 }, Unary::Clip { low: 1.0, high: -1.0 }];
const LN_AFFINE: Unary<f64> = Unary::LnAffine { scale: 0.5, shift: 2.0, factor: -1.5 };
const LN_AFFINE_GRAD: Binary<f64> = Binary::LnAffineGrad { scale: 0.5, shift: 2.0, factor: -1.5 };
/// Exponents with and without short cuts, and of either sign.
const POWERS: [f64; 6] = [0.0, 1.0, 2.0, 3.0, -1.0, 0.75];
const ELU_GRAD: [Binary<f64>; 2] =
    [Binary::EluGrad { alpha: 0.25 }, Binary::EluGrad { alpha: -0.25 }];
const RELU_GRAD: [Binary<f64>; 2] =
    [Binary::ReluGrad { slope: 0.0 }, Binary::ReluGrad { slope: 0.25 }];

fn pow_affine() -> [Unary<f64>; 6] {
    POWERS.map(|power| Unary::PowAffine { scale: 0.5, shift: 4.0, power })
}

fn pow_affine_grad() -> [Binary<f64>; 6] {
    POWERS.map(|power| Binary::PowAffineGrad { scale: 0.5, shift: 4.0, power })
}

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

fn fill<T: Element, D: Device>(bench: &CheckRunner<'_, D>) -> Verdict {
    let kernel = |case: &Case, _: View<'_, T, D>, y: ViewMut<'_, T, D>| {
        bench.device.fill(T::from_f64(case.alpha), y)
    };
    maps(bench, |_| true, &kernel, &|case, _, _| Expected::once(case.alpha))?;
    bench.all([-0.0, f64::NAN, f64::INFINITY, 1e-3], |&value: &f64| {
        let value = T::from_f64(value);
        let mut y = Operand::output(bench.device, &[T::default(); 9], Placement::CORNERS[1])?;
        bench.device.fill(value, y.view_mut()?)?;
        same("y", &y.finish()?, &[value; 9])
    })
}

fn unary<T: Element, D: Device>(bench: &CheckRunner<'_, D>, ops: &[Unary<f64>]) -> Verdict {
    bench.all(ops, |&&op: &&Unary<f64>| {
        let (device, typed) = (bench.device, op.cast());
        let from = |_: &Case, x: View<'_, T, D>, y: ViewMut<'_, T, D>| {
            device.unary(typed, Src::View(x), y)
        };
        maps(bench, |_| true, &from, &|_, x, _| elementwise::unary(op, x))?;
        let in_place = |_: &Case, _: View<'_, T, D>, y: ViewMut<'_, T, D>| {
            device.unary(typed, Src::InPlace, y)
        };
        maps(bench, |_| false, &in_place, &|_, _, y| elementwise::unary(op, y))?;
        refuses_lengths(bench, &from)?;
        let xs = SPECIAL.map(T::from_f64);
        let x = Operand::input(device, &xs, Placement::WHOLE)?;
        let mut y = Operand::output(device, &unset::<T>(xs.len()), Placement::WHOLE)?;
        device.unary(typed, Src::View(x.view()?), y.view_mut()?)?;
        let want: Vec<_> = wide(&xs).into_iter().map(|x| elementwise::unary(op, x)).collect();
        Values::Reals.judge("y", &y.finish()?, &want)
    })
}

fn binary<T: Element, D: Device>(bench: &CheckRunner<'_, D>, ops: &[Binary<f64>]) -> Verdict {
    bench.all(ops, |&&op: &&Binary<f64>| {
        let (device, typed) = (bench.device, op.cast());
        let in_place = |_: &Case, b: View<'_, T, D>, y: ViewMut<'_, T, D>| {
            device.binary(typed, Src::InPlace, b, y)
        };
        maps(bench, |_| false, &in_place, &|_, b, y| elementwise::binary(op, y, b))?;
        refuses_lengths(bench, &in_place)?;
        let test = |case: &Case| {
            let mut draw = case.values.from(case.seed);
            let (xs, ys) = (draw.take::<T>(case.len), draw.take::<T>(case.len));
            let want = wide(&xs).into_iter().zip(wide(&ys)).map(|(a, b)| elementwise::binary(op, a, b));
            let a = Operand::input(device, &xs, case.x)?;
            let b = Operand::input(device, &ys, case.y)?;
            let mut y = Operand::output(device, &unset::<T>(case.len), case.y)?;
            device.binary(typed, Src::View(a.view()?), b.view()?, y.view_mut()?)?;
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
fn specials<T: Element, D: Device>(bench: &CheckRunner<'_, D>, op: Binary<f64>) -> Verdict {
    let pairs = SPECIAL.iter().flat_map(|&a| SPECIAL.map(|b| [a, b].map(T::from_f64)));
    let (xs, ys): (Vec<T>, Vec<T>) = pairs.map(|[a, b]| (a, b)).unzip();
    let a = Operand::input(bench.device, &xs, Placement::WHOLE)?;
    let b = Operand::input(bench.device, &ys, Placement::WHOLE)?;
    let mut y = Operand::output(bench.device, &unset::<T>(xs.len()), Placement::WHOLE)?;
    let typed = op.cast();
    bench.device.binary(typed, Src::View(a.view()?), b.view()?, y.view_mut()?)?;
    let want = wide(&xs).into_iter().zip(wide(&ys)).map(|(a, b)| elementwise::binary(op, a, b));
    Values::Reals.judge("y of special values", &y.finish()?, &want.collect::<Vec<_>>())
}

/// Tries that an operation refuses operands of which one is of another length.
fn refuses_pairs<T: Element, D: Device>(bench: &CheckRunner<'_, D>, op: Binary<T::Acc>) -> Verdict {
    bench.all([[4, 3, 3], [3, 4, 3], [3, 3, 4]], |lengths: &[usize; 3]| {
        let [a, b, y] = lengths.map(|len| vec![T::from_f64(1.0); len]);
        let a = Operand::input(bench.device, &a, Placement::WHOLE)?;
        let b = Operand::input(bench.device, &b, Placement::WHOLE)?;
        let mut y = Operand::output(bench.device, &y, Placement::WHOLE)?;
        let result = bench.device.binary(op, Src::View(a.view()?), b.view()?, y.view_mut()?);
        refused(result, "operands of different lengths")?;
        y.unchanged("y")
    })
}

fn broadcast<T: Element, D: Device>(bench: &CheckRunner<'_, D>) -> Verdict {
    let ops = [Binary::Add, Binary::Sub, Binary::Mul, Binary::Div, Binary::Max, Binary::Min];
    let grads = [Binary::Prelu, Binary::PreluSlope, Binary::SigmoidGrad, Binary::TanhGrad];
    let ops: Vec<Binary<f64>> = ops.into_iter().chain(RELU_GRAD).chain(grads).collect();
    let device = bench.device;
    let test = |case: &axis_cases::Case| {
        let (axis, op) = (case.axis()?, ops[case.seed as usize % ops.len()]);
        let mut draw = case.values.from(case.seed);
        let (xs, bs) = (draw.take::<T>(axis.count()), draw.take::<T>(axis.extent));
        let b = Operand::input(device, &bs, case.x)?;
        let want = wide(&xs)
            .into_iter()
            .enumerate()
            .map(|(i, x)| elementwise::binary(op, x, bs[i / axis.inner % axis.extent].to_f64()));
        let want: Vec<Expected> = want.collect();
        let a = Operand::input(device, &xs, case.x)?;
        let mut y = Operand::output(device, &unset::<T>(xs.len()), case.y)?;
        let from = Src::View(a.view()?);
        device.broadcast(op.cast(), &axis, from, b.view()?, y.view_mut()?)?;
        a.unchanged("a")?;
        b.unchanged("b")?;
        case.values.judge("y", &y.finish()?, &want)?;
        let mut y = Operand::output(device, &xs, case.y)?;
        device.broadcast(op.cast(), &axis, Src::InPlace, b.view()?, y.view_mut()?)?;
        case.values.judge("y in place", &y.finish()?, &want)
    };
    bench.all(axis_cases::Case::corners(), test)?;
    bench.each(axis_cases::Case::any(), test)?;
    let axis = Axis::new(2, 3, 4)?;
    bench.all([[23, 3, 24], [24, 4, 24], [24, 3, 25]], |lengths: &[usize; 3]| {
        let [a, b, y] = lengths.map(|len| vec![T::from_f64(1.0); len]);
        let a = Operand::input(device, &a, Placement::WHOLE)?;
        let b = Operand::input(device, &b, Placement::WHOLE)?;
        let mut y = Operand::output(device, &y, Placement::WHOLE)?;
        let a = Src::View(a.view()?);
        let result = device.broadcast(Binary::Add, &axis, a, b.view()?, y.view_mut()?);
        refused(result, "operands that do not fit the axis")?;
        y.unchanged("y")
    })
}

fn affine<T: Element, D: Device>(bench: &CheckRunner<'_, D>) -> Verdict {
    let device = bench.device;
    let test = |case: &axis_cases::Case| {
        let (axis, mut draw) = (case.axis()?, case.values.from(case.seed));
        let x = draw.take::<T>(axis.count());
        let (scale, shift) = (draw.take::<T>(axis.extent), draw.take::<T>(axis.extent));
        let want = x.iter().enumerate().map(|(i, x)| {
            let e = i / axis.inner % axis.extent;
            [x.to_f64() * scale[e].to_f64(), shift[e].to_f64()].into_iter().collect()
        });
        let want: Vec<Expected> = want.collect();
        let (x_at, before) = (("x", &x[..], case.x), unset(x.len()));
        let operands = [("scale", &scale[..], case.y), ("shift", &shift[..], case.x)];
        let [scale, shift] = operands;
        let y = ("y", &before[..], case.y);
        let [got] = harness::call(bench, [x_at, scale, shift], [y], |[x, scale, shift], [y]| {
            device.affine(&axis, x.into(), scale, shift, y)
        })?;
        case.values.judge("y", &got, &want)?;
        let y = ("y", &x[..], case.y);
        let [got] = harness::call(bench, [scale, shift], [y], |[scale, shift], [y]| {
            device.affine(&axis, Src::InPlace, scale, shift, y)
        })?;
        case.values.judge("y in place", &got, &want)
    };
    bench.all(axis_cases::Case::corners(), test)?;
    bench.each(axis_cases::Case::any(), test)?;
    let axis = Axis::new(2, 3, 4)?;
    let given = [("x", 24), ("scale", 3), ("shift", 3)];
    harness::refuses_lengths::<T, D, _, _>(bench, given, [("y", 24)], |[x, scale, shift], [y]| {
        device.affine(&axis, x.into(), scale, shift, y)
    })?;
    let given = [("scale", 3), ("shift", 3)];
    harness::refuses_lengths::<T, D, _, _>(bench, given, [("y", 24)], |[scale, shift], [y]| {
        device.affine(&axis, Src::InPlace, scale, shift, y)
    })
}

fn convert<T: Element, D: Device>(bench: &CheckRunner<'_, D>) -> Verdict {
    convert_to::<T, f16, D>(bench)?;
    convert_to::<T, bf16, D>(bench)?;
    convert_to::<T, f32, D>(bench)?;
    convert_to::<T, f64, D>(bench)
}

fn convert_to<T: Element, U: Element, D: Device>(bench: &CheckRunner<'_, D>) -> Verdict {
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
