//! Oracle for solver updates.

use crate::{
    conformance::expected::Expected,
    op::{Regularization, SolverUpdate, UpdateRule},
};

/// Allowed error of a solver update, in roundings relative to the magnitude of the result.
const ROUNDINGS: f64 = 12.0;

/// A weight and its two history values, before or after a solver update.
pub(crate) struct Weight<V> {
    pub w: V,
    pub h: V,
    pub k: V,
}

/// Returns a weight and its history values after one solver update.
///
/// The magnitude of a result is the error that one rounding of each intermediate value causes,
/// divided by epsilon. A quotient or a square root multiplies the error of an operand by the
/// derivative with respect to this operand.
pub(crate) fn solver_update(
    op: &SolverUpdate<f64>,
    dw: f64,
    old: &Weight<f64>,
) -> Weight<Expected> {
    let SolverUpdate { rate, scale, decay, .. } = *op;
    let Weight { w, h, k } = *old;
    let penalty = match op.regularization {
        Regularization::L1 if w == 0.0 => 0.0,
        Regularization::L1 => w.signum(),
        Regularization::L2 => w,
    };
    let (g, g_magnitude) =
        (scale * dw + decay * penalty, (scale * dw).abs() + (decay * penalty).abs());
    let mean = |keep: f64, old: f64, new: f64, new_magnitude: f64| {
        let value = keep * old + (1.0 - keep) * new;
        (value, (keep * old).abs() + (1.0 - keep).abs() * new_magnitude)
    };
    let square = (g * g, 2.0 * g.abs() * g_magnitude);
    // Computes the change `rate · numerator / (√squares + delta)` and the magnitude of the change,
    // from a numerator and the magnitude of the numerator.
    let divide_by_root = |(numerator, magnitude): (f64, f64), squares: f64, delta: f64| {
        let root = squares.sqrt();
        let divisor = root + delta;
        let error =
            magnitude / divisor + numerator.abs() * (g_magnitude + root) / (divisor * divisor);
        (rate * numerator / divisor, rate * error)
    };
    let velocity = |keep: f64| (keep * h + rate * g, (keep * h).abs() + rate * g_magnitude);
    let (change, new_h, new_k) = match op.rule {
        UpdateRule::Sgd { momentum } => (velocity(momentum), velocity(momentum), (k, 0.0)),
        UpdateRule::Nesterov { momentum } => {
            let (value, magnitude) = velocity(momentum);
            let lookahead = (1.0 + momentum) * value - momentum * h;
            let magnitude = (1.0 + momentum) * magnitude + (momentum * h).abs();
            ((lookahead, magnitude), velocity(momentum), (k, 0.0))
        }
        UpdateRule::AdaGrad { delta } => {
            let squares = (h + square.0, h + square.1);
            (divide_by_root((g, g_magnitude), squares.0, delta), squares, (k, 0.0))
        }
        UpdateRule::RmsProp { decay, delta } => {
            let squares = mean(decay, h, square.0, square.1);
            (divide_by_root((g, g_magnitude), squares.0, delta), squares, (k, 0.0))
        }
        UpdateRule::AdaDelta { momentum, delta } => {
            let squares = mean(momentum, h, square.0, square.1);
            let ratio = (k + delta) / (squares.0 + delta);
            let s = g * ratio.sqrt();
            let s_magnitude =
                g_magnitude * ratio.sqrt() + s.abs() * (1.0 + squares.1 / (squares.0 + delta));
            let steps = mean(momentum, k, s * s, 2.0 * s.abs() * s_magnitude + s * s);
            ((rate * s, rate * s_magnitude), squares, steps)
        }
        UpdateRule::Adam { beta1, beta2, delta } => {
            let first_moment = mean(beta1, h, g, g_magnitude);
            let squares = mean(beta2, k, square.0, square.1);
            (divide_by_root(first_moment, squares.0, delta), first_moment, squares)
        }
    };
    let inexact = !matches!(op.rule, UpdateRule::Sgd { .. } | UpdateRule::Nesterov { .. });
    let sum = |(value, magnitude): (f64, f64)| Expected {
        value,
        magnitude,
        roundings: ROUNDINGS,
        inexact,
    };
    let new_w = sum((w - change.0, w.abs() + change.1));
    Weight { w: new_w, h: sum(new_h), k: sum(new_k) }
}
