//! Losses of the scores of all classes.

use crate::{
    element::Element,
    error::{Result, check_len},
    host::{
        nn::softmax_loss::{class, place},
        threads::Workers,
    },
    op::{ClassLoss, ClassLossKind},
};

/// `loss[0] ← Σ f(x, label) / n`, as [`ClassLoss`] says; computed in `f64`.
///
/// # Errors
/// [`Error::Length`](crate::Error::Length); [`Error::InvalidInput`](crate::Error::InvalidInput) for a label that
/// is no class and not ignored, or a matrix with a hinge.
pub fn class_loss<T: Element>(
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
    let (mut sum, mut valid) = (0.0, 0);
    for (at, &label) in label.iter().enumerate() {
        let Some(right) = class(OP, label, at, axis, op.ignore)? else { continue };
        let x = |class| x[place(axis, at, class)].to_f64();
        let log = |class| x(class).max(ClassLoss::FLOOR).ln();
        let short = |class| (1.0 + sign(class, right) * x(class)).max(0.0);
        let classes = 0..axis.extent;
        sum += match (op.form, matrix) {
            (ClassLossKind::Log | ClassLossKind::LogWithSoftmaxGradient, None) => -log(right),
            (ClassLossKind::Log | ClassLossKind::LogWithSoftmaxGradient, Some(matrix)) => {
                let row = &matrix[right * axis.extent..][..axis.extent];
                -classes.zip(row).map(|(class, weight)| weight.to_f64() * log(class)).sum::<f64>()
            }
            (ClassLossKind::Hinge, _) => classes.map(short).sum(),
            (ClassLossKind::SquaredHinge, _) => classes.map(|class| short(class).powi(2)).sum(),
        };
        valid += 1;
    }
    loss[0] = T::from_f64(sum / op.normalization.divisor(axis.outer, axis.inner, valid));
    Ok(())
}

/// `dx ← scale[0] · the derivative of f / n`; zero where labels are ignored. At the kink of a hinge
/// the derivative is 0.
///
/// # Errors
/// As [`class_loss`].
pub fn class_loss_backward<T: Element>(
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
    let mut valid = 0;
    for (at, &label) in label.iter().enumerate() {
        valid += usize::from(class(OP, label, at, axis, op.ignore)?.is_some());
    }
    let divisor = op.normalization.divisor(axis.outer, axis.inner, valid);
    let factor = scale[0].to_f64() / divisor;
    for (at, &label) in label.iter().enumerate() {
        let right = class(OP, label, at, axis, op.ignore)?;
        let row: Option<&[T]> =
            right.and_then(|right| Some(&matrix?[right * axis.extent..][..axis.extent]));
        let weight = |class: usize| match row {
            Some(row) => row[class].to_f64(),
            None => f64::from(u8::from(Some(class) == right)),
        };
        let total = row.map_or(1.0, |row| row.iter().map(|weight| weight.to_f64()).sum());
        for k in 0..axis.extent {
            let place = place(axis, at, k);
            let value = x[place].to_f64();
            let slope = right.map_or(0.0, |right| match op.form {
                // Not 0/0 where the class has no weight.
                ClassLossKind::Log if weight(k) == 0.0 => 0.0,
                ClassLossKind::Log => -weight(k) / value.max(ClassLoss::FLOOR),
                ClassLossKind::LogWithSoftmaxGradient => value * total - weight(k),
                ClassLossKind::Hinge | ClassLossKind::SquaredHinge => {
                    let sign = sign(k, right);
                    let short = (1.0 + sign * value).max(0.0);
                    match op.form {
                        ClassLossKind::SquaredHinge => 2.0 * sign * short,
                        _ if short > 0.0 => sign,
                        _ => 0.0,
                    }
                }
            });
            dx[place] = T::from_f64(factor * slope);
        }
    }
    Ok(())
}

/// −1 for the right class, whose score is to be great, and 1 for the others.
fn sign(class: usize, right: usize) -> f64 {
    if class == right { -1.0 } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        host::{nn::softmax::softmax, testing::operand},
        op::{Axis, LossNormalization},
    };

    fn op(form: ClassLossKind) -> ClassLoss {
        let axis = Axis::new(2, 3, 2).unwrap();
        ClassLoss { axis, form, ignore: Some(1), normalization: LossNormalization::Valid }
    }

    const LABELS: [f64; 4] = [0.0, 1.0, 2.0, 0.0];
    const MATRIX: [f64; 9] = [2.0, 0.5, 0.0, 1.0, 1.0, 1.0, 0.25, 0.0, 3.0];

    fn loss(op: &ClassLoss, x: &[f64], matrix: Option<&[f64]>) -> f64 {
        let mut loss = [f64::NAN];
        class_loss(&Workers::sequential(), op, x, &LABELS, matrix, &mut loss).unwrap();
        loss[0]
    }

    #[test]
    fn known_values() {
        let axis = Axis::new(1, 3, 1).unwrap();
        let value = |form, x: [f64; 3], matrix: Option<&[f64]>| {
            let (op, mut loss) = (ClassLoss { axis, ..op(form) }, [f64::NAN]);
            class_loss(&Workers::sequential(), &op, &x, &[2.0], matrix, &mut loss).unwrap();
            loss[0]
        };
        let even = [0.5, 0.25, 0.25];
        for (form, x, matrix, want) in [
            (ClassLossKind::Log, even, None, 4f64.ln()),
            (ClassLossKind::Log, [0.5, 0.5, 0.0], None, -1e-20f64.ln()),
            (ClassLossKind::Log, even, Some(&MATRIX[..]), 6.25 * 2f64.ln()),
            (ClassLossKind::Hinge, [0.5, -2.0, 0.25], None, 2.25),
            (ClassLossKind::SquaredHinge, [0.5, -2.0, 0.25], None, 2.8125),
        ] {
            let got = value(form, x, matrix);
            assert!((got - want).abs() < 1e-14 * want, "{form:?}: {got} {want}");
        }
    }

    /// By central differences; of scores through their softmax where that is meant.
    #[test]
    fn gradients_by_differences() {
        let scores: Vec<f64> = (0..12).map(|i| 0.3 + f64::from(i * 7 % 5) / 3.0).collect();
        for (form, matrix) in [
            (ClassLossKind::Log, None),
            (ClassLossKind::Log, Some(&MATRIX[..])),
            (ClassLossKind::LogWithSoftmaxGradient, None),
            (ClassLossKind::LogWithSoftmaxGradient, Some(&MATRIX[..])),
            (ClassLossKind::Hinge, None),
            (ClassLossKind::SquaredHinge, None),
        ] {
            let (op, w) = (op(form), &Workers::sequential());
            let input = |scores: &[f64]| {
                let mut x = scores.to_vec();
                if form == ClassLossKind::LogWithSoftmaxGradient {
                    softmax(w, &op.axis, scores, &mut x).unwrap();
                }
                x
            };
            let (x, mut dx) = (input(&scores), [f64::NAN; 12]);
            class_loss_backward(w, &op, &x, &LABELS, matrix, &[2.5], &mut dx).unwrap();
            for i in 0..12 {
                let moved = |by: f64| {
                    let mut scores = scores.clone();
                    scores[i] += by;
                    loss(&op, &input(&scores), matrix)
                };
                let slope = 2.5 * (moved(1e-5) - moved(-1e-5)) / 2e-5;
                assert!((dx[i] - slope).abs() < 1e-8, "{form:?} {i}: {} {slope}", dx[i]);
            }
            assert!([1, 3, 5].iter().all(|&i| dx[i] == 0.0), "position (0, 1) is ignored");
        }
    }

    #[test]
    fn a_hinge_is_flat_at_its_kink() {
        let (op, mut dx) = (op(ClassLossKind::Hinge), [f64::NAN; 12]);
        let x: Vec<f64> = [1.0, -1.0, -1.0, -1.0, -1.0, 1.0].repeat(2);
        let w = &Workers::sequential();
        class_loss_backward(w, &op, &x, &[0.0; 4], None, &[1.0], &mut dx).unwrap();
        assert_eq!(dx[0], 0.0);
    }

    #[test]
    fn operands_are_checked() {
        let (w, op, name) = (&Workers::sequential(), &op(ClassLossKind::Log), "class_loss");
        let (x, label, one) = (&[0.5f64; 12][..], &LABELS[..], &mut [0.0][..]);
        assert_eq!(operand(class_loss(w, op, label, label, None, one)), (name, "x"));
        assert_eq!(operand(class_loss(w, op, x, x, None, one)), (name, "label"));
        assert_eq!(operand(class_loss(w, op, x, label, Some(x), one)), (name, "matrix"));
        assert_eq!(operand(class_loss(w, op, x, label, None, &mut [])), (name, "loss"));
        let (back, dx) = ("class_loss_backward", &mut [0.0; 12][..]);
        assert_eq!(operand(class_loss_backward(w, op, x, label, None, x, dx)), (back, "scale"));
        assert_eq!(operand(class_loss_backward(w, op, x, label, None, &[1.0], one)), (back, "dx"));
        let hinge = ClassLoss { form: ClassLossKind::Hinge, ..*op };
        assert!(class_loss(w, &hinge, x, label, Some(&MATRIX), one).is_err());
        for bad in [-1.0, 3.0, 0.5, f64::NAN] {
            let label = [0.0, 0.0, bad, 0.0];
            let message = class_loss(w, op, x, &label, None, one).unwrap_err().to_string();
            assert!(message.contains("position 2") && message.contains("3 classes"), "{message}");
            assert!(class_loss_backward(w, op, x, &label, None, &[1.0], dx).is_err());
        }
    }
}
