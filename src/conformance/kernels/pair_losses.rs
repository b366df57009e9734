//! Losses of [`Losses`](crate::kernel::Losses) of numbers against targets.

use super::{
    call::{Setting, call, refuses_lengths, tries},
    losses::NORMALIZATIONS,
};
use crate::{
    conformance::{
        bench::Bench,
        check::{Check, checks},
        compare::within,
        failure::Verdict,
        operand::unset,
        oracle::losses as oracle,
        values::wide,
    },
    device::Device,
    element::Element,
    op::{LossNormalization, PairForm, PairLoss},
};
use proptest::prelude::*;

pub(super) fn checks<D: Device>() -> Vec<Check<D>> {
    checks! {
        "pair_loss" of "pair_loss": pair_loss();
        "pair_loss_backward" of "pair_loss_backward": pair_loss_backward();
    }
}

/// The loss as a kernel on `T` takes it.
fn narrow<T: Element>(op: &PairLoss<f64>) -> PairLoss<T::Acc> {
    let &PairLoss { form, batch, each, ignore, normalization } = op;
    let form = match form {
        PairForm::Squared => PairForm::Squared,
        PairForm::SigmoidCrossEntropy => PairForm::SigmoidCrossEntropy,
        PairForm::Contrastive { margin } => PairForm::Contrastive { margin: T::acc(margin) },
        PairForm::ContrastiveLegacy { margin } => {
            PairForm::ContrastiveLegacy { margin: T::acc(margin) }
        }
    };
    PairLoss { form, batch, each, ignore, normalization }
}

/// Numbers, not negative if they are distances, and targets on both sides of integers.
fn operands<T: Element>(op: &PairLoss<f64>, how: &Setting) -> [Vec<T>; 2] {
    let (mut draw, count) = (how.draw(), op.batch * op.each);
    let x = match op.form {
        PairForm::Squared | PairForm::SigmoidCrossEntropy => draw.take(count),
        _ => draw.between(0.0, 4.0, count),
    };
    [x, draw.between(-2.0, 2.0, count)]
}

fn pair_loss<T: Element, D: Device>(bench: &Bench<'_, D>) -> Verdict {
    let device = bench.device;
    tries(bench, cases(), any_case(), |case, how| {
        let ([x, t], op) = (operands::<T>(case, how), narrow::<T>(case));
        let given = [("x", &x[..], how.at[0]), ("t", &t[..], how.at[1])];
        let loss = ("loss", &unset(1)[..], how.at[2]);
        let [got] = call(bench, given, [loss], |[x, t], [loss]| device.pair_loss(&op, x, t, loss))?;
        within("loss", &got, &[oracle::pair_loss(case, &wide(&x), &wide(&t))])
    })?;
    let op = narrow::<T>(&plain(PairForm::Squared));
    refuses_lengths::<T, D, _, _>(bench, [("x", 6), ("t", 6)], [("loss", 1)], |[x, t], [loss]| {
        device.pair_loss(&op, x, t, loss)
    })
}

fn pair_loss_backward<T: Element, D: Device>(bench: &Bench<'_, D>) -> Verdict {
    let device = bench.device;
    tries(bench, cases(), any_case(), |case, how| {
        let ([x, t], op) = (operands::<T>(case, how), narrow::<T>(case));
        let scale = [T::from_f64(-2.5)];
        let given =
            [("x", &x[..], how.at[0]), ("t", &t[..], how.at[1]), ("scale", &scale[..], how.at[2])];
        let before = unset(x.len());
        let [got] = call(bench, given, [("dx", &before[..], how.at[3])], |[x, t, scale], [dx]| {
            device.pair_loss_backward(&op, x, t, scale, dx)
        })?;
        within("dx", &got, &oracle::pair_loss_backward(case, &wide(&x), &wide(&t), -2.5))
    })?;
    let op = narrow::<T>(&plain(PairForm::Squared));
    let given = [("x", 6), ("t", 6), ("scale", 1)];
    refuses_lengths::<T, D, _, _>(bench, given, [("dx", 6)], |[x, t, scale], [dx]| {
        device.pair_loss_backward(&op, x, t, scale, dx)
    })
}

/// Margins that every element type holds.
const FORMS: [PairForm<f64>; 4] = [
    PairForm::Squared,
    PairForm::SigmoidCrossEntropy,
    PairForm::Contrastive { margin: 1.5 },
    PairForm::ContrastiveLegacy { margin: 1.5 },
];

fn plain(form: PairForm<f64>) -> PairLoss<f64> {
    PairLoss { form, batch: 2, each: 3, ignore: None, normalization: LossNormalization::Full }
}

/// Each form over nothing, one element, more than a block, and with every normalization.
fn cases() -> Vec<PairLoss<f64>> {
    let mut cases = Vec::new();
    for form in FORMS {
        for (batch, each) in [(0, 3), (1, 1), (1025, 1), (5, 4099)] {
            cases.push(PairLoss { batch, each, ..plain(form) });
        }
        for normalization in NORMALIZATIONS {
            let (batch, each, ignore) = (4, 15, Some(1));
            cases.push(PairLoss { form, batch, each, ignore, normalization });
        }
    }
    cases
}

fn any_case() -> impl Strategy<Value = PairLoss<f64>> {
    let normalization = prop::sample::select(&NORMALIZATIONS[..]);
    let form = prop::sample::select(&FORMS[..]);
    (form, 0..9usize, 0..99usize, prop::option::of(-1..2i64), normalization).prop_map(
        |(form, batch, each, ignore, normalization)| PairLoss {
            form,
            batch,
            each,
            ignore,
            normalization,
        },
    )
}
