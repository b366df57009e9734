//! Conformance checks of the kernel family [`Elementwise`](crate::kernel::Elementwise).

use super::{cases::AxisCase, prelude::*};
use crate::{
    conformance::{expected::epsilon, oracle::elementwise as oracle},
    device::AnyDevice,
    element::{DType, bf16, f16},
    op::{Binary, Unary},
};

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
    "convert_integers" of "convert_integers": convert_integers();
}

const RELU: [Unary<f64>; 2] = [Unary::Relu { slope: 0.0 }, Unary::Relu { slope: 0.25 }];
const CLIP: [Unary<f64>; 2] =
    [Unary::Clip { low: -0.5, high: 2.0 }, Unary::Clip { low: 1.0, high: -1.0 }];
const LN_AFFINE: Unary<f64> = Unary::LnAffine { scale: 0.5, shift: 2.0, factor: -1.5 };
const LN_AFFINE_GRAD: Binary<f64> = Binary::LnAffineGrad { scale: 0.5, shift: 2.0, factor: -1.5 };
/// Exponents with which the checks call the power function. Kernels have special code for some of
/// the exponents.
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

/// Returns arguments at which elementwise functions have extrema, overflow or are undefined, and
/// arguments between these points.
fn special_values<T: Element>() -> Vec<T> {
    let values = [0.0, 1e-3, 0.1, 0.7, 1.5, 3.0, 7.5, 10.0, f64::INFINITY];
    let signed_values = values.into_iter().flat_map(|x| [x, -x]);
    signed_values.chain([f64::NAN]).map(T::from_f64).collect()
}

fn fill<T: Element>(runner: &CheckRunner<'_>) -> Verdict {
    let device = runner.device;
    runner.try_kernel(
        &vector_cases().without_refused().and_large(Vector::LARGE, COPIES, &[]),
        |case, _| ([], [("y", unset::<T>(case.len))]),
        |case, [], [y]| device.fill(T::from_f64(case.alpha), y),
        |case, _, _| [ExpectedOutput::Nearest(vec![case.alpha; case.len])],
    )?;
    runner.try_cases([-0.0, f64::NAN, f64::INFINITY, 1e-3], |&value: &f64| {
        let value = T::from_f64(value);
        let mut y = Operand::new(device, &[T::default(); 9], Placement::CORNERS[1])?;
        device.fill(value, y.view_mut()?)?;
        expect_bits("y", &y.values()?, &[value; 9])
    })
}

fn unary<T: Element>(runner: &CheckRunner<'_>, ops: &[Unary<f64>]) -> Verdict {
    let device = runner.device;
    let oracle = |op, x: &[f64]| x.iter().map(|&x| oracle::unary(op, x)).collect::<Vec<_>>();
    runner.try_cases(ops, |&&op: &&Unary<f64>| {
        let typed_op = op.cast();
        let mut cases = vector_cases().without_refused();
        // Only two functions run on large operands, because cases with large operands are slow.
        if matches!(op, Unary::Relu { .. } | Unary::Exp) {
            cases = cases.and_large(Vector::LARGE, COPIES, &[]);
        }
        runner.try_in_place(
            &cases,
            |case, setup| (("x", setup.stream().take::<T>(case.len)), [], "y"),
            |_, x, [], y| device.unary(typed_op, x, y),
            |_, x, []| ExpectedOutput::Sums(oracle(op, x)),
        )?;
        for len in [1, 4, 1024] {
            runner.check_lengths::<T, T, 1, 1>([("x", len)], [("y", len)], |[x], [y]| {
                device.unary(typed_op, x.into(), y)
            })?;
        }
        let x = special_values::<T>();
        let y = ("y of special values", &unset(x.len())[..]);
        let [got] = runner.call(&CaseSetup::WHOLE, [("x", &x)], [y], |[x], [y]| {
            device.unary(typed_op, x.into(), y)
        })?;
        let (wide_x, name) = (wide(&x), Output::from(y.0));
        expect_within(name.of(&[("x", &wide_x)]), &got, &oracle(op, &wide_x))?;
        // The sign of a zero result is specified for `Abs` and `Neg` only.
        let (zeros, want) = match op {
            Unary::Abs => ([-0.0, 0.0], [0.0, 0.0]),
            Unary::Neg => ([-0.0, 0.0], [0.0, -0.0]),
            _ => return Ok(()),
        };
        let (zeros, want) = (zeros.map(T::from_f64), want.map(T::from_f64));
        let y = ("y of −0 and +0", &unset(2)[..]);
        let [got] = runner.call(&CaseSetup::WHOLE, [("x", &zeros)], [y], |[x], [y]| {
            device.unary(typed_op, x.into(), y)
        })?;
        expect_bits(y.0, &got, &want)
    })
}

fn binary<T: Element>(runner: &CheckRunner<'_>, ops: &[Binary<f64>]) -> Verdict {
    let device = runner.device;
    let oracle = |op, a: &[f64], b: &[f64]| {
        a.iter().zip(b).map(|(&a, &b)| oracle::binary(op, a, b)).collect::<Vec<_>>()
    };
    runner.try_cases(ops, |&&op: &&Binary<f64>| {
        let typed_op = op.cast();
        let mut cases = vector_cases();
        // Only two functions run on large operands, because cases with large operands are slow.
        if matches!(op, Binary::Add | Binary::SigmoidGrad) {
            cases = cases.and_large(Vector::LARGE, COPIES, &[]);
        }
        runner.try_in_place(
            &cases,
            |case, setup| {
                let [a, b] = setup.operands::<T, 2>([("a", case.len), ("b", case.len)]);
                (a, [b], "y")
            },
            |_, a, [b], y| device.binary(typed_op, a, b, y),
            |_, a, [b]| ExpectedOutput::Sums(oracle(op, a, b)),
        )?;
        let x = special_values::<T>();
        let (a, b): (Vec<T>, Vec<T>) =
            x.iter().flat_map(|a| x.iter().map(move |b| (*a, *b))).unzip();
        let y = ("y of special values", &unset(a.len())[..]);
        let inputs = [("a", &a[..]), ("b", &b)];
        let [got] = runner.call(&CaseSetup::WHOLE, inputs, [y], |[a, b], [y]| {
            device.binary(typed_op, a.into(), b, y)
        })?;
        let (a, b, name) = (wide(&a), wide(&b), Output::from(y.0));
        expect_within(name.of(&[("a", &a), ("b", &b)]), &got, &oracle(op, &a, &b))
    })
}

/// Adds a large case to the cases of a kernel that computes along an axis: more than 2²⁰ elements
/// in more than 65,535 rows. `shared` holds the names of the operands with one element per index of
/// the axis.
fn large_axis(cases: Cases<AxisCase>, shared: &'static [&'static str]) -> Cases<AxisCase> {
    let rows =
        |copies| AxisCase { axis: Axis { outer: copies * PERIOD, extent: 5, inner: 1 }, beta: 0.0 };
    let copies = COPIES.div_ceil(5);
    cases.and_large([rows(1), rows(copies)], copies, shared)
}

fn broadcast<T: Element>(runner: &CheckRunner<'_>) -> Verdict {
    let ops = [Binary::Add, Binary::Sub, Binary::Mul, Binary::Div, Binary::Max, Binary::Min];
    let grads = [Binary::Prelu, Binary::PreluSlope, Binary::SigmoidGrad, Binary::TanhGrad];
    let ops: Vec<Binary<f64>> = ops.into_iter().chain(RELU_GRAD).chain(grads).collect();
    runner.try_in_place(
        &large_axis(axis_cases(), &["b"]).with(&ops),
        |(case, _), setup| {
            let lengths = [("a", case.axis.count()), ("b", case.axis.extent)];
            let [a, b] = setup.operands::<T, 2>(lengths);
            (a, [b], "y")
        },
        |(case, op), a, [b], y| runner.device.broadcast(op.cast(), &case.axis, a, b, y),
        |(AxisCase { axis, .. }, op), a, [b]| {
            let of = |(i, &a)| oracle::binary(*op, a, b[i / axis.inner % axis.extent]);
            ExpectedOutput::Sums(a.iter().enumerate().map(of).collect())
        },
    )
}

fn affine<T: Element>(runner: &CheckRunner<'_>) -> Verdict {
    runner.try_in_place(
        &large_axis(axis_cases(), &["scale", "shift"]),
        |AxisCase { axis, .. }, setup| {
            let lengths = [("x", axis.count()), ("scale", axis.extent), ("shift", axis.extent)];
            let [x, scale, shift] = setup.operands::<T, 3>(lengths);
            (x, [scale, shift], "y")
        },
        |case, x, [scale, shift], y| runner.device.affine(&case.axis, x, scale, shift, y),
        |AxisCase { axis, .. }, x, [scale, shift]| {
            let sum = |(i, x): (usize, &f64)| {
                let e = i / axis.inner % axis.extent;
                Expected::from_iter([x * scale[e], shift[e]])
            };
            ExpectedOutput::Sums(x.iter().enumerate().map(sum).collect())
        },
    )
}

fn convert<T: Element>(runner: &CheckRunner<'_>) -> Verdict {
    convert_to::<T, f16>(runner)?;
    convert_to::<T, bf16>(runner)?;
    convert_to::<T, f32>(runner)?;
    convert_to::<T, f64>(runner)
}

fn convert_to<T: Element, U: Element>(runner: &CheckRunner<'_>) -> Verdict {
    let kernel = |[x]: [View<'_, T, AnyDevice>; 1], [y]: [ViewMut<'_, U, AnyDevice>; 1]| {
        runner.device.convert(x, y)
    };
    let check_conversion = |x: &[T], want: &[f64], setup: &CaseSetup| {
        let y = unset::<U>(x.len());
        let [got] = runner.call(setup, [("x", x)], [("y", &y)], kernel)?;
        expect_nearest(&format!("y ({})", U::DTYPE.name()), &got, want)
    };
    runner.try_all(&vector_cases(), |case, setup| {
        let x = setup.stream().take::<T>(case.len);
        check_conversion(&x, &wide(&x), setup)
    })?;
    // The operands include ties, which must round to even, and numbers next to a tie, which double
    // rounding would round in the wrong direction. A conversion to `f64` has no ties, because only
    // a wider type could represent a number halfway between two `f64` numbers.
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
    let tie_count = if U::DTYPE == DType::F64 { 2 } else { ties.len() };
    let is_representable = |&(x, _): &(f64, f64)| x.is_nan() || T::from_f64(x).to_f64() == x;
    let ties = ties
        .into_iter()
        .take(tie_count)
        .filter(is_representable)
        .flat_map(|(x, y)| [(x, y), (-x, -y)]);
    let (x, want): (Vec<_>, Vec<_>) = ties.map(|(x, y)| (T::from_f64(x), y)).unzip();
    check_conversion(&x, &want, &CaseSetup::WHOLE)?;
    let x = Values::Integers.stream(1).take::<T>(PERIOD);
    let want = ExpectedOutput::Nearest(wide(&x));
    let (x, y) = ([(("x", &x[..]), COPIES)], [(("y", &unset::<U>(PERIOD)[..]), COPIES)]);
    if T::DTYPE == DType::F16 {
        runner.try_large(x, y, kernel, [want])?;
    }
    runner.check_lengths([("x", 4)], [("y", 4)], kernel)
}

fn convert_integers<T: Element>(runner: &CheckRunner<'_>) -> Verdict {
    // `f32` and narrower types cannot represent most large integers of these cases, so the
    // conversion must round.
    convert_from::<i32, T>(runner, [-1, 16_777_217, -33_554_434, i32::MIN, i32::MAX])?;
    convert_from::<u32, T>(runner, [1, 16_777_217, 33_554_434, 1 << 31, u32::MAX])
}

/// Checks the conversion of integers of type `N`, including the integers in `large`.
fn convert_from<N, T: Element>(runner: &CheckRunner<'_>, large: [N; 5]) -> Verdict
where
    N: Storable + From<u16> + Into<f64>,
{
    let kernel = |[x]: [View<'_, N, AnyDevice>; 1], [y]: [ViewMut<'_, T, AnyDevice>; 1]| {
        runner.device.convert_integers(x, y)
    };
    runner.try_all(&vector_cases(), |case, setup| {
        let digits = setup.stream().indices(9, case.len);
        let integer = |(i, digit): (usize, usize)| {
            if digit < 2 { large[i % large.len()] } else { N::from(digit as u16 * 100) }
        };
        let x: Vec<N> = digits.into_iter().enumerate().map(integer).collect();
        let want: Vec<f64> = x.iter().map(|&x| x.into()).collect();
        let [got] = runner.call(setup, [("x", &x)], [("y", &unset::<T>(x.len()))], kernel)?;
        expect_nearest("y", &got, &want)
    })?;
    let x: Vec<N> = (0..PERIOD).map(|i| N::from(i as u16)).collect();
    let want = ExpectedOutput::Nearest(x.iter().map(|&x| x.into()).collect());
    let (x, y) = ([(("x", &x[..]), COPIES)], [(("y", &unset::<T>(PERIOD)[..]), COPIES)]);
    runner.try_large(x, y, kernel, [want])?;
    runner.check_lengths([("x", 4)], [("y", 4)], kernel)
}
