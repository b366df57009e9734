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
    // All that is in the history is in the weight.
    let Sum { value, magnitude, roundings } = Sum::from_iter([weight]);
    let moved = Sum {
        value: value - next.value,
        magnitude: magnitude + next.magnitude,
        roundings: roundings + next.roundings,
    };
    (moved, next)
}
