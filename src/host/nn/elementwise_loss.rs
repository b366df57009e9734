//! Elementwise losses, which compare each element of `x` with a target.

use crate::{
    element::Element,
    error::{Result, check_len},
    host::threads::Workers,
    op::{ElementwiseLoss, ElementwiseLossKind},
};
use num_traits::Float;

const GRAIN: usize = 1 << 14;

/// Number of independent partial sums of the loss, whose additions the processor overlaps.
const LANES: usize = 8;

/// `loss[0] ← Σ f(xᵢ, tᵢ) / n`, summed in `f64`. [`ElementwiseLoss`] defines the loss `f` of one
/// element and the normalizer `n`.
///
/// # Errors
/// Returns [`Error::Length`](crate::Error::Length), which names the operand, if an operand has the
/// wrong length.
pub(crate) fn elementwise_loss<T: Element>(
    workers: &Workers,
    op: &ElementwiseLoss<T::Acc>,
    x: &[T],
    t: &[T],
    loss: &mut [T],
) -> Result<()> {
    op.check("elementwise_loss", x.len(), t.len())?;
    check_len("elementwise_loss", "loss", 1, loss.len())?;
    let ignore = ignored_target::<T>(op);
    let sums = workers.map(x.len().div_ceil(GRAIN), |task| {
        let range = task * GRAIN..x.len().min((task + 1) * GRAIN);
        let (x, t) = (&x[range.clone()], &t[range]);
        match op.kind {
            // A loss kind that is a compile-time constant lets the compiler vectorize the loop over
            // elements.
            ElementwiseLossKind::Squared => {
                sum(x, t, ignore, |x, t| ElementwiseLossKind::Squared.eval(x, t))
            }
            kind => sum(x, t, ignore, |x, t| kind.eval(x, t)),
        }
    });
    let total: f64 = sums.iter().sum();
    loss[0] = T::from_f64(total / op.divisor(count_valid(workers, op, t)));
    Ok(())
}

/// `dxᵢ ← scale[0] · f'(xᵢ, tᵢ) / n`. The gradient `dxᵢ` is zero if the target `tᵢ` is ignored.
///
/// # Errors
/// Returns [`Error::Length`](crate::Error::Length), which names the operand, if an operand has the
/// wrong length.
pub(crate) fn elementwise_loss_backward<T: Element>(
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
    let factor = T::acc(scale[0].to_f64() / op.divisor(count_valid(workers, op, t)));
    let ignore = ignored_target::<T>(op);
    workers.for_each_chunk(dx, GRAIN, |task, dx| {
        let (x, t) = (&x[task * GRAIN..], &t[task * GRAIN..]);
        for ((dx, x), t) in dx.iter_mut().zip(x).zip(t) {
            let (x, t) = (x.to_acc(), t.to_acc());
            *dx = match Some(t.trunc()) == ignore {
                true => T::default(),
                false => T::from_acc(factor * op.kind.derivative(x, t)),
            };
        }
    });
    Ok(())
}

/// Returns the target value that the loss ignores, converted to the accumulator type.
fn ignored_target<T: Element>(op: &ElementwiseLoss<T::Acc>) -> Option<T::Acc> {
    op.ignore.map(|ignore| T::acc(ignore as f64))
}

fn count_valid<T: Element>(workers: &Workers, op: &ElementwiseLoss<T::Acc>, t: &[T]) -> usize {
    let Some(ignore) = ignored_target::<T>(op) else { return t.len() };
    let is_valid = |t: &&T| t.to_acc().trunc() != ignore;
    let part = |task| &t[task * GRAIN..t.len().min((task + 1) * GRAIN)];
    let counts =
        workers.map(t.len().div_ceil(GRAIN), |task| part(task).iter().filter(is_valid).count());
    counts.iter().sum()
}

/// Returns the sum of `f(xᵢ, tᵢ)` over the elements whose targets `tᵢ` are not ignored.
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
    use crate::{host::nn::testing::expect_length_errors, op::LossNormalization};

    fn op<A>(
        kind: ElementwiseLossKind<A>,
        ignore: Option<i64>,
        n: LossNormalization,
    ) -> ElementwiseLoss<A> {
        ElementwiseLoss { kind, batch: 2, item_len: 3, ignore, normalization: n }
    }

    #[test]
    fn elementwise_loss_is_bit_identical_on_any_number_of_threads() {
        let op = ElementwiseLoss {
            batch: 3,
            item_len: GRAIN,
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
    fn elementwise_loss_length_errors_name_the_operand() {
        let op = &op(ElementwiseLossKind::Squared, None, LossNormalization::Full);
        let (w, x, t) = (&Workers::sequential(), ("x", 6), ("t", 6));
        expect_length_errors("elementwise_loss", [x, t, ("loss", 1)], |[x, t, mut loss]| {
            elementwise_loss(w, op, &x, &t, &mut loss)
        });
        let operands = [x, t, ("scale", 1), ("dx", 6)];
        expect_length_errors("elementwise_loss_backward", operands, |[x, t, scale, mut dx]| {
            elementwise_loss_backward(w, op, &x, &t, &scale, &mut dx)
        });
    }
}
