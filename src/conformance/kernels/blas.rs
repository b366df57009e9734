//! Checks of the vector kernels of [`Blas`](crate::kernel::Blas).

use super::{copied_bits::expect_copied_bits, prelude::*};
use crate::{conformance::values::repeated, device::AnyDevice, element::DType};
use num_traits::Zero;

checks! {
    "copy" of "copy": copy();
    "scal" of "scal": scal();
    "axpy" of "axpy": axpy();
    "axpby" of "axpby": axpby();
    "dot" of "dot": dot();
    "dot_strided" of "dot_strided": dot_strided();
    "asum" of "asum": asum();
    "sumsq" of "sumsq": sumsq();
    "amax" of "amax": amax();
}

fn copy<T: Element>(runner: &CheckRunner<'_>) -> Verdict {
    runner.try_kernel(
        &vector_cases().and_large(Vector::LARGE, COPIES, &[]),
        |case, setup| setup.inputs_and_outputs::<T, 1, 1>([("x", case.len)], [("y", case.len)]),
        |_, [x], [y]| runner.device.copy(x, y),
        |_, [x], _| [ExpectedOutput::Bits(x.to_vec())],
    )?;
    // A copy kernel that does arithmetic or converts to another element type would change some of
    // the copied values.
    let x = [-0.0, f64::NAN, f64::INFINITY, f64::MIN_POSITIVE, 1.0].map(T::from_f64);
    let y = ("y", &[T::default(); 5][..]);
    let [got] =
        runner.call(&CaseSetup::WHOLE, [("x", &x)], [y], |[x], [y]| runner.device.copy(x, y))?;
    expect_bits("y", &got, &x)?;
    expect_copied_bits::<T>(runner, |[x], [y]| runner.device.copy(x, y))
}

fn scal<T: Element>(runner: &CheckRunner<'_>) -> Verdict {
    runner.try_kernel(
        &vector_cases().without_refused().and_large(Vector::LARGE, COPIES, &[]),
        |case, setup| ([], setup.operands::<T, 1>([("x", case.len)])),
        |case, [], [x]| runner.device.scal(T::acc(case.alpha), x),
        |case, [], [x]| {
            [ExpectedOutput::Sums(x.iter().map(|x| Expected::exact(case.alpha * x)).collect())]
        },
    )
}

fn axpy<T: Element>(runner: &CheckRunner<'_>) -> Verdict {
    scaled_sum::<T>(runner, |_| 1.0, |case, x, y| runner.device.axpy(T::acc(case.alpha), x, y))
}

fn axpby<T: Element>(runner: &CheckRunner<'_>) -> Verdict {
    scaled_sum::<T>(
        runner,
        |case| case.beta,
        |case, x, y| runner.device.axpby(T::acc(case.alpha), x, T::acc(case.beta), y),
    )
}

/// Checks a kernel that computes `y ← α·x + β·y`.
fn scaled_sum<T: Element>(
    runner: &CheckRunner<'_>,
    beta: fn(&Vector) -> f64,
    kernel: impl Fn(&Vector, View<'_, T, AnyDevice>, ViewMut<'_, T, AnyDevice>) -> Result<()>,
) -> Verdict {
    runner.try_kernel(
        &vector_cases().and_large(Vector::LARGE, COPIES, &[]),
        |case, setup| {
            let [x, y] = setup.operands::<T, 2>([("x", case.len), ("y", case.len)]);
            ([x], [output_before_kernel(y, beta(case))])
        },
        |case, [x], [y]| kernel(case, x, y),
        |case, [x], [y]| {
            let scaled_y = |y| if beta(case) == 0.0 { 0.0 } else { beta(case) * y };
            let terms = x.iter().zip(y).map(|(x, &y)| [case.alpha * x, scaled_y(y)]);
            [ExpectedOutput::Sums(terms.map(Expected::from_iter).collect())]
        },
    )
}

fn dot<T: Element>(runner: &CheckRunner<'_>) -> Verdict {
    let kernel = |x: View<'_, T, AnyDevice>, y: View<'_, T, AnyDevice>| runner.device.dot(x, y);
    let oracle = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).collect();
    check_scalar_result(runner, kernel, oracle)?;
    check_large_result(runner, kernel, oracle, |a, b| a + b)?;
    // Both operands may be the same view.
    let sum_of_squares = |x: &[f64], _: &[f64]| x.iter().map(|x| x * x).collect();
    check_scalar_result::<T>(runner, |x, _| kernel(x, x), sum_of_squares)?;
    runner.try_cases([1, 4], |&len| {
        runner.check_lengths::<T, T, 2, 0>([("x", len), ("y", len)], [], |[x, y], []| {
            kernel(x, y).map(drop)
        })
    })
}

/// Checks a kernel that returns one number of the accumulator type.
fn check_scalar_result<T: Element>(
    runner: &CheckRunner<'_>,
    kernel: impl Fn(View<'_, T, AnyDevice>, View<'_, T, AnyDevice>) -> Result<T::Acc>,
    oracle: fn(&[f64], &[f64]) -> Expected,
) -> Verdict {
    runner.try_all(&vector_cases(), |case, setup| {
        let mut stream = setup.stream();
        let [x, y] = [(); 2].map(|()| stream.take::<T>(case.len));
        let mut sums = Vec::new();
        runner.call::<T, T, 2, 0>(setup, [("x", &x), ("y", &y)], [], |[x, y], []| {
            sums.push(kernel(x, y)?);
            Ok(())
        })?;
        let sum = &sums[..1];
        expect_same_bits("result", sum, &sums[sums.len() - 1..])?;
        setup.values.compare("result", sum, &[oracle(&wide(&x), &wide(&y))])
    })
}

/// Last elements of the vectors of a large case, not 0, so that the check detects a kernel that
/// skips the end of the vectors.
const LAST: [f64; 3] = [9.0, 2.0, -10.0];

/// Checks a kernel that returns one number, with vectors of 2²⁰ + 3 elements. `oracle` computes the
/// results of parts of the vectors, and `combine` combines two results into one.
fn check_large_result<T: Element>(
    runner: &CheckRunner<'_>,
    kernel: impl Fn(View<'_, T, AnyDevice>, View<'_, T, AnyDevice>) -> Result<T::Acc>,
    oracle: fn(&[f64], &[f64]) -> Expected,
    combine: fn(f64, f64) -> f64,
) -> Verdict {
    // Cases with large operands are slow, so the kit runs them only in `f32`. All sums of these
    // cases are exact in `f32`.
    if T::DTYPE != DType::F32 {
        return Ok(());
    }
    let periods = [1, 2].map(|seed| Values::Integers.stream(seed).take::<T>(PERIOD));
    let ends = periods
        .each_ref()
        .map(|period| [&period[..PERIOD - LAST.len()], &LAST.map(T::from_f64)].concat());
    let [x, y] = [0, 1].map(|i| [repeated(&periods[i], COPIES - 1), ends[i].clone()].concat());
    let mut results = Vec::new();
    runner.call::<T, T, 2, 0>(&CaseSetup::WHOLE, [("x", &x), ("y", &y)], [], |[x, y], []| {
        results.push(kernel(x, y)?);
        Ok(())
    })?;
    let of = |[x, y]: &[Vec<T>; 2]| oracle(&wide(x), &wide(y)).value;
    let want = std::iter::repeat_n(of(&periods), COPIES - 1).fold(of(&ends), combine);
    let name = format!("result for operands of {} elements", x.len());
    expect_nearest(&name, &results[..1], &[want])
}

/// Case of a strided dot product. Each operand ends with `rest` elements that the kernel must not
/// use.
#[derive(Clone, Copy, Debug)]
struct StridedDot {
    n: usize,
    strides: [usize; 2],
    rest: usize,
}

impl StridedDot {
    fn lengths(&self) -> [usize; 2] {
        let span = |stride| self.n.checked_sub(1).map_or(0, |last| last * stride + 1);
        self.strides.map(|stride| span(stride) + self.rest)
    }

    fn cases() -> Cases<Self> {
        let [x, y] = [Placement::WHOLE, Placement::CORNERS[3]];
        let setup = CaseSetup { places: [x, y, x, y, x], ..CaseSetup::WHOLE };
        let fixed_cases = [0, 1, 2, 33, 1025]
            .into_iter()
            .flat_map(|n| [[1, 1], [0, 1], [3, 0], [2, 5]].map(|strides| (n, strides)))
            .map(|(n, strides)| (Self { n, strides, rest: n % 2 }, setup));
        let fixed_cases =
            fixed_cases.chain([(Self { n: 33, strides: [2, 1], rest: 1 }, CaseSetup::FAR)]);
        let random_cases = (0..500usize, [0..6usize, 0..6usize], 0..3usize)
            .prop_map(|(n, strides, rest)| Self { n, strides, rest });
        Cases::from_fixed(fixed_cases.collect(), random_cases)
    }
}

fn dot_strided<T: Element>(runner: &CheckRunner<'_>) -> Verdict {
    runner.try_all(&StridedDot::cases(), |case, setup| {
        let StridedDot { n, strides: [incx, incy], .. } = *case;
        let mut stream = setup.stream();
        let [x, y] = case.lengths().map(|len| stream.take::<T>(len));
        let mut dot = T::Acc::zero();
        runner.call::<T, T, 2, 0>(setup, [("x", &x), ("y", &y)], [], |[x, y], []| {
            dot = runner.device.dot_strided(n, x, incx, y, incy)?;
            Ok(())
        })?;
        let term = |i: usize| x[i * incx].to_f64() * y[i * incy].to_f64();
        setup.values.compare("result", &[dot], &[(0..n).map(term).collect()])
    })?;
    large_dot_strided::<T>(runner)?;
    // Both operands may be the same view.
    runner.try_cases([[1, 1], [2, 1], [1, 3], [2, 2]], |&[incx, incy]| {
        let x = Values::Integers.stream(1).take::<T>(40);
        let mut dot = T::Acc::zero();
        runner.call::<T, T, 1, 0>(&CaseSetup::WHOLE, [("x", &x)], [], |[x], []| {
            dot = runner.device.dot_strided(13, x, incx, x, incy)?;
            Ok(())
        })?;
        let want: Expected = (0..13).map(|i| x[i * incx].to_f64() * x[i * incy].to_f64()).collect();
        Values::Integers.compare("result for equal operands", &[dot], &[want])
    })?;
    runner.try_cases([("x", 6, 4), ("y", 7, 3)], |&(short, x, y)| {
        let (found, needed) = if short == "x" { (x, 7) } else { (y, 4) };
        let invalid = format!(
            "`{short}` of {found} elements instead of at least {needed} (4 elements; stride 2 in \
             `x`, 1 in `y`)"
        );
        runner.check_refused::<T, T, 2, 0>(&invalid, [("x", x), ("y", y)], [], |[x, y], []| {
            runner.device.dot_strided(4, x, 2, y, 1).map(drop)
        })
    })
}

/// Checks a strided dot product of 2²⁰ + 3 terms. The sum of the terms is exact in `f32`.
fn large_dot_strided<T: Element>(runner: &CheckRunner<'_>) -> Verdict {
    if T::DTYPE != DType::F32 {
        return Ok(());
    }
    let case = StridedDot { n: COPIES * PERIOD, strides: [2, 1], rest: 0 };
    let [mut x, mut y] = case.lengths().map(|len| {
        let period = Values::Integers.stream(1).take::<T>(PERIOD);
        repeated(&period, len.div_ceil(PERIOD))[..len].to_vec()
    });
    // The last terms are not 0, so that the check detects a kernel that skips them.
    let first_of_last = case.n - LAST.len();
    for (i, value) in (first_of_last..).zip(LAST.map(T::from_f64)) {
        (x[2 * i], y[i]) = (value, value);
    }
    let want: f64 = (0..case.n).map(|i| x[2 * i].to_f64() * y[i].to_f64()).sum();
    let mut dot = T::Acc::zero();
    runner.call::<T, T, 2, 0>(&CaseSetup::WHOLE, [("x", &x), ("y", &y)], [], |[x, y], []| {
        dot = runner.device.dot_strided(case.n, x, 2, y, 1)?;
        Ok(())
    })?;
    expect_nearest("result with more than 2²⁰ terms", &[dot], &[want])
}

fn asum<T: Element>(runner: &CheckRunner<'_>) -> Verdict {
    let oracle = |x: &[f64], _: &[f64]| x.iter().map(|x| x.abs()).collect();
    check_scalar_result::<T>(runner, |x, _| runner.device.asum(x), oracle)?;
    check_large_result::<T>(runner, |x, _| runner.device.asum(x), oracle, |a, b| a + b)
}

fn sumsq<T: Element>(runner: &CheckRunner<'_>) -> Verdict {
    let oracle = |x: &[f64], _: &[f64]| x.iter().map(|x| x * x).collect();
    check_scalar_result::<T>(runner, |x, _| runner.device.sumsq(x), oracle)?;
    check_large_result::<T>(runner, |x, _| runner.device.sumsq(x), oracle, |a, b| a + b)
}

fn amax<T: Element>(runner: &CheckRunner<'_>) -> Verdict {
    let oracle = |x: &[f64], _: &[f64]| {
        let larger_magnitude =
            |max: f64, x: &f64| if max.is_nan() || x.abs() <= max { max } else { x.abs() };
        Expected::exact(x.iter().fold(0.0, larger_magnitude))
    };
    check_scalar_result::<T>(runner, |x, _| runner.device.amax(x), oracle)?;
    check_large_result::<T>(runner, |x, _| runner.device.amax(x), oracle, f64::max)?;
    // Each case tests a different position `at` of the largest element, of an infinity and of a
    // NaN.
    runner.try_cases((0..70).step_by(3), |&at: &usize| {
        let large_values =
            [(-5.0, Placement::CORNERS[1]), (f64::NEG_INFINITY, Placement::CORNERS[1])];
        for (value, place) in large_values.into_iter().chain([(f64::NAN, Placement::WHOLE)]) {
            let mut x = Values::Integers.stream(1).take::<T>(70);
            x[at] = T::from_f64(value);
            let x = Operand::new(runner.device, &x, place)?;
            let name = format!("result with x[{at}] = {value}");
            expect_nearest(&name, &[runner.device.amax(x.view()?)?], &[value.abs()])?;
        }
        Ok(())
    })
}
