//! Oracles for losses, and for accuracy over class scores and labels.

use super::axis::lines;
use crate::{
    conformance::expected::Expected,
    op::{
        Accuracy, Axis, ClassLoss,
        ClassLossKind::{Hinge, Log, LogWithSoftmaxGradient, SquaredHinge},
        ElementwiseLoss,
        ElementwiseLossKind::{Contrastive, ContrastiveLegacy, SigmoidCrossEntropy, Squared},
        LossNormalization, SoftmaxLoss,
    },
};

/// Returns, for each position whose label is not ignored, the indices of the position's class
/// scores and the class of the label.
fn positions(
    axis: &Axis,
    label: &[f64],
    ignore: Option<i64>,
) -> impl Iterator<Item = (Vec<usize>, usize)> {
    let labelled_lines = lines(axis).zip(label);
    let valid_lines =
        labelled_lines.filter(move |(_, label)| ignore.is_none_or(|i| **label != i as f64));
    valid_lines.map(|(line, &label)| (line, label as usize))
}

/// Returns the divisor by which a class loss is normalized.
fn class_divisor(
    axis: &Axis,
    label: &[f64],
    ignore: Option<i64>,
    normalization: LossNormalization,
) -> f64 {
    let valid_count = positions(axis, label, ignore).count();
    divisor(normalization, [axis.outer, axis.inner], valid_count)
}

fn divisor(
    normalization: LossNormalization,
    [outer, inner]: [usize; 2],
    valid_count: usize,
) -> f64 {
    let divisor = match normalization {
        LossNormalization::Full => outer * inner,
        LossNormalization::Valid => valid_count,
        LossNormalization::BatchSize => outer,
        LossNormalization::None => 1,
    };
    divisor.max(1) as f64
}

/// Computes the softmax loss `−Σ ln max(p[label], tiny) / n`.
///
/// Each logarithm adds 1 to the magnitude of the expected loss, because near `p = 1` the absolute
/// error of the logarithm is the relative error of `p`.
pub(crate) fn softmax_loss(op: &SoftmaxLoss, p: &[f64], label: &[f64]) -> Expected {
    let mut sum = Expected::zero();
    for (line, class) in positions(&op.axis, label, op.ignore) {
        sum.add(-at_least(p[line[class]], f32::MIN_POSITIVE.into()).ln());
        sum.magnitude += 1.0;
    }
    sum.scaled(1.0 / class_divisor(&op.axis, label, op.ignore, op.normalization))
}

/// Computes the gradient of the softmax loss, `scale · (p − onehot(label)) / n`, which is zero
/// where the label is ignored.
pub(crate) fn softmax_loss_backward(
    op: &SoftmaxLoss,
    p: &[f64],
    label: &[f64],
    scale: f64,
) -> Vec<Expected> {
    let factor = scale / class_divisor(&op.axis, label, op.ignore, op.normalization);
    let mut dx = vec![Expected::zero(); p.len()];
    for (line, class) in positions(&op.axis, label, op.ignore) {
        for (other, &at) in line.iter().enumerate() {
            dx[at].add(p[at]);
            dx[at].add(if other == class { -1.0 } else { 0.0 });
            dx[at] = dx[at].scaled(factor);
        }
    }
    dx
}

/// Returns the fraction of labels whose class has one of the `top_k` largest scores.
pub(crate) fn accuracy(op: &Accuracy, scores: &[f64], label: &[f64]) -> Expected {
    fraction_correct(op, scores, positions(&op.axis, label, op.ignore))
}

/// Returns, for each class, the fraction of the class's labels for which the class has one of the
/// `top_k` largest scores.
pub(crate) fn accuracy_by_class(op: &Accuracy, scores: &[f64], label: &[f64]) -> Vec<Expected> {
    let class_positions =
        |class| positions(&op.axis, label, op.ignore).filter(move |(_, c)| *c == class);
    (0..op.axis.extent).map(|class| fraction_correct(op, scores, class_positions(class))).collect()
}

fn fraction_correct(
    op: &Accuracy,
    scores: &[f64],
    positions: impl Iterator<Item = (Vec<usize>, usize)>,
) -> Expected {
    let is_correct = |(line, class): (Vec<usize>, usize)| {
        let own_score = scores[line[class]];
        let other_classes = line.iter().enumerate().filter(|(other, _)| *other != class);
        let rank = other_classes.filter(|(_, at)| scores[**at] >= own_score).count();
        !own_score.is_nan() && rank < op.top_k
    };
    let outcomes: Vec<bool> = positions.map(is_correct).collect();
    let count = outcomes.iter().filter(|is_correct| **is_correct).count();
    Expected::from_iter([count as f64 / outcomes.len().max(1) as f64])
}

/// Computes the class loss `Σ f(x, label) / n`.
///
/// The error of a hinge term is relative to the magnitudes of the numbers that the term subtracts.
/// Each logarithm adds the magnitude of its weight to the magnitude of the expected loss, for the
/// reason given in [`softmax_loss`].
pub(crate) fn class_loss(
    op: &ClassLoss,
    x: &[f64],
    label: &[f64],
    matrix: Option<&[f64]>,
) -> Expected {
    let mut sum = Expected::zero();
    for (line, class) in positions(&op.axis, label, op.ignore) {
        for (k, x) in line.iter().map(|&at| x[at]).enumerate() {
            let (weight, hinge) = (weight(op, matrix, class, k), hinge(class, k, x));
            match op.kind {
                Log | LogWithSoftmaxGradient => {
                    sum.add(-weight * at_least(x, 1e-20).ln());
                    sum.magnitude += weight.abs();
                }
                Hinge => {
                    sum.add(hinge);
                    sum.magnitude += 1.0 + x.abs();
                }
                SquaredHinge => {
                    sum.add(hinge * hinge);
                    sum.magnitude += (1.0 + x.abs()) * (1.0 + x.abs());
                }
            }
        }
    }
    sum.scaled(1.0 / class_divisor(&op.axis, label, op.ignore, op.normalization))
}

/// Computes the gradient of a class loss, `scale · f′(x, label) / n`, which is zero where the label
/// is ignored.
pub(crate) fn class_loss_backward(
    op: &ClassLoss,
    x: &[f64],
    label: &[f64],
    matrix: Option<&[f64]>,
    scale: f64,
) -> Vec<Expected> {
    let factor = scale / class_divisor(&op.axis, label, op.ignore, op.normalization);
    let mut dx = vec![Expected::zero(); x.len()];
    for (line, class) in positions(&op.axis, label, op.ignore) {
        for (k, &at) in line.iter().enumerate() {
            let own_weight = weight(op, matrix, class, k);
            match op.kind {
                Log => dx[at].add(-own_weight / at_least(x[at], 1e-20)),
                LogWithSoftmaxGradient => {
                    (0..op.axis.extent)
                        .for_each(|k| dx[at].add(x[at] * weight(op, matrix, class, k)));
                    dx[at].add(-own_weight);
                }
                Hinge if hinge(class, k, x[at]) > 0.0 => dx[at].add(sign(class, k)),
                Hinge => {}
                SquaredHinge => {
                    dx[at].add(2.0 * sign(class, k) * hinge(class, k, x[at]));
                    dx[at].magnitude += 2.0 + 2.0 * x[at].abs();
                }
            }
            dx[at] = dx[at].scaled(factor);
        }
    }
    dx
}

fn weight(op: &ClassLoss, matrix: Option<&[f64]>, class: usize, k: usize) -> f64 {
    let identity = if k == class { 1.0 } else { 0.0 };
    matrix.map_or(identity, |matrix| matrix[class * op.axis.extent + k])
}

fn sign(class: usize, k: usize) -> f64 {
    if k == class { -1.0 } else { 1.0 }
}

/// Returns the larger of `x` and `floor`, or NaN if `x` is NaN.
fn at_least(x: f64, floor: f64) -> f64 {
    if x.is_nan() { x } else { x.max(floor) }
}

fn hinge(class: usize, k: usize, x: f64) -> f64 {
    at_least(1.0 + sign(class, k) * x, 0.0)
}

/// Computes the elementwise loss `Σ f(x, t) / n`.
pub(crate) fn elementwise_loss(op: &ElementwiseLoss<f64>, x: &[f64], t: &[f64]) -> Expected {
    let (mut sum, mut valid_count) = (Expected::zero(), 0);
    for (&x, &t) in x.iter().zip(t).filter(|(_, t)| target_counts(op, **t)) {
        match op.kind {
            Squared => {
                sum.add((x - t).powi(2) / 2.0);
                sum.magnitude += (x.abs() + t.abs()).powi(2);
            }
            SigmoidCrossEntropy => {
                sum.add(x.exp().ln_1p() - t * x);
                sum.magnitude += 2.0 + (t * x).abs() + x.abs();
            }
            _ if t.trunc() != 0.0 => sum.add(x / 2.0),
            Contrastive { margin } => {
                sum.add(at_least(margin - x.sqrt(), 0.0).powi(2) / 2.0);
                sum.magnitude += (margin + x.sqrt()).powi(2);
            }
            ContrastiveLegacy { margin } => {
                sum.add(at_least(margin - x, 0.0) / 2.0);
                sum.magnitude += margin + x;
            }
        }
        valid_count += 1;
    }
    sum.scaled(1.0 / divisor(op.normalization, [op.batch, op.item_len], valid_count))
}

/// Computes the gradient of an elementwise loss, `scale · f′(x, t) / n`, which is zero where the
/// target is ignored.
pub(crate) fn elementwise_loss_backward(
    op: &ElementwiseLoss<f64>,
    x: &[f64],
    t: &[f64],
    scale: f64,
) -> Vec<Expected> {
    let valid_count = t.iter().filter(|t| target_counts(op, **t)).count();
    let factor = scale / divisor(op.normalization, [op.batch, op.item_len], valid_count);
    let slope = |(&x, &t): (&f64, &f64)| {
        let terms = match op.kind {
            _ if !target_counts(op, t) => vec![],
            Squared => vec![x, -t],
            SigmoidCrossEntropy => {
                vec![1.0 / (1.0 + (-x).exp()), -t, 1.0, -1.0]
            }
            _ if t.trunc() != 0.0 => vec![0.5],
            Contrastive { margin } if x.sqrt() < margin => {
                let divisor = 2.0 * (x.sqrt() + 1e-4);
                vec![-margin / divisor, x.sqrt() / divisor]
            }
            ContrastiveLegacy { margin } if x < margin => vec![-0.5],
            _ => vec![],
        };
        terms.into_iter().collect::<Expected>().scaled(factor)
    };
    x.iter().zip(t).map(slope).collect()
}

fn target_counts(op: &ElementwiseLoss<f64>, t: f64) -> bool {
    op.ignore.is_none_or(|ignore| t.trunc() != ignore as f64)
}
