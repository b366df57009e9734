//! Losses and measures over class scores and labels.

use crate::{
    element::Element,
    error::{Error, Result, check_len},
    host::threads::Workers,
    op::{Accuracy, Axis, SoftmaxLoss},
};

/// `loss[0] ← −Σ ln max(p[label], tiny) / n`, as [`SoftmaxLoss`] says; summed in `f64`.
///
/// # Errors
/// [`Error::Length`]; [`Error::InvalidInput`] for a label that is no class and not ignored.
pub fn softmax_loss<T: Element>(
    _: &Workers,
    op: &SoftmaxLoss,
    p: &[T],
    label: &[T],
    loss: &mut [T],
) -> Result<()> {
    const OP: &str = "softmax_loss";
    let axis = &op.axis;
    check_len(OP, "p", axis.count(), p.len())?;
    check_len(OP, "label", axis.reduced_count(), label.len())?;
    check_len(OP, "loss", 1, loss.len())?;
    let tiny = f64::from(f32::MIN_POSITIVE);
    let (mut sum, mut valid) = (0.0, 0);
    for (at, &label) in label.iter().enumerate() {
        if let Some(class) = class(OP, label, at, axis, op.ignore)? {
            sum -= p[place(axis, at, class)].to_f64().max(tiny).ln();
            valid += 1;
        }
    }
    loss[0] = T::from_f64(sum / op.divisor(valid));
    Ok(())
}

/// `dx ← scale[0] · (p − onehot(label)) / n`; zero where labels are ignored.
///
/// # Errors
/// [`Error::Length`]; [`Error::InvalidInput`] for a label that is no class and not ignored.
pub fn softmax_loss_backward<T: Element>(
    _: &Workers,
    op: &SoftmaxLoss,
    p: &[T],
    label: &[T],
    scale: &[T],
    dx: &mut [T],
) -> Result<()> {
    const OP: &str = "softmax_loss_backward";
    let axis = &op.axis;
    check_len(OP, "p", axis.count(), p.len())?;
    check_len(OP, "label", axis.reduced_count(), label.len())?;
    check_len(OP, "scale", 1, scale.len())?;
    check_len(OP, "dx", axis.count(), dx.len())?;
    let mut valid = 0;
    for (at, &label) in label.iter().enumerate() {
        valid += usize::from(class(OP, label, at, axis, op.ignore)?.is_some());
    }
    let factor = T::acc(scale[0].to_f64() / op.divisor(valid));
    for (dx, p) in dx.iter_mut().zip(p) {
        *dx = T::from_acc(p.to_acc() * factor);
    }
    for (at, &label) in label.iter().enumerate() {
        match class(OP, label, at, axis, op.ignore)? {
            Some(class) => {
                let place = place(axis, at, class);
                dx[place] = T::from_acc((p[place].to_acc() - T::acc(1.0)) * factor);
            }
            None => (0..axis.extent).for_each(|class| dx[place(axis, at, class)] = T::default()),
        }
    }
    Ok(())
}

/// `y[0] ←` the share of labels whose score is among the `top_k` greatest, as [`Accuracy`] says.
///
/// # Errors
/// [`Error::Length`]; [`Error::InvalidInput`] for a label that is no class and not ignored.
pub fn accuracy<T: Element>(
    _: &Workers,
    op: &Accuracy,
    scores: &[T],
    label: &[T],
    y: &mut [T],
) -> Result<()> {
    const OP: &str = "accuracy";
    let axis = &op.axis;
    check_len(OP, "scores", axis.count(), scores.len())?;
    check_len(OP, "label", axis.reduced_count(), label.len())?;
    check_len(OP, "y", 1, y.len())?;
    let (mut right, mut valid) = (0usize, 0usize);
    for (at, &label) in label.iter().enumerate() {
        let Some(class) = class(OP, label, at, axis, op.ignore)? else { continue };
        right += usize::from(is_right(op, scores, at, class));
        valid += 1;
    }
    y[0] = T::from_f64(right as f64 / valid.max(1) as f64);
    Ok(())
}

/// `y[c] ←` the share of the labels `c` whose score is among the `top_k` greatest; 0 of none.
///
/// # Errors
/// As [`accuracy`].
pub fn accuracy_by_class<T: Element>(
    _: &Workers,
    op: &Accuracy,
    scores: &[T],
    label: &[T],
    y: &mut [T],
) -> Result<()> {
    const OP: &str = "accuracy_by_class";
    let axis = &op.axis;
    check_len(OP, "scores", axis.count(), scores.len())?;
    check_len(OP, "label", axis.reduced_count(), label.len())?;
    check_len(OP, "y", axis.extent, y.len())?;
    let mut counts = vec![(0usize, 0usize); axis.extent];
    for (at, &label) in label.iter().enumerate() {
        let Some(class) = class(OP, label, at, axis, op.ignore)? else { continue };
        counts[class].0 += usize::from(is_right(op, scores, at, class));
        counts[class].1 += 1;
    }
    for (y, (right, valid)) in y.iter_mut().zip(counts) {
        *y = T::from_f64(right as f64 / valid.max(1) as f64);
    }
    Ok(())
}

/// Whether the score of `class` is among the greatest for the label numbered `at`.
#[inline]
fn is_right<T: Element>(op: &Accuracy, scores: &[T], at: usize, class: usize) -> bool {
    let axis = &op.axis;
    let own = scores[place(axis, at, class)];
    // The label's own score is among those counted, and a tie goes against it.
    // NaN is never ahead, and never right: a net that diverged scores nothing.
    let ahead = (0..axis.extent).filter(|&class| scores[place(axis, at, class)] >= own);
    (1..=op.top_k).contains(&ahead.take(op.top_k.saturating_add(1)).count())
}

/// Where the score of `class` lies for the label numbered `at`.
#[inline]
pub(crate) fn place(axis: &Axis, at: usize, class: usize) -> usize {
    let (outer, inner) = (at / axis.inner, at % axis.inner);
    (outer * axis.extent + class) * axis.inner + inner
}

/// The class that a label means, or `None` if it is ignored.
#[inline]
pub(crate) fn class<T: Element>(
    op: &'static str,
    label: T,
    at: usize,
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
        format!("label {value} at position {at} is none of {classes} classes"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{host::testing::operand, op::LossNormalization};

    fn alone() -> Workers {
        Workers::sequential()
    }

    /// Two positions by two spatial ones, three classes.
    fn axis() -> Axis {
        Axis::new(2, 3, 2).unwrap()
    }

    fn op(ignore: Option<i64>, normalization: LossNormalization) -> SoftmaxLoss {
        SoftmaxLoss { axis: axis(), ignore, normalization }
    }

    /// p[o, c, i] = (c + 1) / 6 for i = 0, the reverse for i = 1.
    const P: [f64; 12] = {
        let (a, b, c) = (1.0 / 6.0, 2.0 / 6.0, 3.0 / 6.0);
        [a, c, b, b, c, a, a, c, b, b, c, a]
    };
    const LABELS: [f64; 4] = [0.0, 1.0, 2.0, 0.0];

    fn loss(op: &SoftmaxLoss) -> f64 {
        let mut loss = [f64::NAN];
        softmax_loss(&alone(), op, &P, &LABELS, &mut loss).unwrap();
        loss[0]
    }

    #[test]
    fn losses_and_their_divisors() {
        let total = 6f64.ln() + 3f64.ln() + 2f64.ln() + 2f64.ln();
        let without_zeros = 3f64.ln() + 2f64.ln();
        for (normalization, all, valid) in [
            (LossNormalization::Full, 4.0, 4.0),
            (LossNormalization::Valid, 4.0, 2.0),
            (LossNormalization::BatchSize, 2.0, 2.0),
            (LossNormalization::None, 1.0, 1.0),
        ] {
            assert!((loss(&op(None, normalization)) - total / all).abs() < 1e-15);
            assert!((loss(&op(Some(0), normalization)) - without_zeros / valid).abs() < 1e-15);
        }
    }

    #[test]
    fn nothing_valid_costs_nothing() {
        let mut loss = [f32::NAN];
        let op = op(Some(-1), LossNormalization::Valid);
        softmax_loss(&alone(), &op, &[0.5; 12], &[-1.0; 4], &mut loss).unwrap();
        assert_eq!(loss, [0.0]);
    }

    #[test]
    fn a_probability_of_zero_costs_87() {
        let op = SoftmaxLoss {
            axis: Axis::new(1, 2, 1).unwrap(),
            ignore: None,
            normalization: LossNormalization::Valid,
        };
        let mut loss = [f32::NAN];
        softmax_loss(&alone(), &op, &[0.0, 1.0], &[0.0], &mut loss).unwrap();
        assert_eq!(loss, [87.33655]);
    }

    #[test]
    fn any_rank_is_right_among_all() {
        let op = Accuracy { axis: axis(), top_k: usize::MAX, ignore: None };
        let mut y = [0.0];
        accuracy(&alone(), &op, &P, &LABELS, &mut y).unwrap();
        assert_eq!(y, [1.0]);
    }

    /// The gradient of the loss of softmax scores, by central differences.
    #[test]
    fn gradient_by_differences() {
        let op = op(Some(1), LossNormalization::Valid);
        let scores: Vec<f64> = (0..12).map(|i| f64::from(i * 7 % 5) / 3.0).collect();
        let value = |scores: &[f64]| {
            let (mut p, mut loss) = ([0.0; 12], [0.0]);
            crate::host::nn::softmax::softmax(&alone(), &axis(), scores, &mut p).unwrap();
            softmax_loss(&alone(), &op, &p, &LABELS, &mut loss).unwrap();
            loss[0]
        };
        let (mut p, mut dx) = ([0.0; 12], [f64::NAN; 12]);
        crate::host::nn::softmax::softmax(&alone(), &axis(), &scores, &mut p).unwrap();
        softmax_loss_backward(&alone(), &op, &p, &LABELS, &[2.5], &mut dx).unwrap();
        for i in 0..12 {
            let moved = |by: f64| {
                let mut scores = scores.clone();
                scores[i] += by;
                value(&scores)
            };
            let slope = 2.5 * (moved(1e-5) - moved(-1e-5)) / 2e-5;
            assert!((dx[i] - slope).abs() < 1e-9, "{i}: {} {slope}", dx[i]);
        }
        let ignored = [1, 3, 5]; // position (0, 1) has the label 1
        assert!(ignored.iter().all(|&i| dx[i] == 0.0));
    }

    #[test]
    fn accuracies() {
        let axis = Axis::new(3, 4, 1).unwrap();
        let scores = [9.0, 8.0, 7.0, 6.0, 1.0, 3.0, 3.0, 0.0, 0.0, 0.0, 0.0, 5.0f32];
        let score = |top_k, ignore, labels: [f32; 3]| {
            let mut y = [f32::NAN];
            let op = Accuracy { axis, top_k, ignore };
            accuracy(&alone(), &op, &scores, &labels, &mut y).unwrap();
            y[0]
        };
        assert_eq!(score(1, None, [0.0, 0.0, 3.0]), 2.0 / 3.0);
        assert_eq!(score(1, None, [0.0, 1.0, 3.0]), 2.0 / 3.0, "a tie counts against");
        assert_eq!(score(2, None, [1.0, 1.0, 0.0]), 2.0 / 3.0);
        assert_eq!(score(4, None, [3.0, 3.0, 0.0]), 1.0);
        assert_eq!(score(1, Some(2), [2.0, 2.0, 3.0]), 1.0);
        assert_eq!(score(1, Some(2), [2.0, 2.0, 2.0]), 0.0);
        let (op, mut y) = (Accuracy { axis, top_k: 4, ignore: None }, [f32::NAN]);
        accuracy(&alone(), &op, &[f32::NAN; 12], &[0.0; 3], &mut y).unwrap();
        assert_eq!(y, [0.0]);
    }

    #[test]
    fn accuracies_by_class() {
        let op = Accuracy { axis: Axis::new(5, 3, 1).unwrap(), top_k: 1, ignore: Some(9) };
        let scores = [2.0, 1.0, 0.0].repeat(5);
        let mut y = [f32::NAN; 3];
        accuracy_by_class(&alone(), &op, &scores, &[0.0, 1.0, 0.0, 9.0, 1.0], &mut y).unwrap();
        assert_eq!(y, [1.0, 0.0, 0.0]);
        let op = Accuracy { top_k: 2, ..op };
        accuracy_by_class(&alone(), &op, &scores, &[2.0, 1.0, 2.0, 9.0, 1.0], &mut y).unwrap();
        assert_eq!(y, [0.0, 1.0, 0.0]);
    }

    #[test]
    fn labels_that_are_no_class() {
        for bad in [-1.0, 3.0, 0.5, f32::NAN, f32::INFINITY] {
            let labels = [0.0, 0.0, bad, 0.0];
            let op = op(None, LossNormalization::Valid);
            let result = softmax_loss(&alone(), &op, &[0.5f32; 12], &labels, &mut [0.0]);
            let message = result.unwrap_err().to_string();
            assert!(message.contains("position 2") && message.contains("3 classes"), "{message}");
            let dx = &mut [0.0; 12];
            assert!(
                softmax_loss_backward(&alone(), &op, &[0.5f32; 12], &labels, &[1.0], dx).is_err()
            );
            let op = Accuracy { axis: axis(), top_k: 1, ignore: None };
            assert!(accuracy(&alone(), &op, &[0.5f32; 12], &labels, &mut [0.0]).is_err());
            let y = &mut [0.0; 3];
            assert!(accuracy_by_class(&alone(), &op, &[0.5f32; 12], &labels, y).is_err());
        }
    }

    #[test]
    fn lengths_are_checked() {
        let (w, op) = (&alone(), &op(None, LossNormalization::Full));
        let (p, label, one) = (&[0.5f32; 12][..], &[0.0f32; 4][..], &mut [0.0f32][..]);
        assert_eq!(operand(softmax_loss(w, op, label, label, one)), ("softmax_loss", "p"));
        assert_eq!(operand(softmax_loss(w, op, p, p, one)), ("softmax_loss", "label"));
        assert_eq!(operand(softmax_loss(w, op, p, label, &mut [])), ("softmax_loss", "loss"));
        let back = "softmax_loss_backward";
        let dx = &mut [0.0; 12][..];
        assert_eq!(operand(softmax_loss_backward(w, op, p, label, p, dx)), (back, "scale"));
        assert_eq!(operand(softmax_loss_backward(w, op, p, label, &[1.0], one)), (back, "dx"));
        let op = &Accuracy { axis: axis(), top_k: 1, ignore: None };
        assert_eq!(operand(accuracy(w, op, p, p, one)), ("accuracy", "label"));
        assert_eq!(operand(accuracy(w, op, label, label, one)), ("accuracy", "scores"));
        let name = "accuracy_by_class";
        assert_eq!(operand(accuracy_by_class(w, op, p, label, one)), (name, "y"));
    }
}
