//! [`Reductions`](crate::kernel::Reductions).

use super::{axis_cases::Case, harness, vector_cases::refused};
use crate::{
    conformance::{
        runner::CheckRunner,
        check::{Check, checks},
        compare::{exact, same, within},
        failure::Verdict,
        operand::{Operand, Placement, UNSET, unset},
        oracle::reductions,
        values::wide,
    },
    device::Device,
    element::{Element, Storable},
    op::{Axis, Reduce, TopK},
};

pub(super) fn checks<D: Device>() -> Vec<Check<D>> {
    checks! {
        "reduce_sum" of "reduce": reduces(Reduce::Sum);
        "reduce_mean" of "reduce": reduces(Reduce::Mean);
        "reduce_max" of "reduce": reduces(Reduce::Max);
        "reduce_min" of "reduce": reduces(Reduce::Min);
        "reduce_abs_sum" of "reduce": reduces(Reduce::AbsSum);
        "reduce_sum_sq" of "reduce": reduces(Reduce::SumSq);
        "sum_to_axis" of "sum_to_axis": sum_to_axis();
        "dot_to_axis" of "dot_to_axis": dot_to_axis();
        "arg_max" of "arg_max": arg_max();
        "top_k" of "top_k": top_k();
    }
}

/// Elements of a case: with NaN here and there, if the kernel says what comes of it.
fn elements<T: Element>(case: &Case, axis: &Axis, nan: bool) -> Vec<T> {
    let mut draw = case.values.from(case.seed);
    let mut x = draw.take::<T>(axis.count());
    if nan && !x.is_empty() && case.seed.is_multiple_of(2) {
        for at in draw.below(x.len(), 1 + x.len() / 3) {
            x[at] = T::from_f64(f64::NAN);
        }
    }
    x
}

fn reduces<T: Element, D: Device>(bench: &CheckRunner<'_, D>, op: Reduce) -> Verdict {
    let extreme = matches!(op, Reduce::Max | Reduce::Min);
    let test = |case: &Case| {
        let axis = case.axis()?;
        let xs = elements::<T>(case, &axis, extreme);
        let x = Operand::input(bench.device, &xs, case.x)?;
        let mut y = Operand::output(bench.device, &unset::<T>(axis.reduced_count()), case.y)?;
        bench.device.reduce(op, &axis, x.view()?, y.view_mut()?)?;
        x.unchanged("x")?;
        case.values.judge("y", &y.finish()?, &reductions::reduce(op, &axis, &wide(&xs)))
    };
    bench.all(Case::corners(), test)?;
    bench.each(Case::any(), test)?;
    refuses_lengths::<T, T, D>(bench, |axis, x, y| {
        bench.device.reduce(op, axis, x.view()?, y.view_mut()?)
    })?;
    let axis = Axis::new(2, 0, 3)?;
    let x = Operand::input(bench.device, &[] as &[T], Placement::WHOLE)?;
    let mut y = Operand::output(bench.device, &[T::from_f64(1.0); 6], Placement::WHOLE)?;
    let result = bench.device.reduce(op, &axis, x.view()?, y.view_mut()?);
    if extreme {
        refused(result, "an axis without elements")?;
        return y.unchanged("y");
    }
    result?;
    within("y of nothing", &y.finish()?, &reductions::reduce(op, &axis, &[]))
}

/// Tries that a kernel that leaves `y[o,i]` refuses lengths that do not fit the axis.
fn refuses_lengths<T: Element, U: Storable, D: Device>(
    bench: &CheckRunner<'_, D>,
    kernel: impl Fn(&Axis, &Operand<T, D>, &mut Operand<U, D>) -> crate::Result<()>,
) -> Verdict {
    let axis = Axis::new(2, 3, 4)?;
    bench.all([(23, 8), (25, 8), (24, 7), (24, 9)], |&(xs, ys): &(usize, usize)| {
        let x = Operand::input(bench.device, &vec![T::from_f64(1.0); xs], Placement::WHOLE)?;
        let mut y = Operand::output(bench.device, &vec![U::zeroed(); ys], Placement::WHOLE)?;
        refused(kernel(&axis, &x, &mut y), "operands that do not fit the axis")?;
        y.unchanged("y")
    })
}

fn sum_to_axis<T: Element, D: Device>(bench: &CheckRunner<'_, D>) -> Verdict {
    let test = |case: &Case| {
        let axis = case.axis()?;
        let mut draw = case.values.from(case.seed);
        let (xs, mut ys) = (draw.take::<T>(axis.count()), draw.take::<T>(axis.extent));
        if case.beta == 0.0 {
            ys = unset(axis.extent);
        }
        let x = Operand::input(bench.device, &xs, case.x)?;
        let mut y = Operand::output(bench.device, &ys, case.y)?;
        bench.device.sum_to_axis(&axis, T::acc(case.beta), x.view()?, y.view_mut()?)?;
        x.unchanged("x")?;
        let want = reductions::sum_to_axis(&axis, case.beta, &wide(&xs), &wide(&ys));
        case.values.judge("y", &y.finish()?, &want)
    };
    bench.all(Case::corners(), test)?;
    bench.each(Case::any(), test)?;
    let axis = Axis::new(2, 3, 4)?;
    bench.all([(23, 3), (25, 3), (24, 2), (24, 4)], |&(xs, ys): &(usize, usize)| {
        let x = Operand::input(bench.device, &vec![T::from_f64(1.0); xs], Placement::WHOLE)?;
        let ys = vec![T::from_f64(2.0); ys];
        let mut y = Operand::output(bench.device, &ys, Placement::WHOLE)?;
        let result = bench.device.sum_to_axis(&axis, T::acc(1.0), x.view()?, y.view_mut()?);
        refused(result, "operands that do not fit the axis")?;
        y.unchanged("y")
    })
}

fn dot_to_axis<T: Element, D: Device>(bench: &CheckRunner<'_, D>) -> Verdict {
    let device = bench.device;
    let test = |case: &Case| {
        let (axis, mut draw) = (case.axis()?, case.values.from(case.seed));
        let (a, b) = (draw.take::<T>(axis.count()), draw.take::<T>(axis.count()));
        let mut y = draw.take::<T>(axis.extent);
        if case.beta == 0.0 {
            y = unset(axis.extent);
        }
        let products: Vec<_> = wide(&a).iter().zip(wide(&b)).map(|(a, b)| a * b).collect();
        let want = reductions::sum_to_axis(&axis, case.beta, &products, &wide(&y));
        let given = [("a", &a[..], case.x), ("b", &b[..], case.y)];
        let [got] = harness::call(bench, given, [("y", &y[..], case.y)], |[a, b], [y]| {
            device.dot_to_axis(&axis, T::acc(case.beta), a, b, y)
        })?;
        case.values.judge("y", &got, &want)
    };
    bench.all(Case::corners(), test)?;
    bench.each(Case::any(), test)?;
    let axis = Axis::new(2, 3, 4)?;
    let given = [("a", 24), ("b", 24)];
    harness::refuses_lengths::<T, D, _, _>(bench, given, [("y", 3)], |[a, b], [y]| {
        device.dot_to_axis(&axis, T::acc(1.0), a, b, y)
    })
}

fn arg_max<T: Element, D: Device>(bench: &CheckRunner<'_, D>) -> Verdict {
    let test = |case: &Case| {
        let axis = case.axis()?;
        let xs = elements::<T>(case, &axis, true);
        let x = Operand::input(bench.device, &xs, case.x)?;
        let mut y = Operand::output(bench.device, &vec![UNSET; axis.reduced_count()], case.y)?;
        bench.device.arg_max(&axis, x.view()?, y.view_mut()?)?;
        x.unchanged("x")?;
        same("y", &y.finish()?, &reductions::arg_max(&axis, &wide(&xs)))
    };
    bench.all(Case::corners(), test)?;
    bench.each(Case::any(), test)?;
    refuses_lengths::<T, u32, D>(bench, |axis, x, y| {
        bench.device.arg_max(axis, x.view()?, y.view_mut()?)
    })?;
    let x = Operand::input(bench.device, &[] as &[T], Placement::WHOLE)?;
    let mut y = Operand::output(bench.device, &[UNSET; 6], Placement::WHOLE)?;
    let result = bench.device.arg_max(&Axis::new(2, 0, 3)?, x.view()?, y.view_mut()?);
    refused(result, "an axis without elements")?;
    y.unchanged("y")
}

fn top_k<T: Element, D: Device>(bench: &CheckRunner<'_, D>) -> Verdict {
    let device = bench.device;
    let test = |case: &Case| {
        let axis = case.axis()?;
        let op = TopK { axis, k: 1 + case.seed as usize % axis.extent.min(5) };
        let xs = elements::<T>(case, &axis, true);
        let before = unset::<T>(op.k * axis.reduced_count());
        let x = Operand::input(device, &xs, case.x)?;
        let mut values = Operand::output(device, &before, case.y)?;
        let mut places = Operand::output(device, &before, case.x)?;
        device.top_k(&op, x.view()?, values.view_mut()?, places.view_mut()?)?;
        x.unchanged("x")?;
        let (at, want): (Vec<_>, Vec<_>) = reductions::top_k(&op, &wide(&xs)).into_iter().unzip();
        same("values", &values.finish()?, &at.iter().map(|&at| xs[at]).collect::<Vec<_>>())?;
        exact("places", &places.finish()?, &want)
    };
    bench.all(Case::corners(), test)?;
    bench.each(Case::any(), test)?;
    let axis = Axis::new(2, 3, 4)?;
    let lengths =
        [(2, 23, 16, 16), (2, 25, 16, 16), (2, 24, 15, 16), (2, 24, 16, 17), (4, 24, 32, 32)];
    bench.all(lengths, |&(k, xs, values, places)| {
        let x = Operand::input(device, &unset::<T>(xs), Placement::WHOLE)?;
        let mut values = Operand::output(device, &unset::<T>(values), Placement::WHOLE)?;
        let mut places = Operand::output(device, &unset::<T>(places), Placement::WHOLE)?;
        let op = TopK { axis, k };
        let result = device.top_k(&op, x.view()?, values.view_mut()?, places.view_mut()?);
        refused(result, "operands that do not fit the axis")?;
        values.unchanged("values")?;
        places.unchanged("places")
    })
}
