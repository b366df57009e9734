//! The losses of one offset and of the scores of one prior box, with their derivatives.

use crate::proto::multi_box_loss_parameter::{ConfLossType, LocLossType};

/// Returns the loss of an offset that differs by `difference` from its target, and the derivative
/// of the loss.
pub(super) fn offset_loss(kind: LocLossType, difference: f64) -> (f64, f64) {
    match kind {
        LocLossType::SmoothL1 if difference.abs() >= 1.0 => {
            (difference.abs() - 0.5, difference.signum())
        }
        _ => (0.5 * difference * difference, difference),
    }
}

/// Returns the loss of the scores of a prior box, where the classes `targets` have the target 1.
pub(super) fn score_loss(kind: ConfLossType, scores: &[f64], targets: &[usize]) -> f64 {
    match kind {
        ConfLossType::Softmax => {
            let max = scores.iter().copied().fold(f64::MIN, f64::max);
            let sum: f64 = scores.iter().map(|score| (score - max).exp()).sum();
            let probability =
                |class: &usize| (scores.get(*class).map_or(0.0, |score| (score - max).exp())) / sum;
            let smallest = f64::from(f32::MIN_POSITIVE);
            targets.iter().map(|class| -probability(class).max(smallest).ln()).sum()
        }
        ConfLossType::Logistic => {
            let softplus = |x: f64| x.max(0.0) + (-x.abs()).exp().ln_1p();
            let all: f64 = scores.iter().map(|&score| softplus(score)).sum();
            let of_targets = targets.iter().filter_map(|&class| scores.get(class));
            all - of_targets.sum::<f64>()
        }
    }
}

/// Returns the derivative of [`score_loss`] with respect to each score.
pub(super) fn score_gradient(kind: ConfLossType, scores: &[f64], targets: &[usize]) -> Vec<f64> {
    let mut gradient: Vec<f64> = match kind {
        ConfLossType::Softmax => {
            let max = scores.iter().copied().fold(f64::MIN, f64::max);
            let sum: f64 = scores.iter().map(|score| (score - max).exp()).sum();
            scores.iter().map(|score| (score - max).exp() / sum).collect()
        }
        ConfLossType::Logistic => scores.iter().map(|score| 1.0 / (1.0 + (-score).exp())).collect(),
    };
    for &class in targets {
        if let Some(gradient) = gradient.get_mut(class) {
            *gradient -= 1.0;
        }
    }
    gradient
}
