//! [`Random`](crate::kernel::Random): numbers that are the same, bit for bit, on every device.

use super::{harness, vector_cases::refused};
use crate::{
    conformance::{
        runner::CheckRunner,
        check::{Check, checks},
        compare::{same, within},
        failure::Verdict,
        operand::{Operand, Placement, UNSET, unset},
        oracle::random as oracle,
        values::{Expected, Values, wide},
    },
    device::Device,
    element::Element,
    host::{self, Workers},
    memory::Src,
    op::RngKey,
};
use proptest::prelude::*;
use std::fmt::Debug;

pub(super) fn checks<D: Device>() -> Vec<Check<D>> {
    let mut checks = checks! {
        "uniform" of "uniform": uniform();
        "gaussian" of "gaussian": gaussian();
        "dropout" of "dropout": dropout();
    };
    checks.extend([Check::of_words("bernoulli", bernoulli), Check::of_words("integer", integer)]);
    checks
}

/// Lengths about pairs, quadruples, blocks.
const LENGTHS: [usize; 12] = [0, 1, 2, 3, 4, 5, 7, 255, 1025, 4099, 16_385, 33_001];

/// A key, a length and the parameters `P` of a distribution.
#[derive(Clone, Copy, Debug)]
struct Case<P> {
    key: RngKey,
    len: usize,
    of: P,
    y: Placement,
}

impl<P: Copy + Debug + 'static> Case<P> {
    const fn of(of: P) -> Self {
        Self { key: RngKey { seed: 1, stream: 2 }, len: 37, of, y: Placement::WHOLE }
    }

    /// Every length, set of parameters and placement; and keys of which each half counts.
    fn corners(choices: &[P]) -> Vec<Self> {
        let cases = choices.iter().copied().map(Self::of);
        let one = Self::of(choices[0]);
        let lengths = LENGTHS.map(|len| Self { len, ..one });
        let places = Placement::CORNERS.map(|y| Self { y, ..one });
        let keys = [(1 << 40, 0), (0, 1 << 40), (u64::MAX, 3), (3, u64::MAX)];
        let keys = keys.map(|(seed, stream)| Self { key: RngKey { seed, stream }, ..one });
        cases.chain(lengths).chain(places).chain(keys).collect()
    }

    fn any(choices: &'static [P]) -> BoxedStrategy<Self> {
        let len = prop_oneof![0..80usize, 0..3000usize];
        let of = prop::sample::select(choices);
        (any::<u64>(), any::<u64>(), len, of, Placement::any())
            .prop_map(|(seed, stream, len, of, y)| Self {
                key: RngKey { seed, stream },
                len,
                of,
                y,
            })
            .boxed()
    }
}

/// Intervals; of the last but one, narrow types hold few values, and of the last perhaps none.
const INTERVALS: [(f64, f64); 7] = [
    (0.0, 1.0),
    (-1.0, 1.0),
    (0.5, 0.5),
    (-3.0, 7.25),
    (0.0, 1e-3),
    (1.0, 1.01),
    (1.000_000_1, 1.000_000_2),
];

fn uniform<T: Element, D: Device>(bench: &CheckRunner<'_, D>) -> Verdict {
    let test = |case: &Case<(f64, f64)>| {
        let Case { key, len, of: (lo, hi), .. } = *case;
        let mut y = Operand::output(bench.device, &unset::<T>(len), case.y)?;
        bench.device.uniform(key, lo, hi, y.view_mut()?)?;
        same("y", &y.finish()?, &oracle::uniform(key, case.of, len))
    };
    bench.all(Case::corners(&INTERVALS), test)?;
    bench.each(Case::any(&INTERVALS), test)?;
    let infinite = (f64::MIN, f64::MAX);
    bench.all([(1.0, 0.0), (f64::NAN, 1.0), (0.0, f64::INFINITY), infinite], |&(lo, hi)| {
        let mut y = Operand::output(bench.device, &unset::<T>(3), Placement::WHOLE)?;
        let result = bench.device.uniform(RngKey::new(1), lo, hi, y.view_mut()?);
        refused(result, "an interval that is none")?;
        y.unchanged("y")
    })
}

/// Means and deviations.
const NORMALS: [(f64, f64); 5] = [(0.0, 1.0), (0.5, 0.0), (3.0, 0.01), (-10.0, 2.0), (0.0, 1e-3)];

/// What the device draws for a case.
fn normals<T: Element, D: Device>(
    bench: &CheckRunner<'_, D>,
    case: &Case<(f64, f64)>,
) -> Verdict<Vec<T>> {
    let Case { key, len, of: (mean, std), y } = *case;
    let mut y = Operand::output(bench.device, &unset::<T>(len), y)?;
    bench.device.gaussian(key, mean, std, y.view_mut()?)?;
    y.finish()
}

fn gaussian<T: Element, D: Device>(bench: &CheckRunner<'_, D>) -> Verdict {
    let test = |case: &Case<(f64, f64)>| {
        let got = normals::<T, D>(bench, case)?;
        within("y", &got, &oracle::gaussian::<T>(case.key, case.of, case.len))?;
        let wide = normals::<f64, D>(bench, case)?.into_iter().map(T::from_f64);
        same("y, with that of `f64` rounded", &got, &wide.collect::<Vec<_>>())?;
        // The last bits are those of the functions that the host spells out.
        let (mut cpu, (mean, std)) = (unset::<T>(case.len), case.of);
        host::gaussian(Workers::global(), case.key, mean, std, &mut cpu)?;
        same("y, with that of the CPU", &got, &cpu)
    };
    bench.all(Case::corners(&NORMALS), test)?;
    bench.each(Case::any(&NORMALS), test)?;
    bench.all([(0.0, -1.0), (f64::NAN, 1.0), (0.0, f64::INFINITY)], |&(mean, std)| {
        let mut y = Operand::output(bench.device, &unset::<T>(3), Placement::WHOLE)?;
        let result = bench.device.gaussian(RngKey::new(1), mean, std, y.view_mut()?);
        refused(result, "a distribution that is none")?;
        y.unchanged("y")
    })
}

fn dropout<T: Element, D: Device>(bench: &CheckRunner<'_, D>) -> Verdict {
    const SHARES: [f64; 5] = [1.0, 0.5, 0.75, 0.3, 1e-9];
    let test = |case: &Case<f64>| {
        let Case { key, len, of: keep, y: at } = *case;
        let x = Values::Reals.from(key.seed).take::<T>(len);
        let drawn = oracle::bernoulli(key, keep, len);
        let element = |(&drawn, x): (&u32, f64)| match drawn {
            0 => Expected::once(0.0),
            _ => Expected::near(x / keep, 2.0),
        };
        let want: Vec<_> = drawn.iter().zip(wide(&x)).map(element).collect();
        let (before, given) = (unset(len), ("x", &x[..], at));
        let [got] = harness::call(bench, [given], [("y", &before[..], at)], |[x], [y]| {
            bench.device.dropout(key, keep, x.into(), y)
        })?;
        within("y", &got, &want)?;
        let [got] = harness::call(bench, [], [("y", &x[..], at)], |[], [y]| {
            bench.device.dropout(key, keep, Src::InPlace, y)
        })?;
        within("y in place", &got, &want)
    };
    bench.all(Case::corners(&SHARES), test)?;
    bench.each(Case::any(&SHARES), test)?;
    let key = RngKey::new(1);
    bench.all([0.0, -0.1, 1.1, f64::NAN], |&keep| {
        let mut y = Operand::output(bench.device, &unset::<T>(3), Placement::WHOLE)?;
        let result = bench.device.dropout(key, keep, Src::InPlace, y.view_mut()?);
        refused(result, "a probability outside (0, 1]")?;
        y.unchanged("y")
    })?;
    harness::refuses_lengths::<T, D, _, _>(bench, [("x", 3)], [("y", 3)], |[x], [y]| {
        bench.device.dropout(key, 0.5, x.into(), y)
    })
}

fn bernoulli<D: Device>(bench: &CheckRunner<'_, D>) -> Verdict {
    const SHARES: [f64; 6] = [0.0, 1.0, 0.5, 0.3, 1e-9, 0.999_999_999_9];
    let test = |case: &Case<f64>| {
        let Case { key, len, of: p, .. } = *case;
        let mut y = Operand::output(bench.device, &vec![UNSET; len], case.y)?;
        bench.device.bernoulli(key, p, y.view_mut()?)?;
        same("y", &y.finish()?, &oracle::bernoulli(key, p, len))
    };
    bench.all(Case::corners(&SHARES), test)?;
    bench.each(Case::any(&SHARES), test)?;
    bench.all([-0.1, 1.1, f64::NAN], |&p| {
        let mut y = Operand::output(bench.device, &[UNSET; 3], Placement::WHOLE)?;
        let result = bench.device.bernoulli(RngKey::new(1), p, y.view_mut()?);
        refused(result, "a probability outside [0, 1]")?;
        y.unchanged("y")
    })
}

fn integer<D: Device>(bench: &CheckRunner<'_, D>) -> Verdict {
    const BOUNDS: [u64; 6] = [1, 2, 10, 1 << 31, 3_000_000_000, 1 << 32];
    let test = |case: &Case<u64>| {
        let Case { key, len, of: bound, .. } = *case;
        let mut y = Operand::output(bench.device, &vec![UNSET; len], case.y)?;
        bench.device.random_integers(key, bound, y.view_mut()?)?;
        same("y", &y.finish()?, &oracle::integer(key, bound, len))
    };
    bench.all(Case::corners(&BOUNDS), test)?;
    bench.each(Case::any(&BOUNDS), test)?;
    bench.all([0, (1 << 32) + 1, u64::MAX], |&bound| {
        let mut y = Operand::output(bench.device, &[UNSET; 3], Placement::WHOLE)?;
        let result = bench.device.random_integers(RngKey::new(1), bound, y.view_mut()?);
        refused(result, "a bound outside 1..=2³²")?;
        y.unchanged("y")
    })
}
