//! Conformance checks of the kernel family [`Reductions`](crate::kernel::Reductions).

use super::{cases::AxisCase, large::expect_copies, prelude::*};
use crate::{
    conformance::{oracle::reductions as oracle, values::repeated},
    device::AnyDevice,
    element::DType,
    error::Error,
    op::{Reduce, TopK},
};

checks! {
    "reduce_sum" of "reduce": check_reduction(Reduce::Sum);
    "reduce_mean" of "reduce": check_reduction(Reduce::Mean);
    "reduce_max" of "reduce": check_reduction(Reduce::Max);
    "reduce_min" of "reduce": check_reduction(Reduce::Min);
    "reduce_abs_sum" of "reduce": check_reduction(Reduce::AbsSum);
    "reduce_sum_sq" of "reduce": check_reduction(Reduce::SumSq);
    "sum_to_axis" of "sum_to_axis": sum_to_axis();
    "dot_to_axis" of "dot_to_axis": dot_to_axis();
    "arg_max" of "arg_max": arg_max();
    "top_k" of "top_k": top_k();
}

/// Returns pseudo-random elements to reduce. If the seed of the case is even, some elements are
/// NaN.
fn with_nans<T: Element>(axis: &Axis, setup: &CaseSetup) -> Vec<T> {
    let mut stream = setup.stream();
    let mut x = stream.take::<T>(axis.count());
    if !x.is_empty() && setup.seed.is_multiple_of(2) {
        for at in stream.indices(x.len(), 1 + x.len() / 3) {
            x[at] = T::from_f64(f64::NAN);
        }
    }
    x
}

fn check_reduction<T: Element>(runner: &CheckRunner<'_>, op: Reduce) -> Verdict {
    let device = runner.device;
    let is_extremum = matches!(op, Reduce::Max | Reduce::Min);
    runner.try_kernel(
        &large_rows(axis_cases()),
        |AxisCase { axis, .. }, setup| {
            let x = match is_extremum {
                true => with_nans::<T>(axis, setup),
                false => setup.stream().take(axis.count()),
            };
            ([("x", x)], [("y", unset(axis.reduced_count()))])
        },
        |case, [x], [y]| device.reduce(op, &case.axis, x, y),
        |case, [x], _| [ExpectedOutput::Sums(oracle::reduce(op, &case.axis, x))],
    )?;
    large_reduction::<T>(runner, op)?;
    let axis = Axis::new(2, 0, 3)?;
    let kernel = |[x]: [View<'_, T, AnyDevice>; 1], [y]: [ViewMut<'_, T, AnyDevice>; 1]| {
        device.reduce(op, &axis, x, y)
    };
    if is_extremum {
        return runner.check_refused("an axis of extent 0", [("x", 0)], [("y", 6)], kernel);
    }
    let [got] = runner.call(&CaseSetup::WHOLE, [("x", &[])], [("y", &unset(6))], kernel)?;
    expect_within("y of an axis of extent 0", &got, &oracle::reduce(op, &axis, &[]))
}

/// Adds a case with more than 65,535 rows to the cases of a kernel that computes along an axis.
fn large_rows(cases: Cases<AxisCase>) -> Cases<AxisCase> {
    let rows =
        |copies| AxisCase { axis: Axis { outer: copies * PERIOD, extent: 3, inner: 1 }, beta: 0.0 };
    cases.and_large([rows(1), rows(ROW_COPIES)], ROW_COPIES, &[])
}

/// Returns 2²⁰ + 3 integers, of which the last three include the largest and the smallest.
fn large_axis<T: Element>() -> Vec<T> {
    let mut x = repeated(&Values::Integers.stream(1).take::<T>(PERIOD), COPIES);
    let start = x.len() - 3;
    x[start..].copy_from_slice(&[5.0, 6.0, -7.0].map(T::from_f64));
    x
}

/// Checks the reduction of 2²⁰ + 3 elements to one.
fn large_reduction<T: Element>(runner: &CheckRunner<'_>, op: Reduce) -> Verdict {
    // Cases with large operands are slow, so the kit runs them only in `f32`. All sums are exact in
    // `f32`.
    if T::DTYPE != DType::F32 {
        return Ok(());
    }
    let x = large_axis::<T>();
    let axis = Axis::new(1, x.len(), 1)?;
    let term: fn(f64) -> f64 = match op {
        Reduce::AbsSum => f64::abs,
        Reduce::SumSq => |x| x * x,
        _ => |x| x,
    };
    let sum = |x: &[T]| x.iter().map(|x| term(x.to_f64())).sum::<f64>();
    let sum = (COPIES - 1) as f64 * sum(&x[..PERIOD]) + sum(&x[x.len() - PERIOD..]);
    let want = match op {
        Reduce::Max => Expected::exact(6.0),
        Reduce::Min => Expected::exact(-7.0),
        Reduce::Mean => Expected::approx(sum / x.len() as f64, 2.0),
        _ => Expected::exact(sum),
    };
    let y = [("y of a large axis", &unset(1)[..])];
    let [got] = runner.call(&CaseSetup::WHOLE, [("x", &x)], y, |[x], [y]| {
        runner.device.reduce(op, &axis, x, y)
    })?;
    expect_within(y[0].0, &got, &[want])
}

/// Checks a kernel that sums over all axes but one, on more than 2²⁰ elements in more than 65,535
/// rows. The operands hold copies of the same rows, and the sums are exact in `f32`.
fn large_sum_to_axis<T: Element, const I: usize>(
    runner: &CheckRunner<'_>,
    names: [&'static str; I],
    kernel: impl Fn(&Axis, [View<'_, T, AnyDevice>; I], ViewMut<'_, T, AnyDevice>) -> Result<()>,
) -> Verdict {
    if T::DTYPE != DType::F32 {
        return Ok(());
    }
    let rows = Values::Integers.stream(1).take::<T>(5 * PERIOD);
    let copies = COPIES.div_ceil(5);
    let (x, axis) = (repeated(&rows, copies), Axis::new(copies * PERIOD, 5, 1)?);
    let products: Vec<f64> = rows.iter().map(|x| x.to_f64().powi(I as i32)).collect();
    let sums = oracle::sum_to_axis(&Axis::new(PERIOD, 5, 1)?, 0.0, &products, &[0.0; 5]);
    let want: Vec<_> = sums.iter().map(|sum| copies as f64 * sum.value).collect();
    let y = [("y of a large operand", &unset(5)[..])];
    let [got] = runner.call(&CaseSetup::WHOLE, names.map(|name| (name, &x[..])), y, |x, [y]| {
        kernel(&axis, x, y)
    })?;
    expect_nearest(y[0].0, &got, &want)
}

fn sum_to_axis<T: Element>(runner: &CheckRunner<'_>) -> Verdict {
    runner.try_kernel(
        &axis_cases(),
        |AxisCase { axis, beta }, setup| {
            let [x, y] = setup.operands::<T, 2>([("x", axis.count()), ("y", axis.extent)]);
            ([x], [output_before_kernel(y, *beta)])
        },
        |case, [x], [y]| runner.device.sum_to_axis(&case.axis, T::acc(case.beta), x, y),
        |case, [x], [y]| [ExpectedOutput::Sums(oracle::sum_to_axis(&case.axis, case.beta, x, y))],
    )?;
    large_sum_to_axis::<T, 1>(runner, ["x"], |axis, [x], y| {
        runner.device.sum_to_axis(axis, T::acc(0.0), x, y)
    })
}

fn dot_to_axis<T: Element>(runner: &CheckRunner<'_>) -> Verdict {
    runner.try_kernel(
        &axis_cases(),
        |AxisCase { axis, beta }, setup| {
            let len = axis.count();
            let [a, b, y] = setup.operands::<T, 3>([("a", len), ("b", len), ("y", axis.extent)]);
            ([a, b], [output_before_kernel(y, *beta)])
        },
        |case, [a, b], [y]| runner.device.dot_to_axis(&case.axis, T::acc(case.beta), a, b, y),
        |case, [a, b], [y]| {
            let products: Vec<_> = a.iter().zip(b).map(|(a, b)| a * b).collect();
            [ExpectedOutput::Sums(oracle::sum_to_axis(&case.axis, case.beta, &products, y))]
        },
    )?;
    large_sum_to_axis::<T, 2>(runner, ["a", "b"], |axis, [a, b], y| {
        runner.device.dot_to_axis(axis, T::acc(0.0), a, b, y)
    })
}

fn arg_max<T: Element>(runner: &CheckRunner<'_>) -> Verdict {
    let kernel = |axis: Axis| {
        move |[x]: [View<'_, T, AnyDevice>; 1], [y]: [ViewMut<'_, u32, AnyDevice>; 1]| {
            runner.device.arg_max(&axis, x, y)
        }
    };
    runner.try_all(&axis_cases(), |&AxisCase { axis, .. }, setup| {
        let x = with_nans::<T>(&axis, setup);
        let y = ("y", &vec![UNSET; axis.reduced_count()][..]);
        let [got] = runner.call(setup, [("x", &x)], [y], kernel(axis))?;
        expect_bits("y", &got, &oracle::arg_max(&axis, &wide(&x)))
    })?;
    if T::DTYPE == DType::F32 {
        let x = large_axis::<T>();
        let (axis, y) = (Axis::new(1, x.len(), 1)?, ("y of a large axis", &[UNSET][..]));
        let [got] = runner.call(&CaseSetup::WHOLE, [("x", &x)], [y], kernel(axis))?;
        expect_bits(y.0, &got, &[x.len() as u32 - 2])?;
        // Arg max of more than 65,535 rows.
        let rows = Values::Integers.stream(1).take::<T>(3 * PERIOD);
        let want = oracle::arg_max(&Axis::new(PERIOD, 3, 1)?, &wide(&rows));
        let (x, axis) = (repeated(&rows, ROW_COPIES), Axis::new(ROW_COPIES * PERIOD, 3, 1)?);
        let y = ("y of many rows", &vec![UNSET; axis.outer][..]);
        let [got] = runner.call(&CaseSetup::WHOLE, [("x", &x)], [y], kernel(axis))?;
        expect_copies(y.0, &got, PERIOD, |copy| expect_bits(y.0, copy, &want))?;
    }
    runner.check_lengths([("x", 24)], [("y", 8)], kernel(Axis::new(2, 3, 4)?))?;
    let kernel_of_empty_axis = kernel(Axis::new(2, 0, 3)?);
    runner.check_refused("an axis of extent 0", [("x", 0)], [("y", 6)], kernel_of_empty_axis)
}

fn top_k<T: Element>(runner: &CheckRunner<'_>) -> Verdict {
    let kernel = |op: TopK| {
        move |[x]: [View<'_, T, AnyDevice>; 1],
              [values, indices]: [ViewMut<'_, T, AnyDevice>; 2]| {
            runner.device.top_k(&op, x, values, indices)
        }
    };
    runner.try_all(&axis_cases(), |&AxisCase { axis, .. }, setup| {
        let op = TopK { axis, k: 1 + setup.seed as usize % axis.extent.min(5) };
        let x = with_nans::<T>(&axis, setup);
        let old_output = unset(op.k * axis.reduced_count());
        let outputs = ["values", "indices"].map(|name| (name, &old_output[..]));
        let [values, indices] = runner.call(setup, [("x", &x)], outputs, kernel(op))?;
        let (at, want): (Vec<_>, Vec<_>) = oracle::top_k(&op, &wide(&x)).into_iter().unzip();
        expect_bits("values", &values, &at.iter().map(|&at| x[at]).collect::<Vec<_>>())?;
        expect_nearest("indices", &indices, &want)
    })?;
    let rows = |outer| Ok::<_, Error>(TopK { axis: Axis::new(outer, 3, 1)?, k: 2 });
    let (small_op, large_op) = (rows(PERIOD)?, rows(PERIOD * ROW_COPIES)?);
    let x = Values::Integers.stream(1).take::<T>(3 * PERIOD);
    let (at, places): (Vec<_>, Vec<_>) = oracle::top_k(&small_op, &wide(&x)).into_iter().unzip();
    let values = at.iter().map(|&at| x[at].to_f64()).collect();
    let want = [ExpectedOutput::Bits(values), ExpectedOutput::Nearest(places)];
    let old_output = unset::<T>(2 * PERIOD);
    let outputs = ["values", "indices"].map(|name| ((name, &old_output[..]), ROW_COPIES));
    runner.try_large([(("x", &x[..]), ROW_COPIES)], outputs, kernel(large_op), want)?;
    let axis = Axis::new(2, 3, 4)?;
    let (x, outputs) = ([("x", 24)], [("values", 16), ("indices", 16)]);
    runner.check_lengths(x, outputs, kernel(TopK { axis, k: 2 }))?;
    let outputs = [("values", 32), ("indices", 32)];
    runner.check_refused("k = 4 for an axis of extent 3", x, outputs, kernel(TopK { axis, k: 4 }))
}
