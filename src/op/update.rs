//! Solver steps.

use crate::{
    element::Element,
    error::{Result, check_len},
};

/// What weight decay pulls on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Regularization {
    /// The weight's sign; 0 for a weight of 0.
    L1,
    /// The weight.
    L2,
}

/// One step down the gradient:
///
/// ```text
/// g ← scale · dw + decay · r(w)      r by the regularisation
/// w ← w − step(g, h…)                by the rule, which updates its history h… as well
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[doc(alias = "ApplyUpdate")]
pub struct SolverUpdate<T: Element> {
    /// Learning rate, the parameter's multiplier included.
    pub rate: T::Acc,
    /// Factor of the gradient: of clipping, and one over `iter_size`.
    #[doc(alias = "Normalize")]
    pub scale: T::Acc,
    /// Weight decay, the parameter's multiplier included.
    pub decay: T::Acc,
    /// What decay pulls on.
    #[doc(alias = "Regularize")]
    pub regularization: Regularization,
    /// What becomes of the gradient.
    pub rule: UpdateRule<T>,
}

/// From a gradient `g` to the step taken against it, in Caffe's forms. All that is kept from one
/// step to the next is the history: `h`, and `k` for the rules that keep two values a weight.
#[derive(Clone, Copy, Debug, PartialEq)]
#[doc(alias = "ComputeUpdateValue")]
pub enum UpdateRule<T: Element> {
    /// Stochastic gradient descent: `h ← momentum · h + rate · g`, the step is `h`.
    #[doc(alias = "sgd_update")]
    Sgd {
        /// Share of the last step that is kept.
        momentum: T::Acc,
    },
    /// Nesterov's accelerated gradient: `h` as above, the step is
    /// `(1 + momentum) · h − momentum · (the last h)`.
    Nesterov {
        /// Share of the last step that is kept.
        momentum: T::Acc,
    },
    /// `h ← h + g²`, the step is `rate · g / (√h + delta)`. Source: Duchi, Hazan, Singer 2011.
    AdaGrad {
        /// Keeps the divisor from 0.
        delta: T::Acc,
    },
    /// `h ← decay · h + (1 − decay) · g²`, the step is `rate · g / (√h + delta)`. Source: Tieleman
    /// and Hinton 2012.
    RmsProp {
        /// Share of the mean of squares that is kept.
        decay: T::Acc,
        /// Keeps the divisor from 0.
        delta: T::Acc,
    },
    /// ```text
    /// h ← momentum · h + (1 − momentum) · g²
    /// s = g · √((k + delta) / (h + delta))
    /// k ← momentum · k + (1 − momentum) · s²
    /// ```
    /// The step is `rate · s`. Source: Zeiler 2012.
    AdaDelta {
        /// Share of the means of squares that is kept.
        momentum: T::Acc,
        /// Keeps the divisor from 0, and the first steps as well.
        delta: T::Acc,
    },
    /// ```text
    /// h ← beta1 · h + (1 − beta1) · g
    /// k ← beta2 · k + (1 − beta2) · g²
    /// ```
    /// The step is `rate · h / (√k + delta)`. The correction of the bias towards zero is a matter of
    /// the rate: [`adam_correction`]. Source: Kingma and Ba 2015.
    Adam {
        /// Share of the mean of gradients that is kept.
        beta1: T::Acc,
        /// Share of the mean of squares that is kept.
        beta2: T::Acc,
        /// Keeps the divisor from 0.
        delta: T::Acc,
    },
}

impl<T: Element> UpdateRule<T> {
    /// Values that the rule keeps for each weight.
    pub fn history_count(&self) -> usize {
        match self {
            Self::Sgd { .. } | Self::Nesterov { .. } | Self::AdaGrad { .. } => 1,
            Self::RmsProp { .. } => 1,
            Self::AdaDelta { .. } | Self::Adam { .. } => 2,
        }
    }
}

/// The factor of the rate that corrects Adam's means, which start from zero, in the step after
/// `steps` others: `√(1 − beta2ᵗ) / (1 − beta1ᵗ)` with `t = steps + 1`.
pub fn adam_correction(beta1: f64, beta2: f64, steps: usize) -> f64 {
    let t = steps as f64 + 1.0;
    (1.0 - beta2.powf(t)).sqrt() / (1.0 - beta1.powf(t))
}

impl<T: Element> SolverUpdate<T> {
    /// Checks the operands' lengths against the weights'; `history` gives one for each value that
    /// the rule keeps.
    ///
    /// # Errors
    /// [`Error::Length`](crate::Error::Length) names the operand.
    pub fn check(
        &self,
        weights: usize,
        dw: usize,
        masters: Option<usize>,
        history: impl ExactSizeIterator<Item = usize>,
    ) -> Result<()> {
        const OP: &str = "solver_update";
        check_len(OP, "dw", weights, dw)?;
        check_len(OP, "masters", weights, masters.unwrap_or(weights))?;
        check_len(OP, "history's blobs", self.rule.history_count(), history.len())?;
        for len in history {
            check_len(OP, "history", weights, len)?;
        }
        Ok(())
    }
}
