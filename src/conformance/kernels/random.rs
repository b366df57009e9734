//! Conformance checks of the kernel family [`Random`](crate::kernel::Random), whose numbers must be
//! bit-identical on every device.

use super::prelude::*;
use crate::{
    conformance::oracle::random as oracle,
    element::DType,
    host::{self, Workers},
    op::RngKey,
};
use std::{fmt::Debug, ops::Range};

checks! {
    "uniform" of "uniform": uniform();
    "gaussian" of "gaussian": gaussian();
    "dropout" of "dropout": dropout();
    without elements "bernoulli": bernoulli();
    without elements "random_integers": random_integers();
}

/// Lengths near multiples of 2, of 4 and of the thread block size, because kernels generate random
/// numbers in groups of these sizes.
const LENGTHS: [usize; 12] = [0, 1, 2, 3, 4, 5, 7, 255, 1025, 4099, 16_385, 33_001];

/// Key and length of a random operand, and the parameters `P` of its distribution.
#[derive(Clone, Copy, Debug)]
struct RandomCase<P> {
    key: RngKey,
    len: usize,
    parameters: P,
}

/// Returns cases of random operands: every length, parameter set and placement, and keys whose seed
/// or stream number exceeds 32 bits.
fn cases<P: Copy + Debug + 'static>(choices: &'static [P]) -> Cases<RandomCase<P>> {
    let base_case =
        RandomCase { key: RngKey { seed: 1, stream: 2 }, len: 37, parameters: choices[0] };
    let keys = [(1 << 40, 0), (0, 1 << 40), (u64::MAX, 3), (3, u64::MAX)];
    let keys = keys.map(|(seed, stream)| RandomCase { key: RngKey { seed, stream }, ..base_case });
    let whole_cases = choices.iter().map(|&parameters| RandomCase { parameters, ..base_case });
    let whole_cases =
        whole_cases.chain(LENGTHS.map(|len| RandomCase { len, ..base_case })).chain(keys);
    let placed_cases = Placement::CORNERS.map(CaseSetup::placed);
    let placed_cases =
        placed_cases.into_iter().chain([CaseSetup::FAR]).map(|setup| (base_case, setup));
    let special_case = RandomCase { parameters: choices[choices.len() / 2], ..base_case };
    let special_cases = CaseSetup::specials().map(|setup| (special_case, setup));
    let fixed_cases =
        whole_cases.map(|case| (case, CaseSetup::WHOLE)).chain(placed_cases).chain(special_cases);
    let len = prop_oneof![0..80usize, 0..3000usize];
    let random_cases = (any::<u64>(), any::<u64>(), len, prop::sample::select(choices)).prop_map(
        |(seed, stream, len, parameters)| RandomCase {
            key: RngKey { seed, stream },
            len,
            parameters,
        },
    );
    Cases::from_fixed(fixed_cases.collect(), random_cases)
}

/// Returns the numbers that a kernel generates for one case.
fn generated_numbers<U: Storable>(
    runner: &CheckRunner<'_>,
    setup: &CaseSetup,
    old_y: &[U],
    mut kernel: impl FnMut(ViewMut<'_, U, AnyDevice>) -> Result<()>,
) -> Verdict<Vec<U>> {
    let [y] = runner.call::<U, U, 0, 1>(setup, [], [("y", old_y)], |[], [y]| kernel(y))?;
    Ok(y)
}

/// Key of the random numbers in large operands.
const LARGE_KEY: RngKey = RngKey { seed: 3, stream: 4 };

/// Checks an output of 2²⁰ + 3 random numbers at its start, near the index 2¹⁶ and at its end.
/// `check` compares the elements at the given indices with the expected elements.
fn check_large<U: Storable + PartialEq>(
    runner: &CheckRunner<'_>,
    unset_value: U,
    kernel: impl FnMut(ViewMut<'_, U, AnyDevice>) -> Result<()>,
    check: impl Fn(&[U], Range<usize>) -> Verdict,
) -> Verdict {
    let old_y = vec![unset_value; PERIOD * COPIES];
    let got = generated_numbers(runner, &CaseSetup::WHOLE, &old_y, kernel)?;
    let middle_index = 1 << 16;
    for range in [0..9, middle_index - 9..middle_index + 9, got.len() - 9..got.len()] {
        check(&got[range.clone()], range.clone())
            .map_err(|flaw| flaw.in_case("indices of a large operand", &range))?;
    }
    Ok(())
}

/// Fails unless a kernel refuses each of the invalid parameters.
fn check_invalid<U: Storable, P: Copy + Debug>(
    runner: &CheckRunner<'_>,
    invalid: &str,
    parameters: impl IntoIterator<Item = P>,
    kernel: impl Fn(P, ViewMut<'_, U, AnyDevice>) -> Result<()>,
) -> Verdict {
    runner.try_cases(parameters, |&parameters| {
        let invalid = format!("{invalid}: {parameters:?}");
        runner
            .check_refused::<U, U, 0, 1>(&invalid, [], [("y", 3)], |[], [y]| kernel(parameters, y))
    })
}

/// Intervals of uniform distributions. A 16-bit type has few values in `[1, 1.01)`, and only `f64`
/// has many values in `[1.0000001, 1.0000002)`.
const INTERVALS: [(f64, f64); 7] = [
    (0.0, 1.0),
    (-1.0, 1.0),
    (0.5, 0.5),
    (-3.0, 7.25),
    (0.0, 1e-3),
    (1.0, 1.01),
    (1.000_000_1, 1.000_000_2),
];

fn uniform<T: Element>(runner: &CheckRunner<'_>) -> Verdict {
    let device = runner.device;
    runner.try_all(
        &cases(&INTERVALS),
        |&RandomCase { key, len, parameters: (low, high) }, setup| {
            let got = generated_numbers(runner, setup, &unset::<T>(len), |y| {
                device.uniform(key, low, high, y)
            })?;
            expect_bits("y", &got, &oracle::uniform(key, (low, high), 0..len))
        },
    )?;
    // Cases with large operands are slow, so the kit runs them only in `f32`.
    if T::DTYPE == DType::F32 {
        let (key, bounds) = (LARGE_KEY, (-1.0, 1.0));
        let kernel = |y: ViewMut<'_, T, AnyDevice>| device.uniform(key, bounds.0, bounds.1, y);
        check_large(runner, T::from_f64(f64::NAN), kernel, |got, indices| {
            expect_bits("y", got, &oracle::uniform(key, bounds, indices))
        })?;
    }
    let invalid = [(1.0, 0.0), (f64::NAN, 1.0), (0.0, f64::INFINITY), (f64::MIN, f64::MAX)];
    check_invalid::<T, _>(runner, "an invalid interval", invalid, |(low, high), y| {
        device.uniform(RngKey::new(1), low, high, y)
    })
}

/// Means and standard deviations of normal distributions.
const NORMALS: [(f64, f64); 5] = [(0.0, 1.0), (0.5, 0.0), (3.0, 0.01), (-10.0, 2.0), (0.0, 1e-3)];

/// Returns the normally distributed numbers that the device generates for a case.
fn normals<T: Element>(
    runner: &CheckRunner<'_>,
    &RandomCase { key, len, parameters: (mean, std) }: &RandomCase<(f64, f64)>,
    setup: &CaseSetup,
) -> Verdict<Vec<T>> {
    generated_numbers(runner, setup, &unset(len), |y| runner.device.gaussian(key, mean, std, y))
}

fn gaussian<T: Element>(runner: &CheckRunner<'_>) -> Verdict {
    runner.try_all(&cases(&NORMALS), |case, setup| {
        let got = normals::<T>(runner, case, setup)?;
        let (mean, std) = case.parameters;
        expect_within("y", &got, &oracle::gaussian::<T>(case.key, case.parameters, 0..case.len))?;
        let rounded_normals = normals::<f64>(runner, case, setup)?.into_iter().map(T::from_f64);
        expect_bits(
            "y (expected: y in `f64`, rounded_normals)",
            &got,
            &rounded_normals.collect::<Vec<_>>(),
        )?;
        // The oracle's logarithm and cosine may round differently from the kernel's, so the
        // comparison with the oracle allows rounding errors. The Gaussian numbers must also be
        // bit-identical to those of the host kernel.
        let mut host_y = unset::<T>(case.len);
        host::gaussian(Workers::global(), case.key, mean, std, &mut host_y)?;
        expect_bits("y (expected: y of the CPU)", &got, &host_y)
    })?;
    if T::DTYPE == DType::F32 {
        let (key, normal) = (LARGE_KEY, NORMALS[3]);
        let kernel =
            |y: ViewMut<'_, T, AnyDevice>| runner.device.gaussian(key, normal.0, normal.1, y);
        check_large(runner, T::from_f64(f64::NAN), kernel, |got, indices| {
            expect_within("y", got, &oracle::gaussian::<T>(key, normal, indices))
        })?;
    }
    let invalid = [(0.0, -1.0), (f64::NAN, 1.0), (0.0, f64::INFINITY)];
    check_invalid::<T, _>(runner, "an invalid mean or deviation", invalid, |(mean, std), y| {
        runner.device.gaussian(RngKey::new(1), mean, std, y)
    })
}

fn dropout<T: Element>(runner: &CheckRunner<'_>) -> Verdict {
    const KEEP_PROBABILITIES: [f64; 5] = [1.0, 0.5, 0.75, 0.3, 1e-9];
    let device = runner.device;
    runner.try_in_place(
        &cases(&KEEP_PROBABILITIES),
        |case, setup| {
            // A dropped element becomes 0, even if it is NaN or infinite.
            let x = match setup.values {
                Values::Specials => setup.stream().take::<T>(case.len),
                _ => Values::Reals.stream(case.key.seed).take::<T>(case.len),
            };
            (("x", x), [], "y")
        },
        |case, x, [], y| device.dropout(case.key, case.parameters, x, y),
        |&RandomCase { key, len, parameters: keep }, x, []| {
            let element = |(&bit, x): (&u32, &f64)| match bit {
                0 => Expected::exact(0.0),
                _ => Expected::approx(x / keep, 2.0),
            };
            let bits = oracle::bernoulli(key, keep, 0..len);
            ExpectedOutput::Within(bits.iter().zip(x).map(element).collect())
        },
    )?;
    if T::DTYPE == DType::F32 {
        let ones = vec![T::from_f64(1.0); PERIOD * COPIES];
        let x = Operand::new(device, &ones, Placement::WHOLE)?;
        let kernel =
            |y: ViewMut<'_, T, AnyDevice>| device.dropout(LARGE_KEY, 0.5, x.view()?.into(), y);
        check_large(runner, T::from_f64(f64::NAN), kernel, |got, indices| {
            let want = oracle::bernoulli(LARGE_KEY, 0.5, indices);
            let want: Vec<_> = want.into_iter().map(|kept| f64::from(2 * kept)).collect();
            expect_nearest("y", got, &want)
        })?;
    }
    let key = RngKey::new(1);
    let invalid = [0.0, -0.1, 1.1, f64::NAN];
    check_invalid::<T, _>(runner, "a probability outside (0, 1]", invalid, |keep, y| {
        device.dropout(key, keep, Src::InPlace, y)
    })?;
    runner.check_lengths::<T, T, 1, 1>([("x", 3)], [("y", 3)], |[x], [y]| {
        device.dropout(key, 0.5, x.into(), y)
    })
}

fn bernoulli(runner: &CheckRunner<'_>) -> Verdict {
    const PROBABILITIES: [f64; 6] = [0.0, 1.0, 0.5, 0.3, 1e-9, 0.999_999_999_9];
    let device = runner.device;
    runner.try_all(&cases(&PROBABILITIES), |&RandomCase { key, len, parameters: p }, setup| {
        let got =
            generated_numbers(runner, setup, &vec![UNSET; len], |y| device.bernoulli(key, p, y))?;
        expect_bits("y", &got, &oracle::bernoulli(key, p, 0..len))
    })?;
    let kernel = |y: ViewMut<'_, u32, AnyDevice>| device.bernoulli(LARGE_KEY, 0.5, y);
    check_large(runner, UNSET, kernel, |got, indices| {
        expect_bits("y", got, &oracle::bernoulli(LARGE_KEY, 0.5, indices))
    })?;
    check_invalid(runner, "a probability outside [0, 1]", [-0.1, 1.1, f64::NAN], |p, y| {
        device.bernoulli(RngKey::new(1), p, y)
    })
}

fn random_integers(runner: &CheckRunner<'_>) -> Verdict {
    const BOUNDS: [u64; 6] = [1, 2, 10, 1 << 31, 3_000_000_000, 1 << 32];
    let device = runner.device;
    runner.try_all(&cases(&BOUNDS), |&RandomCase { key, len, parameters: bound }, setup| {
        let got = generated_numbers(runner, setup, &vec![UNSET; len], |y| {
            device.random_integers(key, bound, y)
        })?;
        expect_bits("y", &got, &oracle::random_integers(key, bound, 0..len))
    })?;
    let kernel = |y: ViewMut<'_, u32, AnyDevice>| device.random_integers(LARGE_KEY, 10, y);
    check_large(runner, UNSET, kernel, |got, indices| {
        expect_bits("y", got, &oracle::random_integers(LARGE_KEY, 10, indices))
    })?;
    check_invalid(runner, "a bound outside 1..=2³²", [0, (1 << 32) + 1, u64::MAX], |bound, y| {
        device.random_integers(RngKey::new(1), bound, y)
    })
}
