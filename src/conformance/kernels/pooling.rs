//! Conformance checks of the kernel family [`Pooling`](crate::kernel::Pooling).

use super::prelude::*;
use crate::{
    conformance::{oracle::pooling as oracle, values::repeated},
    element::{DType, bf16, f16},
    op::{Pool2d, PoolRounding},
};
use std::cell::RefCell;

checks! {
    "max_pool" of "max_pool": max_pool();
    "max_pool_backward" of "max_pool_backward": max_pool_backward();
    "average_pool" of "average_pool": average_pool();
    "average_pool_backward" of "average_pool_backward": average_pool_backward();
    "stochastic_pool" of "stochastic_pool": stochastic_pool();
}

fn max_pool<T: Element>(runner: &CheckRunner<'_>) -> Verdict {
    let device = runner.device;
    runner.try_all(&pool_cases()?, |op, setup| {
        let mut stream = setup.stream();
        let numbers = stream.take::<T>(op.input_len());
        // `max_pool` must ignore NaN and every value that is not above the start value of the
        // maximum.
        let special_values =
            [f64::NAN, f64::NEG_INFINITY, max_pool_start::<T>(), f64::INFINITY, -0.0];
        let numbers_with_special_values = numbers.iter().map(|x| match stream.indices(8, 1)[..] {
            [i @ 0..5] => T::from_f64(special_values[i]),
            _ => *x,
        });
        for x in [numbers_with_special_values.collect(), numbers.clone()] {
            let want = oracle::max_pool(op, &wide(&x), max_pool_start::<T>());
            expect_pooled(runner, op, setup, &x, want, |x, y, mask| {
                device.max_pool(op, x, y, mask)
            })?;
        }
        Ok(())
    })?;
    large_pool::<T>(runner, |[small_op, large_op]| {
        let x = Values::Integers.stream(1).take::<T>(small_op.input_len());
        let (y, mask) = oracle::max_pool(&small_op, &wide(&x), max_pool_start::<T>());
        let want = (repeated(&y, ROW_COPIES), repeated(&mask, ROW_COPIES));
        let x = repeated(&x, ROW_COPIES);
        let setup = CaseSetup::WHOLE;
        expect_pooled(runner, &large_op, &setup, &x, want, |x, y, mask| {
            device.max_pool(&large_op, x, y, mask)
        })
    })?;
    let op = small_pool()?;
    check_pool_lengths::<T>(runner, &op, |x, y, mask| device.max_pool(&op, x, y, mask))
}

/// Runs `test` on two descriptors of pooling, one with [`PERIOD`] planes and one with more than
/// 65,535 planes; all other fields are equal.
fn large_pool<T: Element>(
    runner: &CheckRunner<'_>,
    test: impl Fn([Pool2d; 2]) -> Verdict,
) -> Verdict {
    // Cases with large operands are slow, so the kit runs them only in `f32`.
    if T::DTYPE != DType::F32 {
        return Ok(());
    }
    let planes = |planes| Pool2d::new(planes, [1, 3], [1, 2], [1, 1], [0, 0], PoolRounding::Ceil);
    let large_op = planes(PERIOD * ROW_COPIES)?;
    runner.try_cases([large_op], |&large_op| test([planes(PERIOD)?, large_op]))
}

/// Calls a kernel, and compares the pooled elements and the mask with the expected elements and
/// mask.
fn expect_pooled<T: Element>(
    runner: &CheckRunner<'_>,
    op: &Pool2d,
    setup: &CaseSetup,
    x: &[T],
    (want, want_mask): (Vec<f64>, Vec<i32>),
    mut kernel: impl FnMut(
        View<'_, T, AnyDevice>,
        ViewMut<'_, T, AnyDevice>,
        ViewMut<'_, i32, AnyDevice>,
    ) -> Result<()>,
) -> Verdict {
    let mut mask = unset_mask(runner.device, op.output_len(), setup.places[2])?;
    let y = ("y", &unset(op.output_len())[..]);
    let [y] = runner.call(setup, [("x", x)], [y], |[x], [y]| kernel(x, y, mask.view_mut()?))?;
    expect_nearest("y", &y, &want)?;
    expect_bits("mask", &mask.values()?, &want_mask)
}

/// Checks that a pooling kernel refuses wrong lengths of its input, output and mask.
fn check_pool_lengths<T: Element>(
    runner: &CheckRunner<'_>,
    op: &Pool2d,
    kernel: impl Fn(
        View<'_, T, AnyDevice>,
        ViewMut<'_, T, AnyDevice>,
        ViewMut<'_, i32, AnyDevice>,
    ) -> Result<()>,
) -> Verdict {
    let (x, y) = ([("x", op.input_len())], [("y", op.output_len())]);
    let mask_result = RefCell::new(Ok(()));
    runner.check_lengths(x, y, |[x], [y]| {
        // The mask fills its memory and is valid on the host, so the check also finds a kernel that
        // marks the host side as stale.
        let mut mask = unset_mask(runner.device, op.output_len(), Placement::CORNERS[2])?;
        let result = kernel(x, y, mask.view_mut()?);
        if let error @ Err(_) = mask.unchanged("mask") {
            *mask_result.borrow_mut() = error;
        }
        result
    })?;
    let mask_result = mask_result.into_inner();
    mask_result.map_err(|flaw| flaw.in_case("in a refused call with", &"a wrong `x` or `y`"))?;
    runner.try_cases([op.output_len() - 1, op.output_len() + 1], |&len| {
        let mut mask = unset_mask(runner.device, len, Placement::CORNERS[1])?;
        let invalid = format!("`mask` of {len} elements instead of {}", op.output_len());
        runner.check_refused(&invalid, x, y, |[x], [y]| kernel(x, y, mask.view_mut()?))?;
        mask.unchanged("mask")
    })
}

fn max_pool_backward<T: Element>(runner: &CheckRunner<'_>) -> Verdict {
    let device = runner.device;
    runner.try_all(&pool_cases()?, |op, setup| {
        let mut stream = setup.stream();
        let [x, dy] = [op.input_len(), op.output_len()].map(|len| stream.take::<T>(len));
        let (_, elements) = oracle::max_pool(op, &wide(&x), max_pool_start::<T>());
        let mask = Operand::new(device, &elements, setup.places[2])?;
        let dx = ("dx", &unset(op.input_len())[..]);
        let [got] = runner.call(setup, [("dy", &dy)], [dx], |[dy], [dx]| {
            device.max_pool_backward(op, dy, mask.view()?, dx)
        })?;
        mask.unchanged("mask")?;
        setup.values.compare("dx", &got, &oracle::max_pool_backward(op, &wide(&dy), &elements))
    })?;
    large_pool::<T>(runner, |[small_op, large_op]| {
        let mut stream = Values::Integers.stream(1);
        let [x, dy] =
            [small_op.input_len(), small_op.output_len()].map(|len| stream.take::<T>(len));
        let (_, elements) = oracle::max_pool(&small_op, &wide(&x), max_pool_start::<T>());
        let want = oracle::max_pool_backward(&small_op, &wide(&dy), &elements);
        let mask = Operand::new(device, &repeated(&elements, ROW_COPIES), Placement::WHOLE)?;
        let dx = ("dx", &unset::<T>(small_op.input_len())[..]);
        let inputs = [(("dy", &dy[..]), ROW_COPIES)];
        let want = [ExpectedOutput::Sums(want)];
        runner.try_large(
            inputs,
            [(dx, ROW_COPIES)],
            |[dy], [dx]| device.max_pool_backward(&large_op, dy, mask.view()?, dx),
            want,
        )
    })?;
    let op = small_pool()?;
    let mask_of = |len: usize, value| Operand::new(device, &vec![value; len], Placement::WHOLE);
    let (dy, dx) = ([("dy", op.output_len())], [("dx", op.input_len())]);
    runner.check_lengths::<T, T, 1, 1>(dy, dx, |[dy], [dx]| {
        device.max_pool_backward(&op, dy, mask_of(op.output_len(), 0)?.view()?, dx)
    })?;
    runner.try_cases([op.output_len() - 1, op.output_len() + 1], |&mask_len| {
        let invalid = format!("`mask` of {mask_len} elements instead of {}", op.output_len());
        runner.check_refused::<T, T, 1, 1>(&invalid, dy, dx, |[dy], [dx]| {
            device.max_pool_backward(&op, dy, mask_of(mask_len, 0)?.view()?, dx)
        })
    })?;
    // If the mask holds indices outside the plane, the kernel may fail or return any result. The
    // kernel must not write outside `dx`.
    runner.try_cases([i32::MIN, -2, (op.input[0] * op.input[1]) as i32, i32::MAX], |&element| {
        let ones = |len, place| Operand::new(device, &vec![T::from_f64(1.0); len], place);
        let mask = mask_of(op.output_len(), element)?;
        let dy = ones(op.output_len(), Placement::WHOLE)?;
        let mut dx = ones(op.input_len(), Placement::CORNERS[1])?;
        let _ = device.max_pool_backward(&op, dy.view()?, mask.view()?, dx.view_mut()?);
        let _ = device.synchronize();
        dx.values().map(drop)
    })
}

fn average_pool<T: Element>(runner: &CheckRunner<'_>) -> Verdict {
    let device = runner.device;
    runner.try_all(&pool_cases()?, |op, setup| {
        let x = setup.stream().take::<T>(op.input_len());
        let y = ("y", &unset(op.output_len())[..]);
        let [mut got] =
            runner.call(setup, [("x", &x)], [y], |[x], [y]| device.average_pool(op, x, y))?;
        let want = oracle::average_pool(op, &wide(&x));
        // The mean of a window outside the padded input may be NaN or zero.
        let is_empty_window =
            |(got, want): &(&mut T, &Expected)| want.value.is_nan() && got.to_f64() == 0.0;
        let empty_windows = got.iter_mut().zip(&want).filter(is_empty_window);
        empty_windows.for_each(|(got, want)| *got = T::from_f64(want.value));
        expect_within("y", &got, &want)
    })?;
    large_pool::<T>(runner, |[small_op, large_op]| {
        let x = Values::Integers.stream(1).take::<T>(small_op.input_len());
        let want = [ExpectedOutput::Within(oracle::average_pool(&small_op, &wide(&x)))];
        let (x, y) = (("x", &x[..]), ("y", &unset::<T>(small_op.output_len())[..]));
        runner.try_large(
            [(x, ROW_COPIES)],
            [(y, ROW_COPIES)],
            |[x], [y]| device.average_pool(&large_op, x, y),
            want,
        )
    })?;
    let op = small_pool()?;
    let (x, y) = ([("x", op.input_len())], [("y", op.output_len())]);
    runner.check_lengths::<T, T, 1, 1>(x, y, |[x], [y]| device.average_pool(&op, x, y))
}

fn average_pool_backward<T: Element>(runner: &CheckRunner<'_>) -> Verdict {
    runner.try_kernel(
        &pool_cases()?,
        |op, setup| {
            setup.inputs_and_outputs::<T, 1, 1>([("dy", op.output_len())], [("dx", op.input_len())])
        },
        |op, [dy], [dx]| runner.device.average_pool_backward(op, dy, dx),
        |op, [dy], _| [ExpectedOutput::Within(oracle::average_pool_backward(op, dy))],
    )?;
    large_pool::<T>(runner, |[small_op, large_op]| {
        let dy = Values::Integers.stream(1).take::<T>(small_op.output_len());
        let want = [ExpectedOutput::Within(oracle::average_pool_backward(&small_op, &wide(&dy)))];
        let (dy, dx) = (("dy", &dy[..]), ("dx", &unset::<T>(small_op.input_len())[..]));
        runner.try_large(
            [(dy, ROW_COPIES)],
            [(dx, ROW_COPIES)],
            |[dy], [dx]| runner.device.average_pool_backward(&large_op, dy, dx),
            want,
        )
    })
}

fn stochastic_pool<T: Element>(runner: &CheckRunner<'_>) -> Verdict {
    let device = runner.device;
    runner.try_all(&pool_cases()?, |op, setup| {
        let mut stream = setup.stream();
        let x = stream.take::<T>(op.input_len());
        let mut u = stream.uniform::<f32>(0.0, 1.0, op.output_len());
        u.iter_mut().step_by(3).for_each(|u| *u = 0.0);
        let want = oracle::stochastic_pool(op, &wide(&x), &u);
        let u = Operand::new(device, &u, setup.places[3])?;
        expect_pooled(runner, op, setup, &x, want, |x, y, mask| {
            device.stochastic_pool(op, x, u.view()?, y, mask)
        })?;
        u.unchanged("u")
    })?;
    large_pool::<T>(runner, |[small_op, large_op]| {
        let mut stream = Values::Integers.stream(1);
        let x = stream.take::<T>(small_op.input_len());
        let u = stream.uniform::<f32>(0.0, 1.0, small_op.output_len());
        let (y, mask) = oracle::stochastic_pool(&small_op, &wide(&x), &u);
        let want = (repeated(&y, ROW_COPIES), repeated(&mask, ROW_COPIES));
        let x = repeated(&x, ROW_COPIES);
        let u = Operand::new(device, &repeated(&u, ROW_COPIES), Placement::WHOLE)?;
        let setup = CaseSetup::WHOLE;
        expect_pooled(runner, &large_op, &setup, &x, want, |x, y, mask| {
            device.stochastic_pool(&large_op, x, u.view()?, y, mask)
        })
    })?;
    let (op, len) = (small_pool()?, small_pool()?.output_len());
    let zeros = |len| Operand::new(device, &vec![0.0; len], Placement::WHOLE);
    check_pool_lengths::<T>(runner, &op, |x, y, mask| {
        device.stochastic_pool(&op, x, zeros(len)?.view()?, y, mask)
    })?;
    runner.try_cases([len - 1, len + 1], |&wrong| {
        let mut mask = unset_mask(runner.device, len, Placement::CORNERS[1])?;
        let (u, invalid) = (zeros(wrong)?, format!("`u` of {wrong} elements instead of {len}"));
        let (x, y) = ([("x", op.input_len())], [("y", len)]);
        runner.check_refused::<T, T, 1, 1>(&invalid, x, y, |[x], [y]| {
            device.stochastic_pool(&op, x, u.view()?, y, mask.view_mut()?)
        })?;
        mask.unchanged("mask")
    })
}

/// Returns the value from which `max_pool` starts each maximum: the lowest finite number of `T`, or
/// of `f32` if `T` is `f64`.
fn max_pool_start<T: Element>() -> f64 {
    match T::DTYPE {
        DType::F16 => f16::MIN.to_f64(),
        DType::Bf16 => bf16::MIN.to_f64(),
        DType::F32 | DType::F64 => f32::MIN.into(),
    }
}

/// Returns a mask of invalid indices, which a kernel must overwrite.
fn unset_mask(device: &AnyDevice, len: usize, place: Placement) -> Result<Operand<i32>> {
    Operand::new(device, &vec![UNSET as i32; len], place)
}

/// Returns the descriptor of a pooling of two 3 × 5 planes with 2 × 3 windows.
fn small_pool() -> Result<Pool2d> {
    Pool2d::new(2, [3, 5], [2, 3], [1, 2], [0, 0], PoolRounding::Ceil)
}

/// Returns cases of pooling: empty planes, one element, and planes with more elements than a GPU
/// thread block computes. The pooling windows extend past the edge of the plane, lie in the padding
/// or outside the padded plane, leave gaps, overlap, or cover the plane.
fn pool_cases() -> Result<Cases<Pool2d>> {
    use PoolRounding::{Ceil, Floor};
    let corner_cases = vec![
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
        Pool2d::new(2, [55, 55], [3, 3], [2, 2], [0, 0], Ceil)?,
        Pool2d::new(2, [14, 17], [5, 4], [3, 3], [4, 2], Ceil)?,
        Pool2d::new(2, [20, 23], [3, 2], [4, 5], [0, 0], Floor)?,
        Pool2d::new(2, [9, 40], [1, 3], [1, 2], [0, 1], Ceil)?,
        Pool2d::new(2, [11, 11], [2, 2], [5, 5], [0, 0], Ceil)?,
        Pool2d::new(2, [3, 3], [9, 9], [7, 7], [8, 8], Ceil)?,
        Pool2d::new(2, [64, 66], [2, 2], [2, 2], [0, 0], Ceil)?,
        small_pool()?,
    ];
    Ok(Cases::new(corner_cases, random_pool(), small_pool()?))
}

fn random_pool() -> impl Strategy<Value = Pool2d> {
    let axis = || (0..=9usize, 1..=5usize, 1..=4usize, 0..=4usize);
    let rounding = prop_oneof![Just(PoolRounding::Ceil), Just(PoolRounding::Floor)];
    (0..=3usize, axis(), axis(), rounding)
        .prop_map(|(planes, rows, columns, rounding)| {
            // The padded input must be large enough for one window.
            let input = |(slack, kernel, _, pad): (usize, usize, usize, usize)| {
                (kernel.saturating_sub(2 * (pad % kernel)) + slack).max(1)
            };
            let pair = |of: fn((usize, usize, usize, usize)) -> usize| [of(rows), of(columns)];
            let (kernel, stride) = (pair(|axis| axis.1), pair(|axis| axis.2));
            let input = [input(rows), input(columns)];
            Pool2d::new(planes, input, kernel, stride, pair(|axis| axis.3 % axis.1), rounding)
        })
        .prop_filter_map("no window fits", Result::ok)
}
