//! Conformance checks of the kernel family [`Normalize`](crate::kernel::Normalize).

use super::{cases::sparse, harness::as_slices, prelude::*};
use crate::{
    conformance::{expected::epsilon, oracle::normalize as oracle, values::ValueStream},
    op::{EpsilonPlacement, Lrn, LrnRegion, Standardize},
};

checks! {
    "softmax" of "softmax": softmax();
    "softmax_backward" of "softmax_backward": softmax_backward();
    "lrn_across" of "lrn": lrn(LrnRegion::AcrossChannels);
    "lrn_within" of "lrn": lrn(LrnRegion::WithinChannel);
    "lrn_across_backward" of "lrn_backward": lrn_backward(LrnRegion::AcrossChannels);
    "lrn_within_backward" of "lrn_backward": lrn_backward(LrnRegion::WithinChannel);
    "moments" of "moments": moments();
    "standardize" of "standardize": standardize();
    "standardize_backward" of "standardize_backward": standardize_backward();
}

fn softmax<T: Element>(runner: &CheckRunner<'_>) -> Verdict {
    let device = runner.device;
    runner.try_in_place(
        &large_rows(normalization_cases()?, &[]).and(long_axes()),
        |axis, setup| (("x", setup.stream().uniform::<T>(-8.0, 8.0, axis.count())), [], "y"),
        |axis, x, [], y| device.softmax(axis, x, y),
        |axis, x, []| ExpectedOutput::Within(oracle::softmax(axis, x)),
    )?;
    let infinity = f64::INFINITY;
    let axis = Axis::new(2, 3, 2)?;
    let cases = [
        // The exponentials of the scores overflow.
        ([1e4, -1e4, 1e4, 0.0, -1e4, 1e4], [0.5, 0.0, 0.5, 0.0, 0.0, 1.0]),
        // A NaN must affect only the elements with the same outer and inner index.
        (
            [-1e4, f64::NAN, -1e4, 1.0, -1e4, 1.0],
            [1.0 / 3.0, f64::NAN, 1.0 / 3.0, f64::NAN, 1.0 / 3.0, f64::NAN],
        ),
        // The softmax of −∞ is 0, and +∞ makes all elements along the axis NaN.
        (
            [-infinity, 1.0, 2.0, infinity, 2.0, -infinity],
            [0.0, f64::NAN, 0.5, f64::NAN, 0.5, f64::NAN],
        ),
        // The softmax is NaN where all elements along the axis are −∞.
        (
            [0.0, -infinity, 0.0, -infinity, 0.0, -infinity],
            [1.0 / 3.0, f64::NAN, 1.0 / 3.0, f64::NAN, 1.0 / 3.0, f64::NAN],
        ),
    ];
    runner.try_cases(cases, |(x, want)| {
        let x: Vec<T> = [*x; 2].concat().into_iter().map(T::from_f64).collect();
        let y = ("y", &unset(12)[..]);
        let [got] = runner.call(&CaseSetup::WHOLE, [("x", &x)], [y], |[x], [y]| {
            device.softmax(&axis, x.into(), y)
        })?;
        let x = wide(&x);
        expect_nearest(Output::from("y").of(&[("x", &x)]), &got, &[*want; 2].concat())
    })
}

/// Three axes: one with more than 65,535 outer indices, one with an extent above 32,767, and one
/// with more than 2²⁰ inner indices.
const LARGE_AXES: [Axis; 3] = [
    Axis { outer: ROWS, extent: 3, inner: 1 },
    Axis { outer: 2, extent: 40_009, inner: 3 },
    Axis { outer: 1, extent: 1, inner: (1 << 20) + 3 },
];

/// Adds a case with more than 65,535 rows to the cases of a kernel that computes along an axis.
/// `shared` holds the names of the operands with one element per index of the axis.
fn large_rows(cases: Cases<Axis>, shared: &'static [&'static str]) -> Cases<Axis> {
    let rows = |copies| Axis { outer: copies * PERIOD, extent: 3, inner: 1 };
    cases.and_large([rows(1), rows(ROW_COPIES)], ROW_COPIES, shared)
}

/// Returns cases with more than 4,096 elements along the axis. Thread blocks of a GPU kernel may
/// not have enough registers or shared memory to hold all elements along the axis.
fn long_axes() -> [(Axis, CaseSetup); 2] {
    [[2, 4100, 1], [1, 4100, 2]]
        .map(|[outer, extent, inner]| (Axis { outer, extent, inner }, CaseSetup::WHOLE))
}

fn softmax_backward<T: Element>(runner: &CheckRunner<'_>) -> Verdict {
    runner.try_in_place(
        &large_rows(normalization_cases()?, &[]).and(long_axes()),
        |axis, setup| {
            let [y, dy] = setup.operands::<T, 2>(["y", "dy"].map(|name| (name, axis.count())));
            (dy, [y], "dx")
        },
        |axis, dy, [y], dx| runner.device.softmax_backward(axis, y, dy, dx),
        |axis, dy, [y]| ExpectedOutput::Sums(oracle::softmax_backward(axis, y, dy)),
    )
}

fn lrn<T: Element>(runner: &CheckRunner<'_>, region: LrnRegion) -> Verdict {
    let device = runner.device;
    runner.try_kernel(
        &large_batch(lrn_cases(region), region),
        |op, setup| {
            let len = op.count();
            setup.inputs_and_outputs::<T, 1, 2>([("x", len)], [("scale", len), ("y", len)])
        },
        |op, [x], [scale, y]| device.lrn(op, x, scale, y),
        |op, [x], _| {
            [
                ExpectedOutput::Within(oracle::lrn_scale(op, x)),
                ExpectedOutput::Within(oracle::lrn(op, x)),
            ]
        },
    )?;
    runner.try_cases([lrn_op(region, [1, 3, 2, 2], 2)], |op| {
        let (x, outputs) = ([("x", 12)], [("scale", 12), ("y", 12)]);
        runner.check_refused::<T, T, 1, 2>(
            "the even region size 2",
            x,
            outputs,
            |[x], [scale, y]| device.lrn(op, x, scale, y),
        )
    })
}

fn lrn_backward<T: Element>(runner: &CheckRunner<'_>, region: LrnRegion) -> Verdict {
    runner.try_kernel(
        &large_batch(lrn_cases(region), region),
        |op, setup| {
            let mut stream = setup.stream();
            let [x, dy] = [(); 2].map(|()| stream.take::<T>(op.count()));
            let to_elements = |y: Vec<Expected>| y.iter().map(|y| T::from_f64(y.value)).collect();
            let (y, scale) = (oracle::lrn(op, &wide(&x)), oracle::lrn_scale(op, &wide(&x)));
            let inputs =
                [("x", x), ("y", to_elements(y)), ("scale", to_elements(scale)), ("dy", dy)];
            (inputs, [("dx", unset(op.count()))])
        },
        |op, [x, y, scale, dy], [dx]| runner.device.lrn_backward(op, x, y, scale, dy, dx),
        |op, inputs, _| [ExpectedOutput::Within(oracle::lrn_backward(op, inputs))],
    )
}

fn moments<T: Element>(runner: &CheckRunner<'_>) -> Verdict {
    let device = runner.device;
    // The operands have a mean near 0 in the first run, and near 100 in the second run. With a mean
    // near 100, a variance that is computed as a difference of squares would lose digits by
    // cancellation.
    for has_large_mean in [false, true] {
        let large_axes = LARGE_AXES.into_iter().filter(|_| !has_large_mean);
        let cases = normalization_cases()?.filter(|axis| axis.reduced_count() > 0);
        runner.try_kernel(
            &cases.without_specials().and_whole(large_axes),
            |axis, setup| {
                let x = match has_large_mean {
                    true => setup.stream().uniform::<T>(99.0, 101.0, axis.count()),
                    false => sparse(setup.stream().take(axis.count())),
                };
                ([("x", x)], ["mean", "variance"].map(|name| (name, unset(axis.extent))))
            },
            |axis, [x], [mean, variance]| device.moments(axis, x, mean, variance),
            |axis, [x], _| {
                oracle::moments(axis, x, epsilon::<T::Acc>()).map(ExpectedOutput::Within)
            },
        )?;
    }
    // If an element is NaN or infinite, neither the mean nor the variance is finite.
    runner.try_cases(CaseSetup::specials(), |setup| {
        let axis = Axis::new(2, 9, 3)?;
        let x = setup.stream().take::<T>(axis.count());
        let outputs = ["mean", "variance"].map(|name| (name, vec![T::default(); axis.extent]));
        let outputs = as_slices(&outputs);
        let got = runner.call(setup, [("x", &x)], outputs, |[x], [mean, variance]| {
            device.moments(&axis, x, mean, variance)
        })?;
        let want = oracle::moments(&axis, &wide(&x), epsilon::<T::Acc>());
        for ((name, _), (mut got, want)) in outputs.into_iter().zip(got.into_iter().zip(want)) {
            for (got, want) in got.iter_mut().zip(&want) {
                if !want.value.is_finite() && !got.to_f64().is_finite() {
                    *got = T::from_f64(want.value);
                }
            }
            expect_within(name, &got, &want)?;
        }
        Ok(())
    })?;
    let empty_axis = Axis::new(0, 3, 2)?;
    let outputs = [("mean", 3), ("variance", 3)];
    let invalid = "an axis without elements";
    runner.check_refused::<T, T, 1, 2>(invalid, [("x", 0)], outputs, |[x], [mean, variance]| {
        device.moments(&empty_axis, x, mean, variance)
    })
}

const EPSILON_PLACEMENTS: [EpsilonPlacement; 2] =
    [EpsilonPlacement::AddedToVariance, EpsilonPlacement::AddedToDeviation];

fn with_epsilon(&(axis, place): &(Axis, EpsilonPlacement)) -> Standardize {
    Standardize { axis, epsilon: 0.125, epsilon_placement: place }
}

/// Returns operands of `standardize`: numbers, and a mean and a variance for each position of the
/// axis.
fn numbers_and_moments<T: Element>(axis: &Axis, stream: &mut ValueStream) -> [NamedValues<T>; 3] {
    let (x, mean) = (stream.take(axis.count()), stream.take(axis.extent));
    [("x", x), ("mean", mean), ("variance", stream.uniform(0.0, 2.0, axis.extent))]
}

fn standardize<T: Element>(runner: &CheckRunner<'_>) -> Verdict {
    let device = runner.device;
    EPSILON_PLACEMENTS.iter().try_for_each(|&place| {
        runner.try_in_place(
            &large_rows(normalization_cases()?, &["mean", "variance"]).with(&[place]),
            |(axis, _), setup| {
                let [x, mean, variance] = numbers_and_moments::<T>(axis, &mut setup.stream());
                (x, [mean, variance], "y")
            },
            |case, x, [m, v], y| device.standardize(&with_epsilon(case), x, m, v, y),
            |case, x, [m, v]| {
                ExpectedOutput::Within(oracle::standardize(&with_epsilon(case), x, m, v))
            },
        )
    })
}

fn standardize_backward<T: Element>(runner: &CheckRunner<'_>) -> Verdict {
    let device = runner.device;
    EPSILON_PLACEMENTS.iter().try_for_each(|&place| {
        runner.try_in_place(
            &normalization_cases()?.and_whole(LARGE_AXES).with(&[place]),
            |(axis, _), setup| {
                let mut stream = setup.stream();
                let inputs = numbers_and_moments::<T>(axis, &mut stream);
                (("dy", sparse(stream.take(axis.count()))), inputs, "dx")
            },
            |case, dy, [x, m, v], dx| {
                device.standardize_backward(&with_epsilon(case), x, m, v, dy, dx)
            },
            |case, dy, [x, m, v]| {
                let op = with_epsilon(case);
                ExpectedOutput::Within(oracle::standardize_backward(&op, x, [m, v], dy))
            },
        )
    })
}

/// Returns cases of normalization along an axis: empty axes, one element, class scores of batches
/// and of pixels, and many elements along, before and after the axis.
fn normalization_cases() -> Result<Cases<Axis>> {
    let extents = [
        [0, 3, 2],
        [2, 0, 3],
        [2, 3, 0],
        [1, 1, 1],
        [3, 7, 1],
        [64, 10, 1],
        [2, 1025, 1],
        [1, 3, 1025],
        [2, 33, 17],
        [300, 2, 5],
        [2, 5, 9],
    ];
    let corner_cases = extents.map(|[outer, extent, inner]| Axis { outer, extent, inner }).into();
    let extent = || prop_oneof![0..=4usize, 1..=20usize];
    let random_cases = (extent(), prop_oneof![1..=20usize, 1..=300usize], extent())
        .prop_map(|(outer, extent, inner)| Axis { outer, extent, inner });
    Ok(Cases::new(corner_cases, random_cases, Axis::new(2, 3, 2)?))
}

fn lrn_op(region: LrnRegion, [batch, channels, height, width]: [usize; 4], size: usize) -> Lrn {
    let (alpha, beta, k) = (0.5, 0.75, 2.0);
    Lrn { region, batch, channels, plane: [height, width], size, alpha, beta, k }
}

/// Adds a batch of more than 65,535 images to cases of LRN.
fn large_batch(cases: Cases<Lrn>, region: LrnRegion) -> Cases<Lrn> {
    let batch = |copies| lrn_op(region, [copies * PERIOD, 3, 1, 1], 3);
    cases.and_large([batch(1), batch(ROW_COPIES)], ROW_COPIES, &[])
}

/// Returns cases of LRN: empty images, regions of one element, regions larger than the image, and
/// the constants of AlexNet.
fn lrn_cases(region: LrnRegion) -> Cases<Lrn> {
    let shapes = [
        ([0, 3, 2, 2], 3),
        ([2, 3, 0, 2], 3),
        ([1, 1, 1, 1], 1),
        ([2, 3, 3, 2], 1),
        ([1, 2, 2, 3], 9),
        ([1, 40, 3, 43], 5),
        ([1, 1, 2, 1100], 5),
        ([2, 7, 5, 4], 5),
    ];
    let alexnet = Lrn { alpha: 1e-4, k: 1.0, ..lrn_op(region, [1, 9, 4, 4], 5) };
    let corner_cases = shapes.map(|(shape, size)| lrn_op(region, shape, size));
    let extents = (0..=2usize, 1..=9usize, 1..=7usize, 1..=7usize);
    let sizes = prop::sample::select(vec![1usize, 3, 5, 7]);
    let constant = |values: &[f64]| prop::sample::select(values.to_vec());
    let (alphas, betas, ks) = (&[1e-4, 0.5, 1.0], &[0.75, 0.5, 1.0, 1.3], &[1.0, 2.0]);
    let random_cases = (extents, sizes, constant(alphas), constant(betas), constant(ks)).prop_map(
        move |((n, c, h, w), size, alpha, beta, k)| Lrn {
            alpha,
            beta,
            k,
            ..lrn_op(region, [n, c, h, w], size)
        },
    );
    let corner_cases = [alexnet].into_iter().chain(corner_cases).collect();
    Cases::new(corner_cases, random_cases, lrn_op(region, [1, 3, 2, 2], 3))
}
