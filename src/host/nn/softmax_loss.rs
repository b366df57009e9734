//! Softmax loss and accuracy, over class scores and labels.

use crate::{
    element::Element,
    error::{Error, Result, check_len},
    host::threads::Workers,
    op::{Accuracy, Axis, SoftmaxLoss, at_least},
};

/// `loss[0] ← −Σ ln max(p[label], tiny) / n`, summed in `f64`; see [`SoftmaxLoss`].
///
/// # Errors
/// Returns [`Error::Length`], which names the operand, if an operand has the wrong length. Returns
/// [`Error::InvalidInput`] for a label that is neither a class number nor the ignored label.
pub(crate) fn softmax_loss<T: Element>(
    _: &Workers,
    op: &SoftmaxLoss,
    p: &[T],
    label: &[T],
    loss: &mut [T],
) -> Result<()> {
    const OP: &str = "softmax_loss";
    let axis = &op.axis;
    op.check(OP, p.len(), label.len())?;
    check_len(OP, "loss", 1, loss.len())?;
    let tiny = f64::from(f32::MIN_POSITIVE);
    let (mut sum, mut valid_count) = (0.0, 0);
    for (position, &label) in label.iter().enumerate() {
        if let Some(class) = class_of(OP, label, position, axis, op.ignore)? {
            sum -= at_least(p[score_index(axis, position, class)].to_f64(), tiny).ln();
            valid_count += 1;
        }
    }
    loss[0] = T::from_f64(sum / op.divisor(valid_count));
    Ok(())
}

/// `dx ← scale[0] · (p − onehot(label)) / n`. The gradient `dx` is zero for ignored labels.
///
/// # Errors
/// Returns any error from [`softmax_loss`].
pub(crate) fn softmax_loss_backward<T: Element>(
    _: &Workers,
    op: &SoftmaxLoss,
    p: &[T],
    label: &[T],
    scale: &[T],
    dx: &mut [T],
) -> Result<()> {
    const OP: &str = "softmax_loss_backward";
    let axis = &op.axis;
    op.check(OP, p.len(), label.len())?;
    check_len(OP, "scale", 1, scale.len())?;
    check_len(OP, "dx", axis.count(), dx.len())?;
    let valid_count = count_valid(OP, label, axis, op.ignore)?;
    let factor = T::acc(scale[0].to_f64() / op.divisor(valid_count));
    for (dx, p) in dx.iter_mut().zip(p) {
        *dx = T::from_acc(p.to_acc() * factor);
    }
    for (position, &label) in label.iter().enumerate() {
        match class_of(OP, label, position, axis, op.ignore)? {
            Some(class) => {
                let i = score_index(axis, position, class);
                dx[i] = T::from_acc((p[i].to_acc() - T::acc(1.0)) * factor);
            }
            None => (0..axis.extent)
                .for_each(|class| dx[score_index(axis, position, class)] = T::default()),
        }
    }
    Ok(())
}

/// Sets `y[0]` to the fraction of labels whose class has one of the `top_k` greatest scores; see
/// [`Accuracy`].
///
/// # Errors
/// Returns any error from [`softmax_loss`].
pub(crate) fn accuracy<T: Element>(
    _: &Workers,
    op: &Accuracy,
    scores: &[T],
    label: &[T],
    y: &mut [T],
) -> Result<()> {
    op.check("accuracy", scores.len(), label.len())?;
    check_len("accuracy", "y", 1, y.len())?;
    let mut count = HitCount::default();
    for_each_label("accuracy", op, scores, label, |_, hit| count.add(hit))?;
    y[0] = T::from_f64(count.share());
    Ok(())
}

/// For each class `c`, sets `y[c]` to the fraction of the labels equal to `c` for which the score
/// of `c` is among the `top_k` greatest scores. If no label equals `c`, sets `y[c]` to 0.
///
/// # Errors
/// Returns any error from [`softmax_loss`].
pub(crate) fn accuracy_by_class<T: Element>(
    _: &Workers,
    op: &Accuracy,
    scores: &[T],
    label: &[T],
    y: &mut [T],
) -> Result<()> {
    op.check("accuracy_by_class", scores.len(), label.len())?;
    check_len("accuracy_by_class", "y", op.axis.extent, y.len())?;
    let mut counts = vec![HitCount::default(); op.axis.extent];
    for_each_label("accuracy_by_class", op, scores, label, |class, hit| counts[class].add(hit))?;
    y.iter_mut().zip(counts).for_each(|(y, count)| *y = T::from_f64(count.share()));
    Ok(())
}

/// Number of labels that are not ignored, and number of these labels whose class has one of the
/// `top_k` greatest scores.
#[derive(Clone, Default)]
struct HitCount {
    hits: usize,
    labels: usize,
}

impl HitCount {
    fn add(&mut self, hit: bool) {
        self.hits += usize::from(hit);
        self.labels += 1;
    }

    fn share(&self) -> f64 {
        self.hits as f64 / self.labels.max(1) as f64
    }
}

/// Calls `body(class, hit)` for each label that is not ignored. `hit` is true if the score of the
/// label's class is among the `top_k` greatest scores.
fn for_each_label<T: Element>(
    name: &'static str,
    op: &Accuracy,
    scores: &[T],
    label: &[T],
    mut body: impl FnMut(usize, bool),
) -> Result<()> {
    let axis = &op.axis;
    for (position, &label) in label.iter().enumerate() {
        let Some(class) = class_of(name, label, position, axis, op.ignore)? else { continue };
        let score = |class| scores[score_index(axis, position, class)];
        let label_score = score(class);
        // The rank of the label is the number of scores that are at least the label's score, so a
        // tie worsens the rank. If the label's score is NaN, the rank is 0, because comparisons
        // with NaN are false, and the label is not a hit.
        let rank = (0..axis.extent).filter(|&class| score(class) >= label_score);
        body(class, (1..=op.top_k).contains(&rank.take(op.top_k.saturating_add(1)).count()));
    }
    Ok(())
}

/// Returns the index of the score of class `class` for the label with index `position`.
#[inline]
pub(crate) fn score_index(axis: &Axis, position: usize, class: usize) -> usize {
    let (outer, inner) = (position / axis.inner, position % axis.inner);
    (outer * axis.extent + class) * axis.inner + inner
}

/// Returns the class number that a label holds, or `None` if the loss ignores the label.
#[inline]
pub(crate) fn class_of<T: Element>(
    op: &'static str,
    label: T,
    position: usize,
    axis: &Axis,
    ignore: Option<i64>,
) -> Result<Option<usize>> {
    let value = label.to_f64();
    if ignore.is_some_and(|ignore| value == ignore as f64) {
        return Ok(None);
    }
    if value >= 0.0 && value < axis.extent as f64 && value.fract() == 0.0 {
        return Ok(Some(value as usize));
    }
    let classes = axis.extent;
    Err(Error::invalid_input(
        op,
        format!("label {value} at position {position}: expected one of {classes} classes"),
    ))
}

/// Returns the number of labels that are not ignored.
pub(crate) fn count_valid<T: Element>(
    op: &'static str,
    label: &[T],
    axis: &Axis,
    ignore: Option<i64>,
) -> Result<usize> {
    let mut valid_count = 0;
    for (position, &label) in label.iter().enumerate() {
        valid_count += usize::from(class_of(op, label, position, axis, ignore)?.is_some());
    }
    Ok(valid_count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{host::nn::testing::expect_length_errors, op::LossNormalization};

    static WORKERS: Workers = Workers::sequential();

    /// Class axis of extent three, with outer and inner extents of two.
    fn axis() -> Axis {
        Axis::new(2, 3, 2).unwrap()
    }

    fn op(ignore: Option<i64>, normalization: LossNormalization) -> SoftmaxLoss {
        SoftmaxLoss { axis: axis(), ignore, normalization }
    }

    fn loss<T: Element>(op: &SoftmaxLoss, p: &[T], label: &[T]) -> T {
        let mut loss = [T::from_f64(f64::NAN)];
        softmax_loss(&WORKERS, op, p, label, &mut loss).unwrap();
        loss[0]
    }

    #[test]
    fn softmax_loss_of_probability_zero_is_finite() {
        let op = SoftmaxLoss {
            axis: Axis::new(1, 2, 1).unwrap(),
            ignore: None,
            normalization: LossNormalization::Valid,
        };
        assert_eq!(loss(&op, &[0.0f32, 1.0], &[0.0]), 87.33655);
    }

    /// Caffe's CPU code gives NaN, because `std::max(NaN, tiny)` is NaN.
    #[test]
    fn the_loss_of_a_nan_probability_is_nan() {
        let axis = Axis { outer: 2, extent: 2, inner: 1 };
        let op = SoftmaxLoss { axis, ignore: None, normalization: LossNormalization::Valid };
        let mut loss = [0.0f32];
        let p = [0.5, 0.5, f32::NAN, f32::NAN];
        softmax_loss(&Workers::sequential(), &op, &p, &[0.0, 1.0], &mut loss).unwrap();
        assert!(loss[0].is_nan());
    }

    #[test]
    fn labels_outside_the_classes_are_errors() {
        for bad in [-1.0, 3.0, 0.5, f32::NAN, f32::INFINITY] {
            let labels = [0.0, 0.0, bad, 0.0];
            let op = op(None, LossNormalization::Valid);
            let result = softmax_loss(&WORKERS, &op, &[0.5f32; 12], &labels, &mut [0.0]);
            let message = result.unwrap_err().to_string();
            assert!(message.contains("position 2") && message.contains("3 classes"), "{message}");
            let dx = &mut [0.0; 12];
            assert!(
                softmax_loss_backward(&WORKERS, &op, &[0.5f32; 12], &labels, &[1.0], dx).is_err()
            );
            let op = Accuracy { axis: axis(), top_k: 1, ignore: None };
            assert!(accuracy(&WORKERS, &op, &[0.5f32; 12], &labels, &mut [0.0]).is_err());
            let y = &mut [0.0; 3];
            assert!(accuracy_by_class(&WORKERS, &op, &[0.5f32; 12], &labels, y).is_err());
        }
    }

    #[test]
    fn softmax_loss_and_accuracy_length_errors_name_the_operand() {
        let (w, op) = (&WORKERS, &op(None, LossNormalization::Full));
        let (p, label, scores) = (("p", 12), ("label", 4), ("scores", 12));
        expect_length_errors("softmax_loss", [p, label, ("loss", 1)], |[p, label, mut loss]| {
            softmax_loss(w, op, &p, &label, &mut loss)
        });
        let operands = [p, label, ("scale", 1), ("dx", 12)];
        expect_length_errors("softmax_loss_backward", operands, |[p, label, scale, mut dx]| {
            softmax_loss_backward(w, op, &p, &label, &scale, &mut dx)
        });
        let op = &Accuracy { axis: axis(), top_k: 1, ignore: None };
        expect_length_errors("accuracy", [scores, label, ("y", 1)], |[x, label, mut y]| {
            accuracy(w, op, &x, &label, &mut y)
        });
        expect_length_errors(
            "accuracy_by_class",
            [scores, label, ("y", 3)],
            |[x, label, mut y]| accuracy_by_class(w, op, &x, &label, &mut y),
        );
    }
}
