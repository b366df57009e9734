//! Standardization: subtraction of the mean and division by the standard deviation.

use super::Axis;
use crate::error::{Result, check_len};
use num_traits::Float;

/// The term to which standardization adds the constant ε, which prevents a division by zero.
///
/// ```
/// use cortado::op::{Axis, EpsilonPlacement::*, Standardize};
///
/// let axis = Axis::new(8, 3, 1)?;
/// for (epsilon_placement, rate) in [(AddedToVariance, 0.25), (AddedToDeviation, 0.1)] {
///     let op = Standardize { axis, epsilon: 7.0, epsilon_placement };
///     assert_eq!(op.rate(9.0, op.epsilon), rate);
/// }
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EpsilonPlacement {
    /// The inverse standard deviation is `1 / √(variance + ε)`.
    AddedToVariance,
    /// The inverse standard deviation is `1 / (√variance + ε)`.
    AddedToDeviation,
}

/// Standardization, `y[o,e,i] = (x[o,e,i] − mean[e]) · rate[e]`, where `rate` is the inverse
/// standard deviation.
///
/// If `mean` and `variance` are the moments of `x`, the gradient is `dx = (dy − Σ dy / m − y · Σ
/// dy·y / m) · rate`. The sums `Σ` are over the `m` elements with index `e` along the axis.
/// Standardization follows Ioffe and Szegedy (2015), section 3.
///
/// ```
/// use cortado::{host::Workers, kernel::slices, op::{Axis, EpsilonPlacement, Standardize}};
///
/// let (axis, x) = (Axis::new(2, 2, 1)?, [1.0f32, 10.0, 3.0, 30.0]);
/// let (mut mean, mut variance, mut y) = ([0.0; 2], [0.0; 2], [0.0; 4]);
/// slices::moments(Workers::global(), &axis, &x, &mut mean, &mut variance)?;
/// assert_eq!((mean, variance), ([2.0, 20.0], [1.0, 100.0]));
/// let epsilon_placement = EpsilonPlacement::AddedToVariance;
/// let op = Standardize { axis, epsilon: 0.0, epsilon_placement };
/// slices::standardize(Workers::global(), &op, &x, &mean, &variance, &mut y)?;
/// assert_eq!(y, [-1.0, -1.0, 1.0, 1.0]);
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Standardize {
    /// Axis along which the index `e` of the formulas varies.
    pub axis: Axis,
    /// The constant ε, which prevents a division by zero.
    pub epsilon: f64,
    /// Whether ε is added to the variance or to the standard deviation.
    pub epsilon_placement: EpsilonPlacement,
}

impl Standardize {
    /// Returns the inverse standard deviation for the given variance and ε.
    #[inline(always)]
    pub fn rate<A: Float>(&self, variance: A, epsilon: A) -> A {
        let deviation = match self.epsilon_placement {
            EpsilonPlacement::AddedToVariance => (variance + epsilon).sqrt(),
            EpsilonPlacement::AddedToDeviation => variance.sqrt() + epsilon,
        };
        A::one() / deviation
    }

    /// Fails unless the operand lengths of the kernel `standardize` match the axis. `x` is `None`
    /// for an in-place call.
    ///
    /// # Errors
    /// Returns [`Error::Length`](crate::Error::Length), which names the operand, if an operand has
    /// the wrong length.
    pub fn check(&self, x: Option<usize>, mean: usize, variance: usize, y: usize) -> Result<()> {
        const OP: &str = "standardize";
        check_len(OP, "x", self.axis.count(), x.unwrap_or(self.axis.count()))?;
        self.axis.check_extents(OP, &[("mean", mean), ("variance", variance)])?;
        check_len(OP, "y", self.axis.count(), y)
    }

    /// Fails unless the operand lengths of the kernel `standardize_backward` match the axis. `dy`
    /// is `None` for an in-place call.
    ///
    /// # Errors
    /// Returns [`Error::Length`](crate::Error::Length), which names the operand, if an operand has
    /// the wrong length.
    pub fn check_backward(
        &self,
        x: usize,
        mean: usize,
        variance: usize,
        dy: Option<usize>,
        dx: usize,
    ) -> Result<()> {
        const OP: &str = "standardize_backward";
        let dy = dy.unwrap_or(self.axis.count());
        self.axis.check_counts(OP, &[("dy", dy), ("x", x), ("dx", dx)])?;
        self.axis.check_extents(OP, &[("mean", mean), ("variance", variance)])
    }
}
