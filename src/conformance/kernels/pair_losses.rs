//! Checks of elementwise losses, which compare numbers with targets, in the kernel family
//! [`Losses`](crate::kernel::Losses).

use super::{
    losses::{NORMALIZATIONS, SCALE},
    prelude::*,
};
use crate::{
    conformance::oracle::losses as oracle,
    element::DType,
    op::{
        ElementwiseLoss,
        ElementwiseLossKind::{self, Contrastive, ContrastiveLegacy, SigmoidCrossEntropy, Squared},
        LossNormalization,
    },
};

checks! {
    "elementwise_loss" of "elementwise_loss": elementwise_loss();
    "elementwise_loss_backward" of "elementwise_loss_backward": elementwise_loss_backward();
}

/// Converts the constants of a loss to the accumulator type of `T`.
fn narrow<T: Element>(op: &ElementwiseLoss<f64>) -> ElementwiseLoss<T::Acc> {
    let &ElementwiseLoss { kind, batch, item_len, ignore, normalization } = op;
    let kind = match kind {
        Squared => Squared,
        SigmoidCrossEntropy => SigmoidCrossEntropy,
        Contrastive { margin } => Contrastive { margin: T::acc(margin) },
        ContrastiveLegacy { margin } => ContrastiveLegacy { margin: T::acc(margin) },
    };
    ElementwiseLoss { kind, batch, item_len, ignore, normalization }
}

/// Returns inputs of an elementwise loss, and real-valued targets from −2 to 2. The inputs of
/// contrastive losses are distances, so these inputs are not negative.
fn operands<T: Element>(op: &ElementwiseLoss<f64>, setup: &CaseSetup) -> [NamedValues<T>; 2] {
    let (mut stream, count) = (setup.stream(), op.batch * op.item_len);
    let x = match op.kind {
        Squared | SigmoidCrossEntropy => stream.take(count),
        _ => stream.uniform(0.0, 4.0, count),
    };
    [("x", x), ("t", stream.uniform(-2.0, 2.0, count))]
}

fn elementwise_loss<T: Element>(runner: &CheckRunner<'_>) -> Verdict {
    runner.try_kernel(
        &cases(),
        |op, setup| (operands::<T>(op, setup), [("loss", unset(1))]),
        |op, [x, t], [loss]| runner.device.elementwise_loss(&narrow::<T>(op), x, t, loss),
        |op, [x, t], _| [ExpectedOutput::Within(vec![oracle::elementwise_loss(op, x, t)])],
    )?;
    // A net that has diverged computes NaN predictions, for which the loss must be NaN. With a
    // target of 0, the contrastive losses compare the margin with `x`.
    for kind in KINDS {
        let normalization = LossNormalization::Full;
        let op = ElementwiseLoss { kind, batch: 3, item_len: 1, ignore: None, normalization };
        let x = [1.0, f64::NAN, 2.0].map(T::from_f64);
        let (inputs, loss) = ([("x", &x[..]), ("t", &[T::default(); 3])], ("loss", &unset(1)[..]));
        let [got] = runner.call(&CaseSetup::WHOLE, inputs, [loss], |[x, t], [loss]| {
            runner.device.elementwise_loss(&narrow::<T>(&op), x, t, loss)
        })?;
        expect_nearest("loss of NaN operands", &got, &[f64::NAN])?;
    }
    // Cases with large operands are slow, so the kit runs them only in `f32`. Only the last of 2²⁰
    // + 3 elements differs from its target.
    if T::DTYPE != DType::F32 {
        return Ok(());
    }
    let t = vec![T::from_f64(1.0); PERIOD * COPIES];
    let x = [&t[1..], &[T::from_f64(3.0)]].concat();
    let normalization = LossNormalization::None;
    let op =
        ElementwiseLoss { kind: Squared, batch: t.len(), item_len: 1, ignore: None, normalization };
    let (inputs, loss) = ([("x", &x[..]), ("t", &t)], ("loss of many elements", &unset(1)[..]));
    let [got] = runner.call(&CaseSetup::WHOLE, inputs, [loss], |[x, t], [loss]| {
        runner.device.elementwise_loss(&op, x, t, loss)
    })?;
    expect_nearest(loss.0, &got, &[2.0])
}

fn elementwise_loss_backward<T: Element>(runner: &CheckRunner<'_>) -> Verdict {
    let (kind, normalization) = (SigmoidCrossEntropy, LossNormalization::None);
    let large = |batch| ElementwiseLoss { kind, batch, item_len: 1, ignore: None, normalization };
    let large = [large(PERIOD), large(PERIOD * COPIES)];
    runner.try_kernel(
        &cases().and_large(large, COPIES, &["scale"]),
        |op, setup| {
            let [x, t] = operands::<T>(op, setup);
            let dx = ("dx", unset(x.1.len()));
            ([x, t, ("scale", vec![T::from_f64(SCALE)])], [dx])
        },
        |op, [x, t, scale], [dx]| {
            runner.device.elementwise_loss_backward(&narrow::<T>(op), x, t, scale, dx)
        },
        |op, [x, t, _], _| {
            [ExpectedOutput::Within(oracle::elementwise_loss_backward(op, x, t, SCALE))]
        },
    )
}

/// All kinds of elementwise losses, with margins that every element type represents exactly.
const KINDS: [ElementwiseLossKind<f64>; 4] =
    [Squared, SigmoidCrossEntropy, Contrastive { margin: 1.5 }, ContrastiveLegacy { margin: 1.5 }];

/// Returns cases of elementwise losses of each kind: no elements, one element, many elements, and
/// every normalization.
fn cases() -> Cases<ElementwiseLoss<f64>> {
    let loss_op = |kind, batch, item_len| {
        let (ignore, normalization) = (None, LossNormalization::Full);
        ElementwiseLoss { kind, batch, item_len, ignore, normalization }
    };
    let mut corner_cases = Vec::new();
    for kind in KINDS {
        let sizes = [(0, 3), (1, 1), (1025, 1), (5, 4099)];
        corner_cases.extend(sizes.map(|(batch, item_len)| loss_op(kind, batch, item_len)));
        corner_cases.extend(NORMALIZATIONS.map(|normalization| ElementwiseLoss {
            ignore: Some(1),
            normalization,
            ..loss_op(kind, 4, 15)
        }));
    }
    let normalization = prop::sample::select(&NORMALIZATIONS[..]);
    let kind = prop::sample::select(&KINDS[..]);
    let random_cases = (kind, 0..9usize, 0..99usize, prop::option::of(-1..2i64), normalization);
    let random_cases =
        random_cases.prop_map(move |(kind, batch, item_len, ignore, normalization)| {
            ElementwiseLoss { ignore, normalization, ..loss_op(kind, batch, item_len) }
        });
    Cases::new(corner_cases, random_cases, loss_op(Squared, 2, 3))
}
