//! Losses, and measures over class scores and labels.

use super::normalize::lines;
use crate::{
    conformance::values::Expected,
    op::{
        Accuracy, Axis, ClassLoss, ClassLossKind, ElementwiseLoss, ElementwiseLossKind,
        LossNormalization, SoftmaxLoss,
    },
};

/// Places of each position's classes, and the class that its label names, if it counts.
fn positions(
    axis: &Axis,
    label: &[f64],
    ignore: Option<i64>,
) -> impl Iterator<Item = (Vec<usize>, Option<usize>)> {
    lines(axis).zip(label).map(move |(line, &label)| {
        let counts = ignore.is_none_or(|ignore| label != ignore as f64);
        (line, counts.then_some(label as usize))
    })
}

fn divisor(op: &SoftmaxLoss, label: &[f64]) -> f64 {
    let valid = positions(&op.axis, label, op.ignore).filter(|(_, class)| class.is_some()).count();
    divide(op.normalization, [op.axis.outer, op.axis.inner], valid)
}

fn divide(normalization: LossNormalization, [outer, inner]: [usize; 2], valid: usize) -> f64 {
    let divisor = match normalization {
        LossNormalization::Full => outer * inner,
        LossNormalization::Valid => valid,
        LossNormalization::BatchSize => outer,
        LossNormalization::None => 1,
    };
    divisor.max(1) as f64
}

/// `−Σ ln max(p[label], tiny) / n`
///
/// A logarithm near 0 is only as good as its argument near 1: each counts as a term of 1 more.
pub(in crate::conformance) fn softmax_loss(op: &SoftmaxLoss, p: &[f64], label: &[f64]) -> Expected {
    let mut sum = Expected::none();
    for (line, class) in positions(&op.axis, label, op.ignore) {
        if let Some(class) = class {
            sum.add(-p[line[class]].max(f32::MIN_POSITIVE.into()).ln());
            sum.magnitude += 1.0;
        }
    }
    sum.scaled(1.0 / divisor(op, label))
}

/// `scale · (p − onehot(label)) / n`, zero where labels are ignored.
pub(in crate::conformance) fn softmax_loss_backward(
    op: &SoftmaxLoss,
    p: &[f64],
    label: &[f64],
    scale: f64,
) -> Vec<Expected> {
    let factor = scale / divisor(op, label);
    let mut dx = vec![Expected::none(); p.len()];
    for (line, class) in positions(&op.axis, label, op.ignore) {
        let Some(class) = class else { continue };
        for (other, &at) in line.iter().enumerate() {
            dx[at].add(p[at]);
            dx[at].add(if other == class { -1.0 } else { 0.0 });
            dx[at] = dx[at].scaled(factor);
        }
    }
    dx
}

/// The share of the labels whose score is among the greatest.
pub(in crate::conformance) fn accuracy(op: &Accuracy, scores: &[f64], label: &[f64]) -> f64 {
    let (mut right, mut valid) = (0, 0);
    for (line, class) in positions(&op.axis, label, op.ignore) {
        let Some(class) = class else { continue };
        right += usize::from(is_right(op, scores, &line, class));
        valid += 1;
    }
    right as f64 / valid.max(1) as f64
}

/// That share for each class.
pub(in crate::conformance) fn accuracy_by_class(
    op: &Accuracy,
    scores: &[f64],
    label: &[f64],
) -> Vec<Expected> {
    let of = |wanted: usize| {
        let named = positions(&op.axis, label, op.ignore).filter(|(_, c)| *c == Some(wanted));
        let right: Vec<bool> = named.map(|(line, _)| is_right(op, scores, &line, wanted)).collect();
        Expected::from_iter([
            right.iter().filter(|right| **right).count() as f64 / right.len().max(1) as f64
        ])
    };
    (0..op.axis.extent).map(of).collect()
}

fn is_right(op: &Accuracy, scores: &[f64], line: &[usize], class: usize) -> bool {
    let own = scores[line[class]];
    let others = line.iter().enumerate().filter(|(other, _)| *other != class);
    let ahead = others.filter(|(_, at)| scores[**at] >= own).count();
    !own.is_nan() && ahead < op.top_k
}

/// `Σ f(x, label) / n`
///
/// A term of a hinge is as good as the numbers that cancel in it, a logarithm as in [`softmax_loss`].
pub(in crate::conformance) fn class_loss(
    op: &ClassLoss,
    x: &[f64],
    label: &[f64],
    matrix: Option<&[f64]>,
) -> Expected {
    let (mut sum, mut valid) = (Expected::none(), 0);
    for (line, class) in positions(&op.axis, label, op.ignore) {
        let Some(class) = class else { continue };
        for (k, x) in line.iter().map(|&at| x[at]).enumerate() {
            let (weight, short) = (weight(op, matrix, class, k), short(class, k, x));
            match op.form {
                ClassLossKind::Log | ClassLossKind::LogWithSoftmaxGradient => {
                    sum.add(-weight * x.max(1e-20).ln());
                    sum.magnitude += weight.abs();
                }
                ClassLossKind::Hinge => {
                    sum.add(short);
                    sum.magnitude += 1.0 + x.abs();
                }
                ClassLossKind::SquaredHinge => {
                    sum.add(short * short);
                    sum.magnitude += (1.0 + x.abs()) * (1.0 + x.abs());
                }
            }
        }
        valid += 1;
    }
    sum.scaled(1.0 / divide(op.normalization, [op.axis.outer, op.axis.inner], valid))
}

/// `scale · the derivative of f / n`, zero where labels are ignored.
pub(in crate::conformance) fn class_loss_backward(
    op: &ClassLoss,
    x: &[f64],
    label: &[f64],
    matrix: Option<&[f64]>,
    scale: f64,
) -> Vec<Expected> {
    let valid = positions(&op.axis, label, op.ignore).filter(|(_, class)| class.is_some()).count();
    let factor = scale / divide(op.normalization, [op.axis.outer, op.axis.inner], valid);
    let mut dx = vec![Expected::none(); x.len()];
    for (line, class) in positions(&op.axis, label, op.ignore) {
        let Some(class) = class else { continue };
        for (k, &at) in line.iter().enumerate() {
            let own = weight(op, matrix, class, k);
            match op.form {
                ClassLossKind::Log => dx[at].add(-own / x[at].max(1e-20)),
                ClassLossKind::LogWithSoftmaxGradient => {
                    (0..op.axis.extent)
                        .for_each(|k| dx[at].add(x[at] * weight(op, matrix, class, k)));
                    dx[at].add(-own);
                }
                ClassLossKind::Hinge if short(class, k, x[at]) > 0.0 => dx[at].add(sign(class, k)),
                ClassLossKind::Hinge => {}
                ClassLossKind::SquaredHinge => {
                    dx[at].add(2.0 * sign(class, k) * short(class, k, x[at]));
                    dx[at].magnitude += 2.0 + 2.0 * x[at].abs();
                }
            }
            dx[at] = dx[at].scaled(factor);
        }
    }
    dx
}

fn weight(op: &ClassLoss, matrix: Option<&[f64]>, class: usize, k: usize) -> f64 {
    let one = if k == class { 1.0 } else { 0.0 };
    matrix.map_or(one, |matrix| matrix[class * op.axis.extent + k])
}

fn sign(class: usize, k: usize) -> f64 {
    if k == class { -1.0 } else { 1.0 }
}

fn short(class: usize, k: usize, x: f64) -> f64 {
    (1.0 + sign(class, k) * x).max(0.0)
}

/// `Σ f(x, t) / n`
pub(in crate::conformance) fn elementwise_loss(
    op: &ElementwiseLoss<f64>,
    x: &[f64],
    t: &[f64],
) -> Expected {
    let (mut sum, mut valid) = (Expected::none(), 0);
    for (&x, &t) in x.iter().zip(t).filter(|(_, t)| pair_counts(op, **t)) {
        match op.form {
            ElementwiseLossKind::Squared => {
                sum.add((x - t).powi(2) / 2.0);
                sum.magnitude += (x.abs() + t.abs()).powi(2);
            }
            ElementwiseLossKind::SigmoidCrossEntropy => {
                sum.add(x.exp().ln_1p() - t * x);
                sum.magnitude += 2.0 + (t * x).abs() + x.abs();
            }
            _ if t.trunc() != 0.0 => sum.add(x / 2.0),
            ElementwiseLossKind::Contrastive { margin } => {
                sum.add((margin - x.sqrt()).max(0.0).powi(2) / 2.0);
                sum.magnitude += (margin + x.sqrt()).powi(2);
            }
            ElementwiseLossKind::ContrastiveLegacy { margin } => {
                sum.add((margin - x).max(0.0) / 2.0);
                sum.magnitude += margin + x;
            }
        }
        valid += 1;
    }
    sum.scaled(1.0 / divide(op.normalization, [op.batch, op.each], valid))
}

/// `scale · f'(x, t) / n`, zero where targets are ignored.
pub(in crate::conformance) fn elementwise_loss_backward(
    op: &ElementwiseLoss<f64>,
    x: &[f64],
    t: &[f64],
    scale: f64,
) -> Vec<Expected> {
    let valid = t.iter().filter(|t| pair_counts(op, **t)).count();
    let factor = scale / divide(op.normalization, [op.batch, op.each], valid);
    let slope = |(&x, &t): (&f64, &f64)| {
        let terms = match op.form {
            _ if !pair_counts(op, t) => vec![],
            ElementwiseLossKind::Squared => vec![x, -t],
            ElementwiseLossKind::SigmoidCrossEntropy => {
                vec![1.0 / (1.0 + (-x).exp()), -t, 1.0, -1.0]
            }
            _ if t.trunc() != 0.0 => vec![0.5],
            ElementwiseLossKind::Contrastive { margin } if x.sqrt() < margin => {
                let per = 2.0 * (x.sqrt() + 1e-4);
                vec![-margin / per, x.sqrt() / per]
            }
            ElementwiseLossKind::ContrastiveLegacy { margin } if x < margin => vec![-0.5],
            _ => vec![],
        };
        terms.into_iter().collect::<Expected>().scaled(factor)
    };
    x.iter().zip(t).map(slope).collect()
}

fn pair_counts(op: &ElementwiseLoss<f64>, t: f64) -> bool {
    op.ignore.is_none_or(|ignore| t.trunc() != ignore as f64)
}
