//! Losses of numbers against targets.

use crate::{
    element::Element,
    error::{Result, check_len},
    host::threads::Workers,
    op::{ElementwiseLoss, ElementwiseLossKind},
};
use num_traits::Float;

/// Elements of one task.
const GRAIN: usize = 1 << 14;

/// Sums taken side by side, so that one addition need not wait for the one before.
const LANES: usize = 8;

/// `loss[0] ← Σ f(xᵢ, tᵢ) / n`, as [`ElementwiseLoss`] says; summed in `f64`.
///
/// # Errors
/// [`Error::Length`](crate::Error::Length) names the operand.
pub fn elementwise_loss<T: Element>(
    workers: &Workers,
    op: &ElementwiseLoss<T::Acc>,
    x: &[T],
    t: &[T],
    loss: &mut [T],
) -> Result<()> {
    op.check("elementwise_loss", x.len(), t.len())?;
    check_len("elementwise_loss", "loss", 1, loss.len())?;
    let ignore = ignored::<T>(op);
    let sums = workers.map(x.len().div_ceil(GRAIN), |task| {
        let part = |x: &[T]| task * GRAIN..x.len().min((task + 1) * GRAIN);
        let (x, t) = (&x[part(x)], &t[part(t)]);
        match op.form {
            // Known here, each is a loop of its own.
            ElementwiseLossKind::Squared => {
                sum(x, t, ignore, |x, t| ElementwiseLossKind::Squared.eval(x, t))
            }
            form => sum(x, t, ignore, |x, t| form.eval(x, t)),
        }
    });
    let total: f64 = sums.iter().sum();
    loss[0] = T::from_f64(total / op.divisor(valid(workers, op, t)));
    Ok(())
}

/// `dxᵢ ← scale[0] · f'(xᵢ, tᵢ) / n`, zero where targets are ignored.
///
/// # Errors
/// [`Error::Length`](crate::Error::Length) names the operand.
pub fn elementwise_loss_backward<T: Element>(
    workers: &Workers,
    op: &ElementwiseLoss<T::Acc>,
    x: &[T],
    t: &[T],
    scale: &[T],
    dx: &mut [T],
) -> Result<()> {
    const OP: &str = "elementwise_loss_backward";
    op.check(OP, x.len(), t.len())?;
    check_len(OP, "scale", 1, scale.len())?;
    check_len(OP, "dx", x.len(), dx.len())?;
    let factor = T::acc(scale[0].to_f64() / op.divisor(valid(workers, op, t)));
    let ignore = ignored::<T>(op);
    workers.for_each_chunk(dx, GRAIN, |task, dx| {
        let (x, t) = (&x[task * GRAIN..], &t[task * GRAIN..]);
        for ((dx, x), t) in dx.iter_mut().zip(x).zip(t) {
            let (x, t) = (x.to_acc(), t.to_acc());
            let counts = Some(t.trunc()) != ignore;
            *dx =
                if counts { T::from_acc(factor * op.form.derivative(x, t)) } else { T::default() };
        }
    });
    Ok(())
}

/// The target to ignore, as targets are.
fn ignored<T: Element>(op: &ElementwiseLoss<T::Acc>) -> Option<T::Acc> {
    op.ignore.map(|ignore| T::acc(ignore as f64))
}

/// Targets that count.
fn valid<T: Element>(workers: &Workers, op: &ElementwiseLoss<T::Acc>, t: &[T]) -> usize {
    let Some(ignore) = ignored::<T>(op) else { return t.len() };
    let counts = |t: &&T| t.to_acc().trunc() != ignore;
    let part = |task| &t[task * GRAIN..t.len().min((task + 1) * GRAIN)];
    workers
        .map(t.len().div_ceil(GRAIN), |task| part(task).iter().filter(counts).count())
        .iter()
        .sum()
}

#[inline(always)]
fn sum<T: Element>(
    x: &[T],
    t: &[T],
    ignore: Option<T::Acc>,
    f: impl Fn(T::Acc, T::Acc) -> T::Acc,
) -> f64 {
    let mut lanes = [0.0; LANES];
    for (x, t) in x.chunks(LANES).zip(t.chunks(LANES)) {
        for ((lane, x), t) in lanes.iter_mut().zip(x).zip(t) {
            let (x, t) = (x.to_acc(), t.to_acc());
            if Some(t.trunc()) != ignore {
                *lane += f(x, t).to_f64();
            }
        }
    }
    lanes.iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{host::testing::operand, op::LossNormalization};

    const FORMS: [ElementwiseLossKind<f64>; 4] = [
        ElementwiseLossKind::Squared,
        ElementwiseLossKind::SigmoidCrossEntropy,
        ElementwiseLossKind::Contrastive { margin: 1.5 },
        ElementwiseLossKind::ContrastiveLegacy { margin: 1.5 },
    ];

    fn op<A>(
        form: ElementwiseLossKind<A>,
        ignore: Option<i64>,
        n: LossNormalization,
    ) -> ElementwiseLoss<A> {
        ElementwiseLoss { form, batch: 2, each: 3, ignore, normalization: n }
    }

    #[test]
    fn known_values() {
        let loss = |form, x, t| {
            let op =
                ElementwiseLoss { batch: 1, each: 1, ..op(form, None, LossNormalization::None) };
            let mut loss = [f64::NAN];
            elementwise_loss(&Workers::sequential(), &op, &[x], &[t], &mut loss).unwrap();
            loss[0]
        };
        assert_eq!(loss(ElementwiseLossKind::Squared, 3.0, 1.0), 2.0);
        assert_eq!(loss(ElementwiseLossKind::SigmoidCrossEntropy, 0.0, 0.3), 2f64.ln());
        assert_eq!(loss(ElementwiseLossKind::SigmoidCrossEntropy, 1000.0, 0.0), 1000.0);
        assert_eq!(loss(ElementwiseLossKind::SigmoidCrossEntropy, -1000.0, 1.0), 1000.0);
        let [pair, legacy] = [FORMS[2], FORMS[3]];
        assert_eq!(loss(pair, 4.0, 1.0), 2.0, "alike");
        assert_eq!(loss(pair, 0.25, 0.0), 0.5, "a distance of 0.5 is 1 short of the margin");
        assert_eq!(loss(pair, 4.0, 0.7), 0.0, "0.7 is not alike");
        assert_eq!(loss(legacy, 0.5, 0.0), 0.5);
    }

    #[test]
    fn divisors_and_what_is_ignored() {
        let (x, t) = ([1.0f32; 6], [0.0, 0.7, -0.7, 1.0, 2.0, 3.0]);
        for (normalization, divisor) in [
            (LossNormalization::Full, 6.0),
            (LossNormalization::Valid, 3.0),
            (LossNormalization::BatchSize, 2.0),
            (LossNormalization::None, 1.0),
        ] {
            let op = op(ElementwiseLossKind::Squared, Some(0), normalization);
            let (mut loss, mut dx) = ([f32::NAN], [f32::NAN; 6]);
            elementwise_loss(&Workers::sequential(), &op, &x, &t, &mut loss).unwrap();
            assert_eq!(loss[0], 2.5 / divisor);
            let w = &Workers::sequential();
            elementwise_loss_backward(w, &op, &x, &t, &[6.0], &mut dx).unwrap();
            assert_eq!(dx, [0.0, 0.0, 0.0, 0.0, -1.0, -2.0].map(|slope| slope * (6.0 / divisor)));
        }
    }

    /// By central differences; Caffe's 1e-4 is small beside the distances.
    #[test]
    fn gradients_by_differences() {
        let x = [0.3, 1.1, 2.6, 0.01, 0.9, 1.9];
        let t = [0.0, 1.0, 0.0, 1.0, 0.0, 0.0];
        for form in FORMS {
            let op = op(form, None, LossNormalization::Full);
            let value = |x: &[f64]| {
                let mut loss = [0.0];
                elementwise_loss(&Workers::sequential(), &op, x, &t, &mut loss).unwrap();
                loss[0]
            };
            let mut dx = [f64::NAN; 6];
            elementwise_loss_backward(&Workers::sequential(), &op, &x, &t, &[2.0], &mut dx)
                .unwrap();
            for i in 0..6 {
                let (mut up, mut down) = (x, x);
                (up[i], down[i]) = (x[i] + 1e-6, x[i] - 1e-6);
                let slope = 2.0 * (value(&up) - value(&down)) / 2e-6;
                assert!((dx[i] - slope).abs() < 3e-4 * slope.abs() + 1e-9, "{form:?} {i}");
            }
        }
    }

    #[test]
    fn the_same_on_any_number_of_threads() {
        let op = ElementwiseLoss {
            batch: 3,
            each: GRAIN,
            ..op(ElementwiseLossKind::SigmoidCrossEntropy, Some(1), LossNormalization::Valid)
        };
        let x: Vec<f32> = (0..3 * GRAIN).map(|i| (i % 97) as f32 / 9.0 - 5.0).collect();
        let t: Vec<f32> = (0..3 * GRAIN).map(|i| (i % 3) as f32 / 2.0).collect();
        let run = |workers: Workers| {
            let (mut loss, mut dx) = ([0.0], vec![0.0; x.len()]);
            elementwise_loss(&workers, &op, &x, &t, &mut loss).unwrap();
            elementwise_loss_backward(&workers, &op, &x, &t, &[1.0], &mut dx).unwrap();
            (loss, dx)
        };
        assert_eq!(run(Workers::sequential()), run(Workers::new(3).unwrap()));
    }

    #[test]
    fn lengths_are_checked() {
        let (w, op) = (
            &Workers::sequential(),
            &op(ElementwiseLossKind::Squared, None, LossNormalization::Full),
        );
        let (six, one) = (&[0.5f32; 6][..], &mut [0.0f32][..]);
        assert_eq!(operand(elementwise_loss(w, op, &[0.0], six, one)), ("elementwise_loss", "x"));
        assert_eq!(operand(elementwise_loss(w, op, six, &[0.0], one)), ("elementwise_loss", "t"));
        assert_eq!(
            operand(elementwise_loss(w, op, six, six, &mut [])),
            ("elementwise_loss", "loss")
        );
        let back = "elementwise_loss_backward";
        assert_eq!(operand(elementwise_loss_backward(w, op, six, six, six, one)), (back, "scale"));
        assert_eq!(operand(elementwise_loss_backward(w, op, six, six, &[1.0], one)), (back, "dx"));
    }
}
