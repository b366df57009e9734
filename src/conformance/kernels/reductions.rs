//! Conformance checks of the kernel family [`Reductions`](crate::kernel::Reductions).

use super::{cases::AxisCase, prelude::*};
use crate::{
    conformance::oracle::reductions as oracle,
    device::AnyDevice,
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
    let extreme = matches!(op, Reduce::Max | Reduce::Min);
    runner.try_kernel(
        &axis_cases(),
        |AxisCase { axis, .. }, setup| {
            let x = match extreme {
                true => with_nans::<T>(axis, setup),
                false => setup.stream().take(axis.count()),
            };
            ([("x", x)], [("y", unset(axis.reduced_count()))])
        },
        |case, [x], [y]| device.reduce(op, &case.axis, x, y),
        |case, [x], _| [ExpectedOutput::Sums(oracle::reduce(op, &case.axis, x))],
    )?;
    let axis = Axis::new(2, 0, 3)?;
    let kernel = |[x]: [View<'_, T, AnyDevice>; 1], [y]: [ViewMut<'_, T, AnyDevice>; 1]| {
        device.reduce(op, &axis, x, y)
    };
    if extreme {
        return runner.check_refused("an axis of extent 0", [("x", 0)], [("y", 6)], kernel);
    }
    let [got] = runner.call(&CaseSetup::WHOLE, [("x", &[])], [("y", &unset(6))], kernel)?;
    expect_within("y of an axis of extent 0", &got, &oracle::reduce(op, &axis, &[]))
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
    )
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
    )
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
    runner.check_lengths([("x", 24)], [("y", 8)], kernel(Axis::new(2, 3, 4)?))?;
    let empty = kernel(Axis::new(2, 0, 3)?);
    runner.check_refused("an axis of extent 0", [("x", 0)], [("y", 6)], empty)
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
        let before = unset(op.k * axis.reduced_count());
        let outputs = ["values", "indices"].map(|name| (name, &before[..]));
        let [values, indices] = runner.call(setup, [("x", &x)], outputs, kernel(op))?;
        let (at, want): (Vec<_>, Vec<_>) = oracle::top_k(&op, &wide(&x)).into_iter().unzip();
        expect_bits("values", &values, &at.iter().map(|&at| x[at]).collect::<Vec<_>>())?;
        expect_nearest("indices", &indices, &want)
    })?;
    let axis = Axis::new(2, 3, 4)?;
    let (x, outputs) = ([("x", 24)], [("values", 16), ("indices", 16)]);
    runner.check_lengths(x, outputs, kernel(TopK { axis, k: 2 }))?;
    let outputs = [("values", 32), ("indices", 32)];
    runner.check_refused("k = 4 for an axis of extent 3", x, outputs, kernel(TopK { axis, k: 4 }))
}
