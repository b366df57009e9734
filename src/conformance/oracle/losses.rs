//! Losses and measures over class scores and labels.

use super::normalize::lines;
use crate::{
    conformance::values::Sum,
    op::{Accuracy, Axis, LossNormalization, SoftmaxLoss},
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
    let divisor = match op.normalization {
        LossNormalization::Full => op.axis.outer * op.axis.inner,
        LossNormalization::Valid => valid,
        LossNormalization::BatchSize => op.axis.outer,
        LossNormalization::None => 1,
    };
    divisor.max(1) as f64
}

/// `−Σ ln max(p[label], tiny) / n`
///
/// A logarithm near 0 is only as good as its argument near 1: each counts as a term of 1 more.
pub(in crate::conformance) fn softmax_loss(op: &SoftmaxLoss, p: &[f64], label: &[f64]) -> Sum {
    let mut sum = Sum::none();
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
) -> Vec<Sum> {
    let factor = scale / divisor(op, label);
    let mut dx = vec![Sum::none(); p.len()];
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
        let own = scores[line[class]];
        let others = line.iter().enumerate().filter(|(other, _)| *other != class);
        let ahead = others.filter(|(_, at)| scores[**at] >= own).count();
        right += usize::from(!own.is_nan() && ahead < op.top_k);
        valid += 1;
    }
    right as f64 / valid.max(1) as f64
}
