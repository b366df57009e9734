//! Vectors: what kernels are tried on that take elements one by one.

use crate::{
    conformance::{
        runner::CheckRunner,
        failure::{Verdict, flaw},
        operand::{Operand, Placement, unset},
        values::{Expected, Values, wide},
    },
    device::Device,
    element::Element,
    error::Result,
    memory::{View, ViewMut},
};
use proptest::prelude::*;

/// Scalars at which kernels take shortcuts, and others; all give exact multiples of integers.
pub(super) const SCALARS: [f64; 5] = [0.0, 1.0, -1.0, 0.5, 2.0];

/// Lengths about the sizes of vectors, warps, chunks and blocks.
const LENGTHS: [usize; 14] = [0, 1, 2, 3, 7, 8, 31, 33, 64, 255, 257, 1024, 1025, 4099];

/// Operands of a vector kernel.
#[derive(Clone, Debug)]
pub(super) struct Case {
    pub(super) len: usize,
    pub(super) alpha: f64,
    pub(super) beta: f64,
    pub(super) values: Values,
    pub(super) seed: u64,
    pub(super) x: Placement,
    pub(super) y: Placement,
}

impl Case {
    fn of(len: usize) -> Self {
        let (x, y) = (Placement::WHOLE, Placement::WHOLE);
        Self { len, alpha: 0.5, beta: 2.0, values: Values::Integers, seed: 1, x, y }
    }

    /// Every length, every scalar, every placement.
    pub(super) fn corners() -> Vec<Self> {
        let mut cases: Vec<_> = LENGTHS.map(Self::of).into();
        for alpha in SCALARS {
            cases.extend(SCALARS.map(|beta| Self { alpha, beta, ..Self::of(19) }));
        }
        for x in Placement::CORNERS {
            cases.extend(Placement::CORNERS.map(|y| Self { x, y, ..Self::of(37) }));
        }
        cases
    }

    /// Any.
    pub(super) fn any() -> BoxedStrategy<Self> {
        let len = prop_oneof![0..80usize, 0..3000usize];
        let scalar = || prop::sample::select(&SCALARS[..]);
        (len, scalar(), scalar(), Values::any(), any::<u64>(), Placement::any(), Placement::any())
            .prop_map(|(len, alpha, beta, values, seed, x, y)| Self {
                len,
                alpha,
                beta,
                values,
                seed,
                x,
                y,
            })
            .boxed()
    }
}

/// A kernel of `x` and `y`.
pub(super) type Kernel<'a, T, D> =
    dyn Fn(&Case, View<'_, T, D>, ViewMut<'_, T, D>) -> Result<()> + 'a;

/// Tries a kernel that gives `y` element by element of `x` and, unless `fresh`, of `y`.
pub(super) fn maps<T: Element, D: Device>(
    bench: &CheckRunner<'_, D>,
    fresh: fn(&Case) -> bool,
    kernel: &Kernel<'_, T, D>,
    oracle: &dyn Fn(&Case, f64, f64) -> Expected,
) -> Verdict {
    let test = |case: &Case| {
        let mut draw = case.values.from(case.seed);
        let (xs, mut ys) = (draw.take::<T>(case.len), draw.take::<T>(case.len));
        let pairs = wide(&xs).into_iter().zip(wide(&ys));
        let want: Vec<Expected> = pairs.map(|(x, y)| oracle(case, x, y)).collect();
        if fresh(case) {
            ys = unset(case.len);
        }
        let x = Operand::input(bench.device, &xs, case.x)?;
        let mut y = Operand::output(bench.device, &ys, case.y)?;
        kernel(case, x.view()?, y.view_mut()?)?;
        x.unchanged("x")?;
        case.values.judge("y", &y.finish()?, &want)
    };
    bench.all(Case::corners(), test)?;
    bench.each(Case::any(), test)
}

/// A kernel that gives a number of `x` and `y`.
pub(super) type Total<'a, T, D> =
    dyn Fn(View<'_, T, D>, View<'_, T, D>) -> Result<<T as Element>::Acc> + 'a;

/// Tries a kernel that gives one number of `x` and `y`, in the accumulator.
pub(super) fn totals<T: Element, D: Device>(
    bench: &CheckRunner<'_, D>,
    kernel: &Total<'_, T, D>,
    oracle: fn(&[f64], &[f64]) -> Expected,
) -> Verdict {
    let test = |case: &Case| {
        let mut draw = case.values.from(case.seed);
        let (xs, ys) = (draw.take::<T>(case.len), draw.take::<T>(case.len));
        let x = Operand::input(bench.device, &xs, case.x)?;
        let y = Operand::input(bench.device, &ys, case.y)?;
        let total = kernel(x.view()?, y.view()?)?;
        x.unchanged("x")?;
        y.unchanged("y")?;
        case.values.judge("result", &[total], &[oracle(&wide(&xs), &wide(&ys))])
    };
    bench.all(Case::corners(), test)?;
    bench.each(Case::any(), test)
}

/// Fails if a call that makes no sense was taken.
pub(super) fn refused<R>(result: Result<R>, what: &str) -> Verdict {
    match result {
        Err(_) => Ok(()),
        Ok(_) => Err(flaw!("took {what} instead of an error")),
    }
}

/// Tries that a kernel refuses an `x` of another length than `y`, and leaves `y` alone.
pub(super) fn refuses_lengths<T: Element, D: Device>(
    bench: &CheckRunner<'_, D>,
    kernel: &Kernel<'_, T, D>,
) -> Verdict {
    bench.all([(3, 4), (4, 3), (0, 1), (1, 0), (1025, 1024)], |&(xs, ys): &(usize, usize)| {
        let x = Operand::input(bench.device, &vec![T::from_f64(1.0); xs], Placement::WHOLE)?;
        let ys = vec![T::from_f64(2.0); ys];
        let mut y = Operand::output(bench.device, &ys, Placement::CORNERS[1])?;
        let result = kernel(&Case::of(ys.len()), x.view()?, y.view_mut()?);
        refused(result, "`x` and `y` of different lengths")?;
        y.unchanged("y")
    })
}
