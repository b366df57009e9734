//! [`Blas`](crate::kernel::Blas): vectors; and the list of all of its checks.

use super::{
    matrices::{gemm, gemm_batched, gemv},
    vector_cases::{Case, maps, refused, refuses_lengths, totals},
};
use crate::{
    conformance::{
        runner::CheckRunner,
        check::{Check, checks},
        compare::{exact, same},
        failure::{Verdict, flaw},
        operand::{Operand, Placement, unset},
        values::{Expected, Values},
    },
    device::Device,
    element::Element,
    error::Result,
    memory::{View, ViewMut},
};
use num_traits::Float;
use proptest::prelude::*;

pub(super) fn checks<D: Device>() -> Vec<Check<D>> {
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
        "gemv" of "gemv": gemv();
        "gemm" of "gemm": gemm();
        "gemm_batched" of "gemm_batched": gemm_batched();
    }
}

fn copy<T: Element, D: Device>(bench: &CheckRunner<'_, D>) -> Verdict {
    let kernel = |_: &Case, x: View<'_, T, D>, y: ViewMut<'_, T, D>| bench.device.copy(x, y);
    maps(bench, |_| true, &kernel, &|_, x, _| Expected::once(x))?;
    refuses_lengths(bench, &kernel)?;
    // Bits, not values.
    let xs = [-0.0, f64::NAN, f64::INFINITY, f64::MIN_POSITIVE, 1.0].map(T::from_f64);
    let x = Operand::input(bench.device, &xs, Placement::WHOLE)?;
    let mut y = Operand::output(bench.device, &[T::default(); 5], Placement::WHOLE)?;
    bench.device.copy(x.view()?, y.view_mut()?)?;
    same("y", &y.finish()?, &xs)
}

fn scal<T: Element, D: Device>(bench: &CheckRunner<'_, D>) -> Verdict {
    let kernel = |case: &Case, _: View<'_, T, D>, x: ViewMut<'_, T, D>| -> Result<()> {
        bench.device.scal(T::acc(case.alpha), x)
    };
    maps(bench, |_| false, &kernel, &|case, _, x| Expected::once(case.alpha * x))
}

fn axpy<T: Element, D: Device>(bench: &CheckRunner<'_, D>) -> Verdict {
    let kernel = |case: &Case, x: View<'_, T, D>, y: ViewMut<'_, T, D>| -> Result<()> {
        bench.device.axpy(T::acc(case.alpha), x, y)
    };
    maps(bench, |_| false, &kernel, &|case, x, y| [case.alpha * x, y].into_iter().collect())?;
    refuses_lengths(bench, &kernel)
}

fn axpby<T: Element, D: Device>(bench: &CheckRunner<'_, D>) -> Verdict {
    let kernel = |case: &Case, x: View<'_, T, D>, y: ViewMut<'_, T, D>| -> Result<()> {
        bench.device.axpby(T::acc(case.alpha), x, T::acc(case.beta), y)
    };
    let oracle = |case: &Case, x, y| [case.alpha * x, case.beta * y].into_iter().collect();
    maps(bench, |case| case.beta == 0.0, &kernel, &oracle)?;
    refuses_lengths(bench, &kernel)
}

fn dot<T: Element, D: Device>(bench: &CheckRunner<'_, D>) -> Verdict {
    let kernel = |x: View<'_, T, D>, y: View<'_, T, D>| bench.device.dot(x, y);
    totals(bench, &kernel, |x, y| x.iter().zip(y).map(|(x, y)| x * y).collect())?;
    bench.all([(3, 4), (4, 3), (0, 1)], |&(xs, ys): &(usize, usize)| {
        let x = Operand::input(bench.device, &vec![T::from_f64(1.0); xs], Placement::WHOLE)?;
        let y = Operand::input(bench.device, &vec![T::from_f64(1.0); ys], Placement::WHOLE)?;
        refused(bench.device.dot(x.view()?, y.view()?), "`x` and `y` of different lengths")
    })
}

/// Operands of a strided dot product: lengths are what is used, and some.
#[derive(Clone, Copy, Debug)]
struct Strided {
    n: usize,
    steps: [usize; 2],
    rest: usize,
    values: Values,
    seed: u64,
    x: Placement,
    y: Placement,
}

impl Strided {
    fn lengths(&self) -> [usize; 2] {
        self.steps.map(|step| match self.n {
            0 => self.rest,
            n => (n - 1) * step + 1 + self.rest,
        })
    }

    fn corners() -> Vec<Self> {
        let (values, x, y) = (Values::Integers, Placement::WHOLE, Placement::CORNERS[3]);
        let all = [0, 1, 2, 33, 1025]
            .into_iter()
            .flat_map(|n| [[1, 1], [0, 1], [3, 0], [2, 5]].map(|steps| (n, steps)));
        all.map(|(n, steps)| Self { n, steps, rest: n % 2, values, seed: 1, x, y }).collect()
    }

    fn any() -> BoxedStrategy<Self> {
        let steps = [0..6usize, 0..6usize];
        let places = (Placement::any(), Placement::any());
        (0..500usize, steps, 0..3usize, Values::any(), any::<u64>(), places)
            .prop_map(|(n, steps, rest, values, seed, (x, y))| Self {
                n,
                steps,
                rest,
                values,
                seed,
                x,
                y,
            })
            .boxed()
    }
}

fn dot_strided<T: Element, D: Device>(bench: &CheckRunner<'_, D>) -> Verdict {
    let test = |case: &Strided| {
        let Strided { n, steps: [incx, incy], .. } = *case;
        let mut draw = case.values.from(case.seed);
        let [xs, ys] = case.lengths().map(|len| draw.take::<T>(len));
        let x = Operand::input(bench.device, &xs, case.x)?;
        let y = Operand::input(bench.device, &ys, case.y)?;
        let dot = bench.device.dot_strided(n, x.view()?, incx, y.view()?, incy)?;
        let term = |i: usize| xs[i * incx].to_f64() * ys[i * incy].to_f64();
        case.values.judge("result", &[dot], &[(0..n).map(term).collect()])
    };
    bench.all(Strided::corners(), test)?;
    bench.each(Strided::any(), test)?;
    bench.all([(6, 4), (7, 3)], |&(xs, ys): &(usize, usize)| {
        let x = Operand::input(bench.device, &vec![T::from_f64(1.0); xs], Placement::WHOLE)?;
        let y = Operand::input(bench.device, &vec![T::from_f64(1.0); ys], Placement::WHOLE)?;
        let dot = bench.device.dot_strided(4, x.view()?, 2, y.view()?, 1);
        refused(dot, "an operand that ends before the last element used")
    })
}

fn asum<T: Element, D: Device>(bench: &CheckRunner<'_, D>) -> Verdict {
    let kernel = |x: View<'_, T, D>, _: View<'_, T, D>| bench.device.asum(x);
    totals(bench, &kernel, |x, _| x.iter().map(|x| x.abs()).collect())
}

fn sumsq<T: Element, D: Device>(bench: &CheckRunner<'_, D>) -> Verdict {
    let kernel = |x: View<'_, T, D>, _: View<'_, T, D>| bench.device.sumsq(x);
    totals(bench, &kernel, |x, _| x.iter().map(|x| x * x).collect())
}

fn amax<T: Element, D: Device>(bench: &CheckRunner<'_, D>) -> Verdict {
    let kernel = |x: View<'_, T, D>, _: View<'_, T, D>| bench.device.amax(x);
    totals(bench, &kernel, |x, _| {
        Expected::once(x.iter().fold(0.0, |max: f64, x| max.max(x.abs())))
    })?;
    // One that is negative and largest, at each place in turn; then one that is infinite.
    bench.all((0..70).step_by(3), |&at: &usize| {
        for large in [-5.0, f64::NEG_INFINITY] {
            let mut xs = Values::Integers.from(1).take::<T>(70);
            xs[at] = T::from_f64(large);
            let x = Operand::input(bench.device, &xs, Placement::CORNERS[1])?;
            exact("result", &[bench.device.amax(x.view()?)?], &[-large])?;
        }
        let mut xs = Values::Integers.from(1).take::<T>(70);
        xs[at] = unset(1)[0];
        let x = Operand::input(bench.device, &xs, Placement::WHOLE)?;
        match bench.device.amax(x.view()?)? {
            max if max.is_nan() => Ok(()),
            max => Err(flaw!("result is {max} where an element is NaN")),
        }
    })
}
