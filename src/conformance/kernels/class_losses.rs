//! Losses of [`Losses`](crate::kernel::Losses) over the scores of all classes.

use super::{
    harness::{CaseSetup, call, ones, refused, refuses_lengths, tries},
    losses::{NORMALIZATIONS, any_shape, labels, refuses_labels},
};
use crate::{
    conformance::{
        runner::CheckRunner,
        check::{Check, checks},
        compare::within,
        failure::Verdict,
        operand::{Placement, unset},
        oracle::losses as oracle,
        values::wide,
    },
    device::Device,
    element::Element,
    error::Result,
    memory::View,
    op::{Axis, ClassLoss, ClassLossKind, LossNormalization},
};
use proptest::prelude::*;

pub(super) fn checks<D: Device>() -> Vec<Check<D>> {
    checks! {
        "class_loss" of "class_loss": class_loss();
        "class_loss_backward" of "class_loss_backward": class_loss_backward();
    }
}

/// A loss, with a matrix or without.
type Case = (ClassLoss, bool);

/// Scores, or probabilities of which some are 0 and 1; labels; a matrix.
fn operands<T: Element>((op, _): &Case, how: &CaseSetup) -> [Vec<T>; 3] {
    let mut x = match op.form {
        ClassLossKind::Hinge | ClassLossKind::SquaredHinge => how.draw().take(op.axis.count()),
        _ => how.draw().between::<T>(0.0, 1.0, op.axis.count()),
    };
    x.iter_mut().step_by(5).for_each(|x| *x = T::from_f64(0.0));
    x.iter_mut().skip(1).step_by(7).for_each(|x| *x = T::from_f64(1.0));
    let matrix = how.draw().take(op.axis.extent * op.axis.extent);
    [x, labels(&op.axis, op.ignore, how), matrix]
}

/// The matrix, if the case has one.
fn given<'a, T, D: Device>(case: &Case, matrix: View<'a, T, D>) -> Option<View<'a, T, D>> {
    case.1.then_some(matrix)
}

fn class_loss<T: Element, D: Device>(bench: &CheckRunner<'_, D>) -> Verdict {
    let device = bench.device;
    tries(bench, cases()?, any_case(), |case, how| {
        let ([x, label, matrix], op) = (operands::<T>(case, how), &case.0);
        let inputs = [
            ("x", &x[..], how.at[0]),
            ("label", &label[..], how.at[1]),
            ("matrix", &matrix[..], how.at[2]),
        ];
        let loss = ("loss", &unset(1)[..], how.at[3]);
        let [got] = call(bench, inputs, [loss], |[x, label, matrix], [loss]| {
            device.class_loss(op, x, label, given(case, matrix), loss)
        })?;
        let matrix = case.1.then(|| wide(&matrix));
        let want = oracle::class_loss(op, &wide(&x), &wide(&label), matrix.as_deref());
        within("loss", &got, &[want])
    })?;
    let op = plain(ClassLossKind::Log)?;
    let inputs = [("x", 12), ("label", 4), ("matrix", 9)];
    refuses_lengths::<T, D, _, _>(bench, inputs, [("loss", 1)], |[x, label, matrix], [loss]| {
        device.class_loss(&op, x, label, Some(matrix), loss)
    })?;
    let hinge = plain(ClassLossKind::Hinge)?;
    let (x, one) = (ones::<T>(12), ones::<T>(1));
    let x = ("x", &x[..], Placement::WHOLE);
    refused(bench, [x], [("loss", &one[..], Placement::CORNERS[1])], |[x], [loss]| {
        device.class_loss(&hinge, x, x.slice(0..4)?, Some(x.slice(0..9)?), loss)
    })?;
    refuses_labels::<T, D>(bench, 1, |[x, label], [loss]| {
        device.class_loss(&op, x, label, None, loss)
    })
}

fn class_loss_backward<T: Element, D: Device>(bench: &CheckRunner<'_, D>) -> Verdict {
    let device = bench.device;
    tries(bench, cases()?, any_case(), |case, how| {
        let ([x, label, matrix], op) = (operands::<T>(case, how), &case.0);
        let scale = [T::from_f64(-2.5)];
        let inputs = [
            ("x", &x[..], how.at[0]),
            ("label", &label[..], how.at[1]),
            ("matrix", &matrix[..], how.at[2]),
            ("scale", &scale[..], how.at[3]),
        ];
        let before = unset(op.axis.count());
        let dx = ("dx", &before[..], how.at[4]);
        let [got] = call(bench, inputs, [dx], |[x, label, matrix, scale], [dx]| {
            device.class_loss_backward(op, x, label, given(case, matrix), scale, dx)
        })?;
        let matrix = case.1.then(|| wide(&matrix));
        let (x, label, matrix) = (wide(&x), wide(&label), matrix.as_deref());
        within("dx", &got, &oracle::class_loss_backward(op, &x, &label, matrix, -2.5))
    })?;
    let op = plain(ClassLossKind::LogWithSoftmaxGradient)?;
    let inputs = [("x", 12), ("label", 4), ("matrix", 9), ("scale", 1)];
    refuses_lengths::<T, D, _, _>(bench, inputs, [("dx", 12)], |[x, l, m, scale], [dx]| {
        device.class_loss_backward(&op, x, l, Some(m), scale, dx)
    })?;
    refuses_labels::<T, D>(bench, 12, |[x, label], [dx]| {
        device.class_loss_backward(&op, x, label, None, x.slice(0..1)?, dx)
    })
}

const FORMS: [(ClassLossKind, bool); 6] = [
    (ClassLossKind::Log, false),
    (ClassLossKind::Log, true),
    (ClassLossKind::LogWithSoftmaxGradient, false),
    (ClassLossKind::LogWithSoftmaxGradient, true),
    (ClassLossKind::Hinge, false),
    (ClassLossKind::SquaredHinge, false),
];

fn plain(form: ClassLossKind) -> Result<ClassLoss> {
    let (axis, normalization) = (Axis::new(2, 3, 2)?, LossNormalization::Valid);
    Ok(ClassLoss { axis, form, ignore: None, normalization })
}

/// Each form over nothing, one class, more than a block, and with every normalization.
fn cases() -> Result<Vec<Case>> {
    let mut cases = Vec::new();
    for (form, matrix) in FORMS {
        for [outer, extent, inner] in [[0, 3, 2], [1, 1, 1], [1025, 3, 1], [2, 40, 3]] {
            let axis = Axis::new(outer, extent, inner)?;
            cases.push((ClassLoss { axis, ..plain(form)? }, matrix));
        }
        for normalization in NORMALIZATIONS {
            let axis = Axis::new(4, 5, 3)?;
            cases.push((ClassLoss { axis, form, ignore: Some(2), normalization }, matrix));
        }
    }
    Ok(cases)
}

fn any_case() -> impl Strategy<Value = Case> {
    let normalization = prop::sample::select(&NORMALIZATIONS[..]);
    let form = prop::sample::select(&FORMS[..]);
    (any_shape(), normalization, form).prop_map(
        |((axis, ignore), normalization, (form, matrix))| {
            (ClassLoss { axis, form, ignore, normalization }, matrix)
        },
    )
}
