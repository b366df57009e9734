//! [`Losses`](crate::kernel::Losses).

use super::harness::{CaseSetup, call, fails_in_time, ones, refuses_lengths, tries};
use crate::{
    conformance::{
        runner::CheckRunner,
        check::{Check, checks},
        compare::within,
        failure::Verdict,
        operand::{Placement, unset},
        oracle::losses as oracle,
        values::{Expected, wide},
    },
    device::Device,
    element::Element,
    error::Result,
    memory::{View, ViewMut},
    op::{Accuracy, Axis, LossNormalization, SoftmaxLoss},
};
use proptest::prelude::*;

pub(super) fn checks<D: Device>() -> Vec<Check<D>> {
    checks! {
        "softmax_loss" of "softmax_loss": softmax_loss();
        "softmax_loss_backward" of "softmax_loss_backward": softmax_loss_backward();
        "accuracy" of "accuracy": accuracy();
        "accuracy_by_class" of "accuracy_by_class": accuracy_by_class();
    }
}

/// Probabilities, some of them 0 and 1, and labels, some of them ignored.
fn probabilities<T: Element>(op: &SoftmaxLoss, how: &CaseSetup) -> (Vec<T>, Vec<T>) {
    let mut p = how.draw().between::<T>(0.0, 1.0, op.axis.count());
    p.iter_mut().step_by(5).for_each(|p| *p = T::from_f64(0.0));
    p.iter_mut().skip(1).step_by(7).for_each(|p| *p = T::from_f64(1.0));
    (p, labels(&op.axis, op.ignore, how))
}

/// Classes, and every third position ignored if any may be.
pub(super) fn labels<T: Element>(axis: &Axis, ignore: Option<i64>, how: &CaseSetup) -> Vec<T> {
    let mut draw = how.draw();
    let classes =
        draw.below(axis.extent.max(1), axis.reduced_count()).into_iter().map(|class| class as f64);
    let label = |(at, class)| match ignore {
        Some(ignore) if at % 3 == 0 => ignore as f64,
        _ => class,
    };
    classes.enumerate().map(|at| T::from_f64(label(at))).collect()
}

fn softmax_loss<T: Element, D: Device>(bench: &CheckRunner<'_, D>) -> Verdict {
    let device = bench.device;
    tries(bench, losses()?, any_loss(), |op, how| {
        let (p, label) = probabilities::<T>(op, how);
        let given = [("p", &p[..], how.at[0]), ("label", &label[..], how.at[1])];
        let loss = ("loss", &unset(1)[..], how.at[2]);
        let [got] =
            call(bench, given, [loss], |[p, l], [loss]| device.softmax_loss(op, p, l, loss))?;
        within("loss", &got, &[oracle::softmax_loss(op, &wide(&p), &wide(&label))])
    })?;
    let op = loss([2, 3, 2], None, LossNormalization::Valid)?;
    let given = [("p", 12), ("label", 4)];
    refuses_lengths::<T, D, _, _>(bench, given, [("loss", 1)], |[p, l], [loss]| {
        device.softmax_loss(&op, p, l, loss)
    })?;
    refuses_labels::<T, D>(bench, 1, |[p, l], [loss]| device.softmax_loss(&op, p, l, loss))
}

fn softmax_loss_backward<T: Element, D: Device>(bench: &CheckRunner<'_, D>) -> Verdict {
    let device = bench.device;
    tries(bench, losses()?, any_loss(), |op, how| {
        let ((p, label), scale) = (probabilities::<T>(op, how), [T::from_f64(-2.5)]);
        let given = [
            ("p", &p[..], how.at[0]),
            ("label", &label[..], how.at[1]),
            ("scale", &scale[..], how.at[2]),
        ];
        let before = unset(op.axis.count());
        let [got] = call(bench, given, [("dx", &before[..], how.at[3])], |[p, l, scale], [dx]| {
            device.softmax_loss_backward(op, p, l, scale, dx)
        })?;
        within("dx", &got, &oracle::softmax_loss_backward(op, &wide(&p), &wide(&label), -2.5))
    })?;
    let op = loss([2, 3, 2], None, LossNormalization::Valid)?;
    let given = [("p", 12), ("label", 4), ("scale", 1)];
    refuses_lengths::<T, D, _, _>(bench, given, [("dx", 12)], |[p, l, scale], [dx]| {
        device.softmax_loss_backward(&op, p, l, scale, dx)
    })?;
    refuses_labels::<T, D>(bench, 12, |[p, l], [dx]| {
        device.softmax_loss_backward(&op, p, l, p.slice(0..1)?, dx)
    })
}

fn accuracy<T: Element, D: Device>(bench: &CheckRunner<'_, D>) -> Verdict {
    let device = bench.device;
    tries(bench, accuracies()?, any_accuracy(), |op, how| {
        let mut scores = how.draw().take::<T>(op.axis.count());
        // A net that diverged is never right.
        scores
            .iter_mut()
            .rev()
            .take(op.axis.inner)
            .for_each(|score| *score = T::from_f64(f64::NAN));
        let label = labels::<T>(&op.axis, op.ignore, how);
        let given = [("scores", &scores[..], how.at[0]), ("label", &label[..], how.at[1])];
        let y = ("y", &unset(1)[..], how.at[2]);
        let [got] = call(bench, given, [y], |[scores, l], [y]| device.accuracy(op, scores, l, y))?;
        let want = oracle::accuracy(op, &wide(&scores), &wide(&label));
        within("y", &got, &[Expected::from_iter([want])])
    })?;
    let op = Accuracy { axis: Axis::new(2, 3, 2)?, top_k: 1, ignore: None };
    let given = [("scores", 12), ("label", 4)];
    refuses_lengths::<T, D, _, _>(bench, given, [("y", 1)], |[scores, l], [y]| {
        device.accuracy(&op, scores, l, y)
    })?;
    refuses_labels::<T, D>(bench, 1, |[scores, l], [y]| device.accuracy(&op, scores, l, y))
}

fn accuracy_by_class<T: Element, D: Device>(bench: &CheckRunner<'_, D>) -> Verdict {
    let device = bench.device;
    tries(bench, accuracies()?, any_accuracy(), |op, how| {
        let scores = how.draw().take::<T>(op.axis.count());
        let label = labels::<T>(&op.axis, op.ignore, how);
        let given = [("scores", &scores[..], how.at[0]), ("label", &label[..], how.at[1])];
        let before = unset(op.axis.extent);
        let [got] = call(bench, given, [("y", &before[..], how.at[2])], |[scores, label], [y]| {
            device.accuracy_by_class(op, scores, label, y)
        })?;
        within("y", &got, &oracle::accuracy_by_class(op, &wide(&scores), &wide(&label)))
    })?;
    let op = Accuracy { axis: Axis::new(2, 3, 2)?, top_k: 1, ignore: None };
    let given = [("scores", 12), ("label", 4)];
    refuses_lengths::<T, D, _, _>(bench, given, [("y", 3)], |[scores, label], [y]| {
        device.accuracy_by_class(&op, scores, label, y)
    })?;
    refuses_labels::<T, D>(bench, 3, |[scores, label], [y]| {
        device.accuracy_by_class(&op, scores, label, y)
    })
}

/// Tries labels that are no class, of two by two positions of three classes, and then right ones.
pub(super) fn refuses_labels<T: Element, D: Device>(
    bench: &CheckRunner<'_, D>,
    outputs: usize,
    kernel: impl Fn([View<'_, T, D>; 2], [ViewMut<'_, T, D>; 1]) -> Result<()>,
) -> Verdict {
    let (p, before, at) = (ones::<T>(12), ones::<T>(outputs), Placement::CORNERS[1]);
    let output = ("the output", &before[..], at);
    bench.all([-1.0, 3.0, 0.5, 60_000.0, f64::NAN, f64::INFINITY], |&label| {
        let label = [0.0, 2.0, label, 1.0].map(T::from_f64);
        let given = [("p", &p[..], Placement::WHOLE), ("label", &label[..], at)];
        fails_in_time(bench, given, output, &kernel)?;
        let label = [0.0, 2.0, 1.0, 1.0].map(T::from_f64);
        let given = [("p", &p[..], Placement::WHOLE), ("label", &label[..], at)];
        call(bench, given, [output], &kernel).map(drop)
    })
}

pub(super) const NORMALIZATIONS: [LossNormalization; 4] = [
    LossNormalization::Full,
    LossNormalization::Valid,
    LossNormalization::BatchSize,
    LossNormalization::None,
];

fn loss(
    [outer, extent, inner]: [usize; 3],
    ignore: Option<i64>,
    normalization: LossNormalization,
) -> Result<SoftmaxLoss> {
    Ok(SoftmaxLoss { axis: Axis::new(outer, extent, inner)?, ignore, normalization })
}

/// No positions, one that is ignored, more than a block, and every normalization with a class and
/// with none ignored.
fn losses() -> Result<Vec<SoftmaxLoss>> {
    let mut cases = vec![
        loss([0, 3, 2], None, LossNormalization::Valid)?,
        loss([1, 1, 1], Some(-1), LossNormalization::Valid)?,
        loss([1, 4, 1], Some(0), LossNormalization::Valid)?,
        loss([1, 1, 1], None, LossNormalization::Full)?,
        loss([1025, 3, 1], None, LossNormalization::Full)?,
        loss([3, 2, 400], Some(1), LossNormalization::Valid)?,
        loss([2, 200, 3], None, LossNormalization::BatchSize)?,
    ];
    for normalization in NORMALIZATIONS {
        for ignore in [None, Some(2), Some(255)] {
            cases.push(loss([4, 5, 3], ignore, normalization)?);
        }
    }
    Ok(cases)
}

pub(super) fn any_shape() -> impl Strategy<Value = (Axis, Option<i64>)> {
    let axis = (0..=9usize, 1..=12usize, 1..=9usize);
    let axis = axis.prop_map(|(outer, extent, inner)| Axis { outer, extent, inner });
    (axis, prop::option::of(-1..12i64))
}

fn any_loss() -> impl Strategy<Value = SoftmaxLoss> {
    let normalization = prop::sample::select(&NORMALIZATIONS[..]);
    (any_shape(), normalization).prop_map(|((axis, ignore), normalization)| SoftmaxLoss {
        axis,
        ignore,
        normalization,
    })
}

/// No positions, one, more than a block; none, some and more than all scores counted.
fn accuracies() -> Result<Vec<Accuracy>> {
    let cases = [
        ([0, 3, 2], 1, None),
        ([1, 1, 1], 1, None),
        ([1, 3, 1], 1, Some(-1)),
        ([1025, 10, 1], 1, None),
        ([40, 200, 1], 5, None),
        ([7, 6, 5], 0, None),
        ([7, 6, 5], 6, None),
        ([7, 6, 5], 9, Some(2)),
        ([7, 6, 5], 2, Some(2)),
    ];
    let case = |([outer, extent, inner], top_k, ignore): ([usize; 3], _, _)| {
        Ok(Accuracy { axis: Axis::new(outer, extent, inner)?, top_k, ignore })
    };
    cases.into_iter().map(case).collect()
}

fn any_accuracy() -> impl Strategy<Value = Accuracy> {
    (any_shape(), 1..=4usize).prop_map(|((axis, ignore), top_k)| Accuracy { axis, top_k, ignore })
}
