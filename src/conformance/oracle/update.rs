//! Solver steps.

use crate::{conformance::values::Sum, op::Regularization};

/// The constants of a step, in `f64`.
#[derive(Clone, Copy, Debug)]
pub(in crate::conformance) struct Step {
    pub rate: f64,
    pub momentum: f64,
    pub decay: f64,
    pub scale: f64,
    pub regularization: Regularization,
}

/// The weight and its history after one step of descent.
pub(in crate::conformance) fn sgd(step: &Step, dw: f64, weight: f64, history: f64) -> (Sum, Sum) {
    let pull = match step.regularization {
        Regularization::L1 if weight == 0.0 => 0.0,
        Regularization::L1 => weight.signum(),
        Regularization::L2 => weight,
    };
    let mut next = Sum::from_iter([step.momentum * history]);
    next.add(step.rate * step.scale * dw);
    next.add(step.rate * step.decay * pull);
    // What may be wrong with the history may be with the weight.
    let moved = Sum {
        value: weight - next.value,
        magnitude: weight.abs() + next.magnitude,
        roundings: next.roundings + 1.0,
        ..next
    };
    (moved, next)
}
