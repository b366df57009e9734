//! [`Normalize`](crate::kernel::Normalize).

use super::harness::{call, ones, refused, refuses_lengths, tries};
use crate::{
    conformance::{
        runner::CheckRunner,
        check::{Check, checks},
        compare::{exact, within},
        failure::Verdict,
        operand::{Placement, unset},
        oracle::normalize as oracle,
        values::{epsilon, wide},
    },
    device::Device,
    element::Element,
    error::Result,
    memory::Src,
    op::{Axis, EpsilonPlacement, Lrn, LrnRegion, Standardize},
};
use proptest::prelude::*;

pub(super) fn checks<D: Device>() -> Vec<Check<D>> {
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
}

fn softmax<T: Element, D: Device>(bench: &CheckRunner<'_, D>) -> Verdict {
    tries(bench, axes()?, any_axis(), |axis, how| {
        let x = how.draw().between::<T>(-8.0, 8.0, axis.count());
        let before = unset(axis.count());
        let want = oracle::softmax(axis, &wide(&x));
        let (given, y) = (("x", &x[..], how.at[0]), ("y", &before[..], how.at[1]));
        let [got] = call(bench, [given], [y], |[x], [y]| bench.device.softmax(axis, x.into(), y))?;
        within("y", &got, &want)?;
        let y = ("y", &x[..], how.at[2]);
        let [got] = call(bench, [], [y], |[], [y]| bench.device.softmax(axis, Src::InPlace, y))?;
        within("y in place", &got, &want)
    })?;
    softmax_of_extremes::<T, D>(bench)?;
    let axis = Axis::new(2, 3, 2)?;
    refuses_lengths::<T, D, _, _>(bench, [("x", 12)], [("y", 12)], |[x], [y]| {
        bench.device.softmax(&axis, x.into(), y)
    })?;
    refuses_lengths::<T, D, _, _>(bench, [], [("y", 12)], |[], [y]| {
        bench.device.softmax(&axis, Src::InPlace, y)
    })
}

/// Scores whose exponentials overflow, scores of nothing, and NaN, which spreads along its axis
/// alone.
fn softmax_of_extremes<T: Element, D: Device>(bench: &CheckRunner<'_, D>) -> Verdict {
    let axis = Axis::new(2, 3, 2)?;
    let cases = [
        ([1e4, -1e4, 1e4, 0.0, -1e4, 1e4], [0.5, 0.0, 0.5, 0.0, 0.0, 1.0]),
        (
            [-1e4, f64::NAN, -1e4, 1.0, -1e4, 1.0],
            [1.0 / 3.0, f64::NAN, 1.0 / 3.0, f64::NAN, 1.0 / 3.0, f64::NAN],
        ),
    ];
    bench.all(cases, |(x, want)| {
        let x: Vec<T> = [*x; 2].concat().into_iter().map(T::from_f64).collect();
        let before = unset(12);
        let at = Placement::WHOLE;
        let (given, y) = (("x", &x[..], at), ("y", &before[..], at));
        let [got] = call(bench, [given], [y], |[x], [y]| bench.device.softmax(&axis, x.into(), y))?;
        exact("y", &got, &[*want; 2].concat())
    })
}

fn softmax_backward<T: Element, D: Device>(bench: &CheckRunner<'_, D>) -> Verdict {
    let device = bench.device;
    tries(bench, axes()?, any_axis(), |axis, how| {
        let mut draw = how.draw();
        let (y, dy) = (draw.take::<T>(axis.count()), draw.take::<T>(axis.count()));
        let before = unset(axis.count());
        let want = oracle::softmax_backward(axis, &wide(&y), &wide(&dy));
        let (y, given) = (("y", &y[..], how.at[0]), ("dy", &dy[..], how.at[1]));
        let dx = ("dx", &before[..], how.at[2]);
        let [got] = call(bench, [y, given], [dx], |[y, dy], [dx]| {
            device.softmax_backward(axis, y, dy.into(), dx)
        })?;
        how.values.judge("dx", &got, &want)?;
        let [got] = call(bench, [y], [("dx", &dy[..], how.at[3])], |[y], [dx]| {
            device.softmax_backward(axis, y, Src::InPlace, dx)
        })?;
        how.values.judge("dx in place", &got, &want)
    })?;
    let axis = Axis::new(2, 3, 2)?;
    let (inputs, outputs) = ([("y", 12), ("dy", 12)], [("dx", 12)]);
    refuses_lengths::<T, D, _, _>(bench, inputs, outputs, |[y, dy], [dx]| {
        device.softmax_backward(&axis, y, dy.into(), dx)
    })?;
    refuses_lengths::<T, D, _, _>(bench, [("y", 12)], [("dx", 12)], |[y], [dx]| {
        device.softmax_backward(&axis, y, Src::InPlace, dx)
    })
}

fn lrn<T: Element, D: Device>(bench: &CheckRunner<'_, D>, region: LrnRegion) -> Verdict {
    let device = bench.device;
    tries(bench, responses(region), any_response(region), |op, how| {
        let x = how.draw().take::<T>(op.count());
        let (before, given) = (unset(op.count()), ("x", &x[..], how.at[0]));
        let outputs = [("scale", &before[..], how.at[1]), ("y", &before[..], how.at[2])];
        let [scale, y] = call(bench, [given], outputs, |[x], [s, y]| device.lrn(op, x, s, y))?;
        within("scale", &scale, &oracle::lrn_scale(op, &wide(&x)))?;
        within("y", &y, &oracle::lrn(op, &wide(&x)))
    })?;
    let op = response(region, [1, 3, 2, 2], 3);
    let outputs = [("scale", 12), ("y", 12)];
    refuses_lengths::<T, D, _, _>(bench, [("x", 12)], outputs, |[x], [s, y]| {
        device.lrn(&op, x, s, y)
    })?;
    let (one, at) = (ones::<T>(12), Placement::CORNERS[1]);
    let even = Lrn { size: 2, ..op };
    let outputs = [("scale", &one[..], at), ("y", &one[..], at)];
    refused(bench, [("x", &one[..], at)], outputs, |[x], [s, y]| device.lrn(&even, x, s, y))
        .map_err(|flaw| flaw.in_case("case", &even))
}

fn lrn_backward<T: Element, D: Device>(bench: &CheckRunner<'_, D>, region: LrnRegion) -> Verdict {
    let device = bench.device;
    tries(bench, responses(region), any_response(region), |op, how| {
        let mut draw = how.draw();
        let (x, dy) = (draw.take::<T>(op.count()), draw.take::<T>(op.count()));
        let rounded = |v: f64| T::from_f64(v);
        let x_wide = wide(&x);
        let y: Vec<T> = oracle::lrn(op, &x_wide).iter().map(|y| rounded(y.value)).collect();
        let scale: Vec<T> =
            oracle::lrn_scale(op, &x_wide).iter().map(|s| rounded(s.value)).collect();
        let given = [
            ("x", &x[..], how.at[0]),
            ("y", &y[..], how.at[1]),
            ("scale", &scale[..], how.at[2]),
            ("dy", &dy[..], how.at[3]),
        ];
        let before = unset(op.count());
        let [got] = call(bench, given, [("dx", &before[..], how.at[4])], |[x, y, s, dy], [dx]| {
            device.lrn_backward(op, x, y, s, dy, dx)
        })?;
        within("dx", &got, &oracle::lrn_backward(op, &given.map(|given| wide(given.1))))
    })?;
    let op = response(region, [1, 3, 2, 2], 3);
    let given = ["x", "y", "scale", "dy"].map(|name| (name, 12));
    refuses_lengths::<T, D, _, _>(bench, given, [("dx", 12)], |[x, y, s, dy], [dx]| {
        device.lrn_backward(&op, x, y, s, dy, dx)
    })
}

fn moments<T: Element, D: Device>(bench: &CheckRunner<'_, D>) -> Verdict {
    let device = bench.device;
    let some = |axis: &Axis| axis.reduced_count() > 0;
    let corners = axes()?.into_iter().filter(some).collect();
    tries(bench, corners, any_axis().prop_filter("nothing", some), |axis, how| {
        let mut draw = how.draw();
        // About zero, and far from it.
        for x in [draw.take::<T>(axis.count()), draw.between::<T>(99.0, 101.0, axis.count())] {
            let (before, given) = (unset(axis.extent), ("x", &x[..], how.at[0]));
            let outputs = [("mean", &before[..], how.at[1]), ("variance", &before[..], how.at[2])];
            let [mean, variance] =
                call(bench, [given], outputs, |[x], [m, v]| device.moments(axis, x, m, v))?;
            let want = oracle::moments(axis, &wide(&x), epsilon::<T::Acc>());
            within("mean", &mean, &want.iter().map(|want| want[0]).collect::<Vec<_>>())?;
            within("variance", &variance, &want.iter().map(|want| want[1]).collect::<Vec<_>>())?;
        }
        Ok(())
    })?;
    let axis = Axis::new(2, 3, 2)?;
    let outputs = [("mean", 3), ("variance", 3)];
    refuses_lengths::<T, D, _, _>(bench, [("x", 12)], outputs, |[x], [m, v]| {
        device.moments(&axis, x, m, v)
    })?;
    let (nothing, three) = (Axis::new(0, 3, 2)?, ones::<T>(3));
    let outputs = ["mean", "variance"].map(|name| (name, &three[..], Placement::CORNERS[1]));
    let given = ("x", &three[..0], Placement::WHOLE);
    refused(bench, [given], outputs, |[x], [m, v]| device.moments(&nothing, x, m, v))
        .map_err(|flaw| flaw.in_case("case", &nothing))
}

/// Both places of ε in turn.
fn standard(axis: &Axis, seed: u64) -> Standardize {
    let place = [EpsilonPlacement::AddedToVariance, EpsilonPlacement::AddedToDeviation]
        [(seed % 2) as usize];
    Standardize { axis: *axis, epsilon: 0.125, place }
}

fn standardize<T: Element, D: Device>(bench: &CheckRunner<'_, D>) -> Verdict {
    let device = bench.device;
    for place in 0..2 {
        tries(bench, axes()?, any_axis(), |axis, how| {
            let (op, mut draw) = (standard(axis, place), how.draw());
            let (x, mean) = (draw.take::<T>(axis.count()), draw.take::<T>(axis.extent));
            let variance = draw.between::<T>(0.0, 2.0, axis.extent);
            let want = oracle::standardize(&op, &wide(&x), &wide(&mean), &wide(&variance));
            let moments = [("mean", &mean[..], how.at[1]), ("variance", &variance[..], how.at[2])];
            let ([mean, variance], before) = (moments, unset(x.len()));
            let given = [("x", &x[..], how.at[0]), mean, variance];
            let y = ("y", &before[..], how.at[3]);
            let [got] = call(bench, given, [y], |[x, mean, variance], [y]| {
                device.standardize(&op, x.into(), mean, variance, y)
            })?;
            within("y", &got, &want)?;
            let y = ("y", &x[..], how.at[3]);
            let [got] = call(bench, [mean, variance], [y], |[mean, variance], [y]| {
                device.standardize(&op, Src::InPlace, mean, variance, y)
            })?;
            within("y in place", &got, &want)
        })?;
    }
    let op = standard(&Axis::new(2, 3, 2)?, 0);
    let given = [("x", 12), ("mean", 3), ("variance", 3)];
    refuses_lengths::<T, D, _, _>(bench, given, [("y", 12)], |[x, mean, variance], [y]| {
        device.standardize(&op, x.into(), mean, variance, y)
    })?;
    let given = [("mean", 3), ("variance", 3)];
    refuses_lengths::<T, D, _, _>(bench, given, [("y", 12)], |[mean, variance], [y]| {
        device.standardize(&op, Src::InPlace, mean, variance, y)
    })
}

fn standardize_backward<T: Element, D: Device>(bench: &CheckRunner<'_, D>) -> Verdict {
    let device = bench.device;
    for place in 0..2 {
        tries(bench, axes()?, any_axis(), |axis, how| {
            let (op, mut draw) = (standard(axis, place), how.draw());
            let (x, dy) = (draw.take::<T>(axis.count()), draw.take::<T>(axis.count()));
            let mean = draw.take::<T>(axis.extent);
            let variance = draw.between::<T>(0.0, 2.0, axis.extent);
            let moments = [&mean[..], &variance[..]].map(wide);
            let want = oracle::standardize_backward(&op, &wide(&x), &moments, &wide(&dy));
            let x = ("x", &x[..], how.at[0]);
            let (mean, variance) =
                (("mean", &mean[..], how.at[1]), ("variance", &variance[..], how.at[2]));
            let (given, before) = (("dy", &dy[..], how.at[3]), unset(dy.len()));
            let dx = ("dx", &before[..], how.at[4]);
            let [got] = call(bench, [x, mean, variance, given], [dx], |[x, m, v, dy], [dx]| {
                device.standardize_backward(&op, x, m, v, dy.into(), dx)
            })?;
            within("dx", &got, &want)?;
            let dx = ("dx", &dy[..], how.at[4]);
            let [got] = call(bench, [x, mean, variance], [dx], |[x, m, v], [dx]| {
                device.standardize_backward(&op, x, m, v, Src::InPlace, dx)
            })?;
            within("dx in place", &got, &want)
        })?;
    }
    let op = standard(&Axis::new(2, 3, 2)?, 0);
    let given = [("x", 12), ("mean", 3), ("variance", 3), ("dy", 12)];
    refuses_lengths::<T, D, _, _>(bench, given, [("dx", 12)], |[x, m, v, dy], [dx]| {
        device.standardize_backward(&op, x, m, v, dy.into(), dx)
    })?;
    let given = [("x", 12), ("mean", 3), ("variance", 3)];
    refuses_lengths::<T, D, _, _>(bench, given, [("dx", 12)], |[x, m, v], [dx]| {
        device.standardize_backward(&op, x, m, v, Src::InPlace, dx)
    })
}

/// Nothing, one element, the classes of batches, of pixels, and more than a block along, before
/// and after the axis.
fn axes() -> Result<Vec<Axis>> {
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
    extents.into_iter().map(|[outer, extent, inner]| Axis::new(outer, extent, inner)).collect()
}

fn any_axis() -> impl Strategy<Value = Axis> {
    let extent = || prop_oneof![0..=4usize, 1..=20usize];
    let axis = |(outer, extent, inner)| Axis { outer, extent, inner };
    (extent(), prop_oneof![1..=20usize, 1..=300usize], extent()).prop_map(axis)
}

fn response(region: LrnRegion, [batch, channels, height, width]: [usize; 4], size: usize) -> Lrn {
    let (alpha, beta, k) = (0.5, 0.75, 2.0);
    Lrn { region, batch, channels, plane: [height, width], size, alpha, beta, k }
}

/// Nothing, regions of one element and of more than there are, and the nets' own.
fn responses(region: LrnRegion) -> Vec<Lrn> {
    let cases = [
        ([0, 3, 2, 2], 3),
        ([2, 3, 0, 2], 3),
        ([1, 1, 1, 1], 1),
        ([2, 3, 3, 2], 1),
        ([1, 2, 2, 3], 9),
        ([1, 40, 3, 43], 5),
        ([2, 7, 5, 4], 5),
    ];
    let krizhevsky = Lrn { alpha: 1e-4, k: 1.0, ..response(region, [1, 9, 4, 4], 5) };
    let cases = cases.map(|(shape, size)| response(region, shape, size));
    [krizhevsky].into_iter().chain(cases).collect()
}

fn any_response(region: LrnRegion) -> impl Strategy<Value = Lrn> {
    let extents = (0..=2usize, 1..=9usize, 1..=7usize, 1..=7usize);
    let sizes = prop::sample::select(vec![1usize, 3, 5, 7]);
    let constant = |values: &[f64]| prop::sample::select(values.to_vec());
    let (alphas, betas, ks) = (&[1e-4, 0.5, 1.0], &[0.75, 0.5, 1.0, 1.3], &[1.0, 2.0]);
    (extents, sizes, constant(alphas), constant(betas), constant(ks)).prop_map(
        move |((n, c, h, w), size, alpha, beta, k)| Lrn {
            alpha,
            beta,
            k,
            ..response(region, [n, c, h, w], size)
        },
    )
}
