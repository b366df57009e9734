//! [`Pooling`](crate::kernel::Pooling).

use super::harness::{CaseSetup, call, ones, refused, refuses_lengths, tries};
use crate::{
    conformance::{
        runner::CheckRunner,
        check::{Check, checks},
        compare::{exact, same, within},
        failure::Verdict,
        operand::{Operand, Placement, UNSET, unset},
        oracle::pooling as oracle,
        values::{Expected, wide},
    },
    device::Device,
    element::{DType, Element, bf16, f16},
    error::Result,
    op::{Pool2d, PoolRounding},
};
use proptest::prelude::*;

pub(super) fn checks<D: Device>() -> Vec<Check<D>> {
    checks! {
        "max_pool" of "max_pool": max_pool();
        "max_pool_backward" of "max_pool_backward": max_pool_backward();
        "average_pool" of "average_pool": average_pool();
        "average_pool_backward" of "average_pool_backward": average_pool_backward();
        "stochastic_pool" of "stochastic_pool": stochastic_pool();
    }
}

fn max_pool<T: Element, D: Device>(bench: &CheckRunner<'_, D>) -> Verdict {
    tries(bench, pools()?, any_pool(), |op, how| {
        let mut draw = how.draw();
        let mut x = draw.take::<T>(op.input_len());
        maxima(bench, op, how, &x)?;
        // NaN is never the greatest, nor is what is no greater than the least.
        let others = [f64::NAN, f64::NEG_INFINITY, lowest::<T>(), f64::INFINITY, -0.0];
        for x in &mut x {
            if let [other @ 0..5] = draw.below(8, 1)[..] {
                *x = T::from_f64(others[other]);
            }
        }
        maxima(bench, op, how, &x)
    })?;
    let op = small()?;
    let (inputs, outputs) = ([("x", op.input_len())], [("y", op.output_len())]);
    refuses_lengths::<T, D, _, _>(bench, inputs, outputs, |[x], [y]| {
        let mut mask = no_mask(bench, op.output_len(), Placement::WHOLE)?;
        bench.device.max_pool(&op, x, y, mask.view_mut()?)
    })?;
    bench.all([op.output_len() - 1, op.output_len() + 1], |&masks| {
        let (x, y) = (ones::<T>(op.input_len()), ones::<T>(op.output_len()));
        let mut mask = no_mask(bench, masks, Placement::CORNERS[1])?;
        let (x, y) = (("x", &x[..], Placement::WHOLE), ("y", &y[..], Placement::WHOLE));
        refused(bench, [x], [y], |[x], [y]| bench.device.max_pool(&op, x, y, mask.view_mut()?))?;
        mask.unchanged("mask")
    })
}

/// Tries one plane of values.
fn maxima<T: Element, D: Device>(
    bench: &CheckRunner<'_, D>,
    op: &Pool2d,
    how: &CaseSetup,
    x: &[T],
) -> Verdict {
    let before = unset(op.output_len());
    let mut mask = no_mask(bench, op.output_len(), how.at[2])?;
    let (given, y) = (("x", x, how.at[0]), ("y", &before[..], how.at[1]));
    let [y] =
        call(bench, [given], [y], |[x], [y]| bench.device.max_pool(op, x, y, mask.view_mut()?))?;
    let (want, places) = oracle::max_pool(op, &wide(x), lowest::<T>());
    exact("y", &y, &want)?;
    same("mask", &mask.finish()?, &places)
}

fn max_pool_backward<T: Element, D: Device>(bench: &CheckRunner<'_, D>) -> Verdict {
    let device = bench.device;
    tries(bench, pools()?, any_pool(), |op, how| {
        let mut draw = how.draw();
        let (x, dy) = (draw.take::<T>(op.input_len()), draw.take::<T>(op.output_len()));
        let (_, places) = oracle::max_pool(op, &wide(&x), lowest::<T>());
        let mask = Operand::input(device, &places, how.at[1])?;
        let before = unset(op.input_len());
        let (given, dx) = (("dy", &dy[..], how.at[0]), ("dx", &before[..], how.at[2]));
        let [got] = call(bench, [given], [dx], |[dy], [dx]| {
            device.max_pool_backward(op, dy, mask.view()?, dx)
        })?;
        mask.unchanged("mask")?;
        how.values.judge("dx", &got, &oracle::max_pool_backward(op, &wide(&dy), &places))
    })?;
    let op = small()?;
    let back = |masks: usize, value| Operand::input(device, &vec![value; masks], Placement::WHOLE);
    let (inputs, outputs) = ([("dy", op.output_len())], [("dx", op.input_len())]);
    refuses_lengths::<T, D, _, _>(bench, inputs, outputs, |[dy], [dx]| {
        device.max_pool_backward(&op, dy, back(op.output_len(), 0)?.view()?, dx)
    })?;
    let (dy, dx) = (ones::<T>(op.output_len()), ones::<T>(op.input_len()));
    let (dy, dx) = ([("dy", &dy[..], Placement::WHOLE)], ("dx", &dx[..], Placement::CORNERS[1]));
    bench.all([op.output_len() - 1, op.output_len() + 1], |&masks| {
        let mask = back(masks, 0)?;
        refused(bench, dy, [dx], |[dy], [dx]| device.max_pool_backward(&op, dy, mask.view()?, dx))
    })?;
    // What comes of masks outside of the plane is open, but it stays within the operand.
    bench.all([i32::MIN, -2, (op.input[0] * op.input[1]) as i32, i32::MAX], |&place| {
        let (mask, mut dx) = (back(op.output_len(), place)?, Operand::input(device, dx.1, dx.2)?);
        let dy = Operand::input(device, dy[0].1, dy[0].2)?;
        // An error is as good as none, at the call or when the work is waited for.
        let _ = device.max_pool_backward(&op, dy.view()?, mask.view()?, dx.view_mut()?);
        let _ = device.synchronize();
        dx.finish().map(drop)
    })
}

fn average_pool<T: Element, D: Device>(bench: &CheckRunner<'_, D>) -> Verdict {
    tries(bench, pools()?, any_pool(), |op, how| {
        let x = how.draw().take::<T>(op.input_len());
        let before = unset(op.output_len());
        let (given, y) = (("x", &x[..], how.at[0]), ("y", &before[..], how.at[1]));
        let [mut got] = call(bench, [given], [y], |[x], [y]| bench.device.average_pool(op, x, y))?;
        let want = oracle::average_pool(op, &wide(&x));
        // A window past the padded input has a mean of NaN or of zero.
        let nothing =
            |(got, want): &(&mut T, &Expected)| want.value.is_nan() && got.to_f64() == 0.0;
        let nothings = got.iter_mut().zip(&want).filter(nothing);
        nothings.for_each(|(got, want)| *got = T::from_f64(want.value));
        within("y", &got, &want)
    })?;
    let op = small()?;
    let (inputs, outputs) = ([("x", op.input_len())], [("y", op.output_len())]);
    refuses_lengths::<T, D, _, _>(bench, inputs, outputs, |[x], [y]| {
        bench.device.average_pool(&op, x, y)
    })
}

fn average_pool_backward<T: Element, D: Device>(bench: &CheckRunner<'_, D>) -> Verdict {
    let device = bench.device;
    tries(bench, pools()?, any_pool(), |op, how| {
        let dy = how.draw().take::<T>(op.output_len());
        let before = unset(op.input_len());
        let (given, dx) = (("dy", &dy[..], how.at[0]), ("dx", &before[..], how.at[1]));
        let [got] =
            call(bench, [given], [dx], |[dy], [dx]| device.average_pool_backward(op, dy, dx))?;
        within("dx", &got, &oracle::average_pool_backward(op, &wide(&dy)))
    })?;
    let op = small()?;
    let (inputs, outputs) = ([("dy", op.output_len())], [("dx", op.input_len())]);
    refuses_lengths::<T, D, _, _>(bench, inputs, outputs, |[dy], [dx]| {
        device.average_pool_backward(&op, dy, dx)
    })
}

fn stochastic_pool<T: Element, D: Device>(bench: &CheckRunner<'_, D>) -> Verdict {
    let device = bench.device;
    tries(bench, pools()?, any_pool(), |op, how| {
        let mut draw = how.draw();
        let (x, mut u) =
            (draw.take::<T>(op.input_len()), draw.between::<f32>(0.0, 1.0, op.output_len()));
        u.iter_mut().step_by(3).for_each(|u| *u = 0.0);
        let u = Operand::input(device, &u, how.at[1])?;
        let before = unset(op.output_len());
        let mut mask = no_mask(bench, op.output_len(), how.at[2])?;
        let (given, y) = (("x", &x[..], how.at[0]), ("y", &before[..], how.at[3]));
        let [y] = call(bench, [given], [y], |[x], [y]| {
            device.stochastic_pool(op, x, u.view()?, y, mask.view_mut()?)
        })?;
        u.unchanged("u")?;
        let (want, places) = oracle::stochastic_pool(op, &wide(&x), &u.finish()?);
        exact("y", &y, &want)?;
        same("mask", &mask.finish()?, &places)
    })?;
    let (op, zeros) = (small()?, |len| Operand::input(device, &vec![0.0; len], Placement::WHOLE));
    let outputs = op.output_len();
    refuses_lengths::<T, D, _, _>(bench, [("x", op.input_len())], [("y", outputs)], |[x], [y]| {
        let mut mask = no_mask(bench, outputs, Placement::WHOLE)?;
        device.stochastic_pool(&op, x, zeros(outputs)?.view()?, y, mask.view_mut()?)
    })?;
    bench.all([(outputs - 1, outputs), (outputs, outputs + 1)], |&(us, masks)| {
        let (x, y) = (ones::<T>(op.input_len()), ones::<T>(outputs));
        let (u, mut mask) = (zeros(us)?, no_mask(bench, masks, Placement::CORNERS[1])?);
        let (x, y) = (("x", &x[..], Placement::WHOLE), ("y", &y[..], Placement::WHOLE));
        refused(bench, [x], [y], |[x], [y]| {
            device.stochastic_pool(&op, x, u.view()?, y, mask.view_mut()?)
        })?;
        mask.unchanged("mask")
    })
}

/// What a window starts out with: the least finite value, of `f32` for `f64`.
fn lowest<T: Element>() -> f64 {
    match T::DTYPE {
        DType::F16 => f16::MIN.to_f64(),
        DType::Bf16 => bf16::MIN.to_f64(),
        DType::F32 | DType::F64 => f32::MIN.into(),
    }
}

/// A mask that is to be overwritten.
fn no_mask<D: Device>(
    bench: &CheckRunner<'_, D>,
    len: usize,
    at: Placement,
) -> Result<Operand<i32, D>> {
    Operand::output(bench.device, &vec![UNSET as i32; len], at)
}

/// Two planes of 3 × 5 under 2 × 3.
fn small() -> Result<Pool2d> {
    Pool2d::new(2, [3, 5], [2, 3], [1, 2], [0, 0], PoolRounding::Ceil)
}

/// Nothing, one element, windows that hang over the edge, lie in the padding or past it, leave
/// gaps, overlap, cover all, and planes of more than a block.
fn pools() -> Result<Vec<Pool2d>> {
    use PoolRounding::{Ceil, Floor};
    Ok(vec![
        Pool2d::new(0, [4, 4], [2, 2], [2, 2], [0, 0], Ceil)?,
        Pool2d::new(2, [0, 3], [2, 2], [1, 1], [1, 1], Ceil)?,
        Pool2d::new(1, [1, 1], [1, 1], [1, 1], [0, 0], Ceil)?,
        Pool2d::new(2, [8, 6], [2, 2], [2, 2], [0, 0], Ceil)?,
        Pool2d::new(2, [9, 7], [2, 2], [2, 2], [0, 0], Ceil)?,
        Pool2d::new(2, [9, 7], [2, 2], [2, 2], [0, 0], Floor)?,
        Pool2d::new(3, [8, 10], [3, 3], [2, 2], [0, 0], Ceil)?,
        Pool2d::new(2, [7, 9], [3, 3], [1, 1], [1, 1], Floor)?,
        Pool2d::new(2, [5, 8], [5, 8], [1, 1], [0, 0], Ceil)?,
        Pool2d::new(2, [6, 5], [1, 2], [4, 3], [0, 0], Ceil)?,
        Pool2d::new(2, [2, 3], [4, 4], [1, 2], [3, 3], Floor)?,
        Pool2d::new(3, [2, 2], [3, 3], [2, 1], [1, 2], Ceil)?,
        Pool2d::new(3, [33, 65], [3, 2], [2, 3], [1, 0], Ceil)?,
        Pool2d::new(2, [64, 66], [2, 2], [2, 2], [0, 0], Ceil)?,
        small()?,
    ])
}

fn any_pool() -> impl Strategy<Value = Pool2d> {
    let axis = || (0..=9usize, 1..=5usize, 1..=4usize, 0..=4usize);
    let rounding = prop_oneof![Just(PoolRounding::Ceil), Just(PoolRounding::Floor)];
    (0..=3usize, axis(), axis(), rounding)
        .prop_map(|(planes, rows, columns, rounding)| {
            // What is left is at least a window, but for its padding.
            let input = |(more, kernel, _, pad): (usize, usize, usize, usize)| {
                (kernel.saturating_sub(2 * (pad % kernel)) + more).max(1)
            };
            let pair = |of: fn((usize, usize, usize, usize)) -> usize| [of(rows), of(columns)];
            let (kernel, stride) = (pair(|axis| axis.1), pair(|axis| axis.2));
            let input = [input(rows), input(columns)];
            Pool2d::new(planes, input, kernel, stride, pair(|axis| axis.3 % axis.1), rounding)
        })
        .prop_filter_map("no window fits", Result::ok)
}
