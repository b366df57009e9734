//! Losses of [`Losses`](crate::kernel::Losses) of numbers against targets.

use super::{
    harness::{CaseSetup, call, refuses_lengths, tries},
    losses::NORMALIZATIONS,
};
use crate::{
    conformance::{
        runner::CheckRunner,
        check::{Check, checks},
        compare::within,
        failure::Verdict,
        operand::unset,
        oracle::losses as oracle,
        values::wide,
    },
    device::Device,
    element::Element,
    op::{ElementwiseLoss, ElementwiseLossKind, LossNormalization},
};
use proptest::prelude::*;

pub(super) fn checks<D: Device>() -> Vec<Check<D>> {
    checks! {
        "elementwise_loss" of "elementwise_loss": elementwise_loss();
        "elementwise_loss_backward" of "elementwise_loss_backward": elementwise_loss_backward();
    }
}

/// The loss as a kernel on `T` takes it.
fn narrow<T: Element>(op: &ElementwiseLoss<f64>) -> ElementwiseLoss<T::Acc> {
    let &ElementwiseLoss { form, batch, each, ignore, normalization } = op;
    let form = match form {
        ElementwiseLossKind::Squared => ElementwiseLossKind::Squared,
        ElementwiseLossKind::SigmoidCrossEntropy => ElementwiseLossKind::SigmoidCrossEntropy,
        ElementwiseLossKind::Contrastive { margin } => {
            ElementwiseLossKind::Contrastive { margin: T::acc(margin) }
        }
        ElementwiseLossKind::ContrastiveLegacy { margin } => {
            ElementwiseLossKind::ContrastiveLegacy { margin: T::acc(margin) }
        }
    };
    ElementwiseLoss { form, batch, each, ignore, normalization }
}

/// Numbers, not negative if they are distances, and targets on both sides of integers.
fn operands<T: Element>(op: &ElementwiseLoss<f64>, how: &CaseSetup) -> [Vec<T>; 2] {
    let (mut draw, count) = (how.draw(), op.batch * op.each);
    let x = match op.form {
        ElementwiseLossKind::Squared | ElementwiseLossKind::SigmoidCrossEntropy => draw.take(count),
        _ => draw.between(0.0, 4.0, count),
    };
    [x, draw.between(-2.0, 2.0, count)]
}

fn elementwise_loss<T: Element, D: Device>(bench: &CheckRunner<'_, D>) -> Verdict {
    let device = bench.device;
    tries(bench, cases(), any_case(), |case, how| {
        let ([x, t], op) = (operands::<T>(case, how), narrow::<T>(case));
        let given = [("x", &x[..], how.at[0]), ("t", &t[..], how.at[1])];
        let loss = ("loss", &unset(1)[..], how.at[2]);
        let [got] =
            call(bench, given, [loss], |[x, t], [loss]| device.elementwise_loss(&op, x, t, loss))?;
        within("loss", &got, &[oracle::elementwise_loss(case, &wide(&x), &wide(&t))])
    })?;
    let op = narrow::<T>(&plain(ElementwiseLossKind::Squared));
    refuses_lengths::<T, D, _, _>(bench, [("x", 6), ("t", 6)], [("loss", 1)], |[x, t], [loss]| {
        device.elementwise_loss(&op, x, t, loss)
    })
}

fn elementwise_loss_backward<T: Element, D: Device>(bench: &CheckRunner<'_, D>) -> Verdict {
    let device = bench.device;
    tries(bench, cases(), any_case(), |case, how| {
        let ([x, t], op) = (operands::<T>(case, how), narrow::<T>(case));
        let scale = [T::from_f64(-2.5)];
        let given =
            [("x", &x[..], how.at[0]), ("t", &t[..], how.at[1]), ("scale", &scale[..], how.at[2])];
        let before = unset(x.len());
        let [got] = call(bench, given, [("dx", &before[..], how.at[3])], |[x, t, scale], [dx]| {
            device.elementwise_loss_backward(&op, x, t, scale, dx)
        })?;
        within("dx", &got, &oracle::elementwise_loss_backward(case, &wide(&x), &wide(&t), -2.5))
    })?;
    let op = narrow::<T>(&plain(ElementwiseLossKind::Squared));
    let given = [("x", 6), ("t", 6), ("scale", 1)];
    refuses_lengths::<T, D, _, _>(bench, given, [("dx", 6)], |[x, t, scale], [dx]| {
        device.elementwise_loss_backward(&op, x, t, scale, dx)
    })
}

/// Margins that every element type holds.
const FORMS: [ElementwiseLossKind<f64>; 4] = [
    ElementwiseLossKind::Squared,
    ElementwiseLossKind::SigmoidCrossEntropy,
    ElementwiseLossKind::Contrastive { margin: 1.5 },
    ElementwiseLossKind::ContrastiveLegacy { margin: 1.5 },
];

fn plain(form: ElementwiseLossKind<f64>) -> ElementwiseLoss<f64> {
    ElementwiseLoss {
        form,
        batch: 2,
        each: 3,
        ignore: None,
        normalization: LossNormalization::Full,
    }
}

/// Each form over nothing, one element, more than a block, and with every normalization.
fn cases() -> Vec<ElementwiseLoss<f64>> {
    let mut cases = Vec::new();
    for form in FORMS {
        for (batch, each) in [(0, 3), (1, 1), (1025, 1), (5, 4099)] {
            cases.push(ElementwiseLoss { batch, each, ..plain(form) });
        }
        for normalization in NORMALIZATIONS {
            let (batch, each, ignore) = (4, 15, Some(1));
            cases.push(ElementwiseLoss { form, batch, each, ignore, normalization });
        }
    }
    cases
}

fn any_case() -> impl Strategy<Value = ElementwiseLoss<f64>> {
    let normalization = prop::sample::select(&NORMALIZATIONS[..]);
    let form = prop::sample::select(&FORMS[..]);
    (form, 0..9usize, 0..99usize, prop::option::of(-1..2i64), normalization).prop_map(
        |(form, batch, each, ignore, normalization)| ElementwiseLoss {
            form,
            batch,
            each,
            ignore,
            normalization,
        },
    )
}
