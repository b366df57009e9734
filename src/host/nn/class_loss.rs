//! Log loss, weighted log loss and hinge loss over the scores of all classes.

use crate::{
    element::Element,
    error::{Result, check_len},
    host::{
        nn::softmax_loss::{class_of, count_valid, score_index},
        threads::Workers,
    },
    op::{ClassLoss, ClassLossKind, at_least},
};

/// `loss[0] ← Σ f(x, label) / n`, computed in `f64`. [`ClassLoss`] defines the loss `f` of one
/// label and the normalizer `n`.
///
/// # Errors
/// Returns [`Error::Length`](crate::Error::Length), which names the operand, if an operand has the
/// wrong length. Returns [`Error::InvalidInput`](crate::Error::InvalidInput) for a label that is
/// neither a class nor ignored, or a hinge loss with a weight matrix.
pub(crate) fn class_loss<T: Element>(
    _: &Workers,
    op: &ClassLoss,
    x: &[T],
    label: &[T],
    matrix: Option<&[T]>,
    loss: &mut [T],
) -> Result<()> {
    const OP: &str = "class_loss";
    op.check(OP, x.len(), label.len(), matrix.map(<[T]>::len))?;
    check_len(OP, "loss", 1, loss.len())?;
    let axis = &op.axis;
    let (mut sum, mut valid_count) = (0.0, 0);
    for (position, &label) in label.iter().enumerate() {
        let Some(correct_class) = class_of(OP, label, position, axis, op.ignore)? else { continue };
        let x = |class| x[score_index(axis, position, class)].to_f64();
        let log = |class| at_least(x(class), ClassLoss::FLOOR).ln();
        let hinge = |class| at_least(1.0 + hinge_sign(class, correct_class) * x(class), 0.0);
        let classes = 0..axis.extent;
        sum += match (op.kind, matrix) {
            (ClassLossKind::Log | ClassLossKind::LogWithSoftmaxGradient, None) => {
                -log(correct_class)
            }
            (ClassLossKind::Log | ClassLossKind::LogWithSoftmaxGradient, Some(matrix)) => {
                let row = &matrix[correct_class * axis.extent..][..axis.extent];
                -classes.zip(row).map(|(class, weight)| weight.to_f64() * log(class)).sum::<f64>()
            }
            (ClassLossKind::Hinge, _) => classes.map(hinge).sum(),
            (ClassLossKind::SquaredHinge, _) => classes.map(|class| hinge(class).powi(2)).sum(),
        };
        valid_count += 1;
    }
    loss[0] = T::from_f64(sum / op.normalization.divisor(axis.outer, axis.inner, valid_count));
    Ok(())
}

/// `dx ← scale[0] · ∂f/∂x / n`. The gradient `dx` is zero for ignored labels, and at the kink of a
/// hinge loss.
///
/// # Errors
/// Returns any error from [`class_loss`].
pub(crate) fn class_loss_backward<T: Element>(
    _: &Workers,
    op: &ClassLoss,
    x: &[T],
    label: &[T],
    matrix: Option<&[T]>,
    scale: &[T],
    dx: &mut [T],
) -> Result<()> {
    const OP: &str = "class_loss_backward";
    op.check(OP, x.len(), label.len(), matrix.map(<[T]>::len))?;
    check_len(OP, "scale", 1, scale.len())?;
    check_len(OP, "dx", op.axis.count(), dx.len())?;
    let axis = &op.axis;
    let valid_count = count_valid(OP, label, axis, op.ignore)?;
    let divisor = op.normalization.divisor(axis.outer, axis.inner, valid_count);
    let factor = scale[0].to_f64() / divisor;
    for (position, &label) in label.iter().enumerate() {
        let correct_class = class_of(OP, label, position, axis, op.ignore)?;
        let row: Option<&[T]> =
            correct_class.and_then(|class| Some(&matrix?[class * axis.extent..][..axis.extent]));
        let weight = |class: usize| match row {
            Some(row) => row[class].to_f64(),
            None => f64::from(u8::from(Some(class) == correct_class)),
        };
        let weight_sum = row.map_or(1.0, |row| row.iter().map(|weight| weight.to_f64()).sum());
        for k in 0..axis.extent {
            let i = score_index(axis, position, k);
            let value = x[i].to_f64();
            let derivative = correct_class.map_or(0.0, |correct_class| match op.kind {
                // If the weight is 0, the gradient is 0, even if `value` is NaN.
                ClassLossKind::Log if weight(k) == 0.0 => 0.0,
                ClassLossKind::Log => -weight(k) / at_least(value, ClassLoss::FLOOR),
                ClassLossKind::LogWithSoftmaxGradient => value * weight_sum - weight(k),
                ClassLossKind::Hinge | ClassLossKind::SquaredHinge => {
                    let sign = hinge_sign(k, correct_class);
                    let hinge = at_least(1.0 + sign * value, 0.0);
                    match op.kind {
                        ClassLossKind::SquaredHinge => 2.0 * sign * hinge,
                        _ if hinge > 0.0 => sign,
                        _ => 0.0,
                    }
                }
            });
            dx[i] = T::from_f64(factor * derivative);
        }
    }
    Ok(())
}

/// Returns −1 for the correct class, whose score should be high, and 1 for all other classes.
fn hinge_sign(class: usize, correct_class: usize) -> f64 {
    if class == correct_class { -1.0 } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        host::nn::testing::expect_length_errors,
        op::{Axis, LossNormalization},
    };

    fn op(form: ClassLossKind) -> ClassLoss {
        let axis = Axis::new(2, 3, 2).unwrap();
        ClassLoss { axis, kind: form, ignore: Some(1), normalization: LossNormalization::Valid }
    }

    const LABELS: [f64; 4] = [0.0, 1.0, 2.0, 0.0];
    const MATRIX: [f64; 9] = [2.0, 0.5, 0.0, 1.0, 1.0, 1.0, 0.25, 0.0, 3.0];

    #[test]
    fn hinge_loss_gradient_is_zero_at_the_kink() {
        let (op, mut dx) = (op(ClassLossKind::Hinge), [f64::NAN; 12]);
        let x: Vec<f64> = [1.0, -1.0, -1.0, -1.0, -1.0, 1.0].repeat(2);
        let w = &Workers::sequential();
        class_loss_backward(w, &op, &x, &[0.0; 4], None, &[1.0], &mut dx).unwrap();
        assert_eq!(dx[0], 0.0);
    }

    #[test]
    fn class_loss_errors_name_the_operand_or_label() {
        let (w, op) = (&Workers::sequential(), &op(ClassLossKind::Log));
        let operands = [("x", 12), ("label", 4), ("matrix", 9), ("loss", 1)];
        expect_length_errors("class_loss", operands, |[x, label, matrix, mut loss]| {
            class_loss(w, op, &x, &label, Some(&matrix), &mut loss)
        });
        let operands = [("x", 12), ("label", 4), ("scale", 1), ("dx", 12)];
        expect_length_errors("class_loss_backward", operands, |[x, label, scale, mut dx]| {
            class_loss_backward(w, op, &x, &label, None, &scale, &mut dx)
        });
        let (x, loss, dx) = (&[0.5; 12][..], &mut [0.0][..], &mut [0.0; 12][..]);
        let hinge = ClassLoss { kind: ClassLossKind::Hinge, ..*op };
        assert!(class_loss(w, &hinge, x, &LABELS, Some(&MATRIX), loss).is_err());
        for bad in [-1.0, 3.0, 0.5, f64::NAN] {
            let label = [0.0, 0.0, bad, 0.0];
            let message = class_loss(w, op, x, &label, None, loss).unwrap_err().to_string();
            assert!(message.contains("position 2") && message.contains("3 classes"), "{message}");
            assert!(class_loss_backward(w, op, x, &label, None, &[1.0], dx).is_err());
        }
    }
}
