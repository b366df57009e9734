//! Solver updates: formulas by which a gradient changes the weights.

use crate::{
    element::Element,
    error::{Result, check_len},
};

/// The kind of regularization, which determines the term `r(w)` of weight decay.
///
/// ```
/// use cortado::{host::Workers, kernel::slices, op::{Regularization::*, SolverUpdate, UpdateRule}};
///
/// for (regularization, expected) in [(L1, 4.0 - 0.5), (L2, 4.0 - 0.5 * 4.0)] {
///     let rule = UpdateRule::Sgd { momentum: 0.0 };
///     let op = SolverUpdate { rate: 1.0, scale: 1.0, decay: 0.5, regularization, rule };
///     let (mut weight, mut h) = ([4.0f32], [0.0]);
///     slices::solver_update(Workers::global(), &op, &[0.0], &mut weight, None, &mut [&mut h])?;
///     assert_eq!(weight, [expected]);
/// }
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Regularization {
    /// For L1 regularization, `r(w)` is the sign of the weight `w`, or 0 if `w` is 0.
    L1,
    /// For L2 regularization, `r(w)` is the weight `w` itself.
    L2,
}

/// Descriptor of one solver update of the weights `w` by the gradient `dw`:
///
/// ```text
/// g ← scale · dw + decay · r(w)      r of the regularization
/// w ← w − step(g, h…)                step of the rule, which also updates its history h…
/// ```
///
/// ```
/// use cortado::{host::Workers, kernel::slices};
/// use cortado::op::{Regularization, SolverUpdate, UpdateRule};
///
/// let (regularization, rule) = (Regularization::L2, UpdateRule::Sgd { momentum: 0.5 });
/// let op = SolverUpdate { rate: 0.5, scale: 1.0, decay: 0.0, regularization, rule };
/// let (dw, mut weight, mut h) = ([2.0f32], [10.0], [0.0]);
/// for expected in [9.0, 7.5] {
///     slices::solver_update(Workers::global(), &op, &dw, &mut weight, None, &mut [&mut h])?;
///     assert_eq!(weight, [expected]);
/// }
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[doc(alias = "ApplyUpdate")]
pub struct SolverUpdate<T: Element> {
    /// Learning rate, already multiplied by the parameter's `lr_mult`.
    pub rate: T::Acc,
    /// Factor by which the gradient is multiplied, for gradient clipping and `1 / iter_size`.
    #[doc(alias = "Normalize")]
    pub scale: T::Acc,
    /// Weight decay, already multiplied by the parameter's `decay_mult`.
    pub decay: T::Acc,
    /// Kind of regularization for the weight decay.
    #[doc(alias = "Regularize")]
    pub regularization: Regularization,
    /// Update rule that computes the step from the gradient.
    pub rule: UpdateRule<T>,
}

/// Update rule that computes a step from a gradient `g`, as Caffe does. Between steps, an update
/// rule keeps only its history: the value `h` per weight, and for some rules a second value `k` per
/// weight.
///
/// If `delta` is 0, the magnitude of AdaGrad's first step is the learning rate:
///
/// ```
/// use cortado::{host::Workers, kernel::slices};
/// use cortado::op::{Regularization, SolverUpdate, UpdateRule};
///
/// let (regularization, rule) = (Regularization::L2, UpdateRule::AdaGrad { delta: 0.0 });
/// let op = SolverUpdate { rate: 0.5, scale: 1.0, decay: 0.0, regularization, rule };
/// let (dw, mut weights, mut h) = ([1.0f32, -64.0], [0.0; 2], [0.0; 2]);
/// slices::solver_update(Workers::global(), &op, &dw, &mut weights, None, &mut [&mut h])?;
/// assert_eq!(weights, [-0.5, 0.5]);
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[doc(alias = "ComputeUpdateValue")]
pub enum UpdateRule<T: Element> {
    /// Stochastic gradient descent computes `h ← momentum · h + rate · g`, and its step is `h`.
    #[doc(alias = "sgd_update")]
    Sgd {
        /// Factor of the previous history value `h` in the new `h`.
        momentum: T::Acc,
    },
    /// Nesterov's accelerated gradient updates `h` as in [`Sgd`](Self::Sgd), and its step is `(1 +
    /// momentum) · h − momentum · (the previous h)`.
    Nesterov {
        /// Factor of the previous history value `h` in the new `h`.
        momentum: T::Acc,
    },
    /// AdaGrad computes `h ← h + g²`, and its step is `rate · g / (√h + delta)`. AdaGrad was
    /// introduced by Duchi, Hazan and Singer (2011).
    AdaGrad {
        /// Constant that is added to the divisor to prevent a division by zero.
        delta: T::Acc,
    },
    /// RMSProp computes `h ← decay · h + (1 − decay) · g²`, and its step is `rate · g / (√h +
    /// delta)`. RMSProp was introduced by Tieleman and Hinton (2012).
    RmsProp {
        /// Decay factor of the running mean `h` of squared gradients.
        decay: T::Acc,
        /// Constant that is added to the divisor to prevent a division by zero.
        delta: T::Acc,
    },
    /// ```text
    /// h ← momentum · h + (1 − momentum) · g²
    /// s = g · √((k + delta) / (h + delta))
    /// k ← momentum · k + (1 − momentum) · s²
    /// ```
    /// The step of AdaDelta is `rate · s`. AdaDelta was introduced by Zeiler (2012).
    AdaDelta {
        /// Decay factor of `h` and `k`, the running means of the squares of `g` and `s`.
        momentum: T::Acc,
        /// Constant that is added to `h` and `k`, so that neither the divisor nor the first steps
        /// are 0.
        delta: T::Acc,
    },
    /// ```text
    /// h ← beta1 · h + (1 − beta1) · g
    /// k ← beta2 · k + (1 − beta2) · g²
    /// ```
    /// The step of Adam is `rate · h / (√k + delta)`, where the learning rate must include the
    /// factor [`adam_correction`]. Adam was introduced by Kingma and Ba (2015).
    Adam {
        /// Decay factor of the running mean `h` of gradients.
        beta1: T::Acc,
        /// Decay factor of the running mean `k` of squared gradients.
        beta2: T::Acc,
        /// Constant that is added to the divisor to prevent a division by zero.
        delta: T::Acc,
    },
}

impl<T: Element> UpdateRule<T> {
    /// Returns the name under which a [`Ledger`](crate::ledger::Ledger) and the coverage table list
    /// the kernel with this update rule, such as `solver_update_adam`.
    pub fn kernel_name(&self) -> &'static str {
        match self {
            Self::Sgd { .. } => "solver_update_sgd",
            Self::Nesterov { .. } => "solver_update_nesterov",
            Self::AdaGrad { .. } => "solver_update_adagrad",
            Self::RmsProp { .. } => "solver_update_rmsprop",
            Self::AdaDelta { .. } => "solver_update_adadelta",
            Self::Adam { .. } => "solver_update_adam",
        }
    }

    /// Returns the number of history values per weight.
    pub fn history_count(&self) -> usize {
        match self {
            Self::Sgd { .. } | Self::Nesterov { .. } | Self::AdaGrad { .. } => 1,
            Self::RmsProp { .. } => 1,
            Self::AdaDelta { .. } | Self::Adam { .. } => 2,
        }
    }
}

/// Returns Adam's bias correction: the factor of the learning rate that compensates for running
/// means that start at zero.
///
/// If `steps` steps precede the current step, Adam's bias correction is `√(1 − beta2ᵗ) / (1 −
/// beta1ᵗ)` with `t = steps + 1`.
///
/// ```
/// use cortado::op::adam_correction;
///
/// assert_eq!(adam_correction(0.5, 0.75, 0), 1.0);
/// assert!(adam_correction(0.9, 0.999, 0) < 0.32);
/// assert!((adam_correction(0.9, 0.999, 100_000) - 1.0).abs() < 1e-9);
/// ```
pub fn adam_correction(beta1: f64, beta2: f64, steps: usize) -> f64 {
    let t = steps as f64 + 1.0;
    (1.0 - beta2.powf(t)).sqrt() / (1.0 - beta1.powf(t))
}

impl<T: Element> SolverUpdate<T> {
    /// Fails unless all operands have the same number of elements as the weights. The iterator
    /// `history` yields the lengths of the history operands of the update rule.
    ///
    /// # Errors
    /// Returns [`Error::Length`](crate::Error::Length), which names the operand, if an operand has
    /// the wrong length.
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
        check_len(OP, "history count", self.rule.history_count(), history.len())?;
        for len in history {
            check_len(OP, "history", weights, len)?;
        }
        Ok(())
    }
}
