//! Descriptors of losses, and of accuracy over class scores and labels.

use super::Axis;
use crate::error::{Error, Result, check_len};
use num_traits::Float;

/// Normalization of a loss: the divisor of the sum over all labels.
///
/// ```
/// use cortado::op::LossNormalization;
///
/// // Four images of 10 labels each; 25 of the labels are not ignored.
/// assert_eq!(LossNormalization::Full.divisor(4, 10, 25), 40.0);
/// assert_eq!(LossNormalization::Valid.divisor(4, 10, 25), 25.0);
/// assert_eq!(LossNormalization::BatchSize.divisor(4, 10, 25), 4.0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LossNormalization {
    /// The divisor is the number of all labels, including ignored labels: `outer · inner`.
    Full,
    /// The divisor is the number of labels that are not ignored, or 1 if all labels are ignored.
    Valid,
    /// The divisor is the batch size, `outer`.
    BatchSize,
    /// No normalization: the divisor is 1.
    None,
}

impl LossNormalization {
    /// Returns the divisor for `outer × inner` labels; `valid` is the number of labels that are not
    /// ignored.
    pub fn divisor(self, outer: usize, inner: usize, valid: usize) -> f64 {
        let divisor = match self {
            Self::Full => outer.saturating_mul(inner),
            Self::Valid => valid,
            Self::BatchSize => outer,
            Self::None => 1,
        };
        divisor.max(1) as f64
    }
}

/// `loss ← −Σ ln max(p[label], tiny) / n` over softmax probabilities `p`.
///
/// `tiny` is the smallest positive normal `f32`, so the loss of a zero probability is 87.3 instead
/// of infinity. Each of the `axis.outer × axis.inner` positions has one label, which is a class
/// index stored as a floating-point element.
///
/// ```
/// use cortado::{host::Workers, kernel::slices, op::{Axis, LossNormalization, SoftmaxLoss}};
///
/// let normalization = LossNormalization::Valid;
/// let op = SoftmaxLoss { axis: Axis::new(2, 2, 1)?, ignore: Some(-1), normalization };
/// let (p, labels, mut loss) = ([0.25f32, 0.75, 0.5, 0.5], [1.0, -1.0], [0.0]);
/// slices::softmax_loss(Workers::global(), &op, &p, &labels, &mut loss)?;
/// assert!((loss[0] + 0.75f32.ln()).abs() < 1e-6);
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SoftmaxLoss {
    /// Axis of the classes in the operand of class scores or probabilities.
    pub axis: Axis,
    /// Label value that marks ignored positions, if any.
    pub ignore: Option<i64>,
    /// Divisor `n`.
    pub normalization: LossNormalization,
}

impl SoftmaxLoss {
    /// Returns the divisor `n`; `valid` is the number of labels that are not ignored.
    pub fn divisor(&self, valid: usize) -> f64 {
        self.normalization.divisor(self.axis.outer, self.axis.inner, valid)
    }

    /// Fails unless the operand lengths match the descriptor.
    ///
    /// # Errors
    /// Returns [`Error::Length`], which names the operand, if an operand has the wrong length.
    pub fn check(&self, op: &'static str, p: usize, label: usize) -> Result<()> {
        check_len(op, "p", self.axis.count(), p)?;
        check_len(op, "label", self.axis.reduced_count(), label)
    }
}

/// Accuracy: the fraction of labels whose class has one of the `top_k` greatest scores at the
/// label's position.
///
/// As in Caffe, if another class has the same score as the label's class, the other class ranks
/// first. Unlike in Caffe, an item whose label has a NaN score never counts as correct. The
/// accuracy is 0 if all labels are ignored.
///
/// ```
/// use cortado::{host::Workers, kernel::slices, op::{Accuracy, Axis}};
///
/// let (scores, labels) = ([0.1f32, 0.7, 0.2, 0.5, 0.3, 0.2], [1.0, 1.0]);
/// for (top_k, expected) in [(1, 0.5), (2, 1.0)] {
///     let op = Accuracy { axis: Axis::new(2, 3, 1)?, top_k, ignore: None };
///     let mut accuracy = [0.0];
///     slices::accuracy(Workers::global(), &op, &scores, &labels, &mut accuracy)?;
///     assert_eq!(accuracy, [expected]);
/// }
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accuracy {
    /// Axis of the classes in the operand of class scores or probabilities.
    pub axis: Axis,
    /// The `k` of top-k accuracy: a label is correct if its class has one of the `k` highest scores
    /// at the label's position.
    pub top_k: usize,
    /// Label value that marks ignored positions, if any.
    pub ignore: Option<i64>,
}

impl Accuracy {
    /// Fails unless the operand lengths match the descriptor.
    ///
    /// # Errors
    /// Returns [`Error::Length`], which names the operand, if an operand has the wrong length.
    pub fn check(&self, op: &'static str, scores: usize, label: usize) -> Result<()> {
        check_len(op, "scores", self.axis.count(), scores)?;
        check_len(op, "label", self.axis.reduced_count(), label)
    }
}

/// `loss ← Σ f(x, label) / n` over class scores or probabilities `x`, where labels are stored as
/// for [`SoftmaxLoss`].
///
/// A logarithmic loss `f` can use an `extent × extent` matrix `m`, whose row `label` holds the
/// weights of the classes. With the matrix `m`, the loss is `−Σ m[label, k] · ln max(x[k], floor)`.
/// Without a matrix `m`, the logarithmic loss depends only on the probability of the label's class.
///
/// In the example, the weight matrix gives class 0 three times the weight of class 1:
///
/// ```
/// use cortado::{host::Workers, kernel::slices};
/// use cortado::op::{Axis, ClassLoss, ClassLossKind, LossNormalization};
///
/// let (kind, normalization) = (ClassLossKind::Log, LossNormalization::Full);
/// let op = ClassLoss { axis: Axis::new(1, 2, 1)?, kind, ignore: None, normalization };
/// let (weights, mut loss) = ([3.0, 0.0, 0.0, 1.0], [0.0]);
/// slices::class_loss(Workers::global(), &op, &[0.5f32, 0.5], &[0.0], Some(&weights), &mut loss)?;
/// assert!((loss[0] - 3.0 * 2f32.ln()).abs() < 1e-6);
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClassLoss {
    /// Axis of the classes in the operand of class scores or probabilities.
    pub axis: Axis,
    /// The loss function `f`.
    pub kind: ClassLossKind,
    /// Label value that marks ignored positions, if any.
    pub ignore: Option<i64>,
    /// Divisor `n`.
    pub normalization: LossNormalization,
}

/// A loss function of the scores of all classes and of the label.
///
/// ```
/// use cortado::{host::Workers, kernel::slices};
/// use cortado::op::{Axis, ClassLoss, ClassLossKind, LossNormalization};
///
/// let (axis, normalization) = (Axis::new(1, 2, 1)?, LossNormalization::None);
/// for (kind, expected) in [(ClassLossKind::Hinge, 1.5), (ClassLossKind::SquaredHinge, 1.25)] {
///     let op = ClassLoss { axis, kind, ignore: None, normalization };
///     let mut loss = [0.0];
///     slices::class_loss(Workers::global(), &op, &[0.5f32, 0.0], &[0.0], None, &mut loss)?;
///     assert_eq!(loss, [expected]);
/// }
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClassLossKind {
    /// The logarithmic loss, `−ln max(x[label], floor)` for probabilities `x`.
    Log,
    /// Like [`Log`](Self::Log), but the backward kernel computes the gradient with respect to the
    /// scores whose softmax is `x`.
    LogWithSoftmaxGradient,
    /// `max(0, 1 − x[label]) + Σ max(0, 1 + x[k])`, where the sum is over all classes k except the
    /// label's class. `max(0, NaN)` is NaN.
    Hinge,
    /// Like [`Hinge`](Self::Hinge), but each term of the sum is squared.
    SquaredHinge,
}

impl ClassLoss {
    /// Lower bound to which smaller probabilities are raised before the logarithm is taken.
    pub const FLOOR: f64 = 1e-20;

    /// Fails unless the operand lengths match the descriptor. Fails if a hinge loss has a weight
    /// matrix.
    ///
    /// # Errors
    /// Returns [`Error::Length`], which names the operand, if an operand has the wrong length.
    /// Returns [`Error::InvalidInput`] if a hinge loss has a weight matrix.
    pub fn check(
        &self,
        op: &'static str,
        x: usize,
        label: usize,
        matrix: Option<usize>,
    ) -> Result<()> {
        check_len(op, "x", self.axis.count(), x)?;
        check_len(op, "label", self.axis.reduced_count(), label)?;
        let Some(matrix) = matrix else { return Ok(()) };
        if matches!(self.kind, ClassLossKind::Hinge | ClassLossKind::SquaredHinge) {
            return Err(Error::invalid_input(op, "a hinge loss does not take a weight matrix"));
        }
        check_len(op, "matrix", self.axis.extent.saturating_mul(self.axis.extent), matrix)
    }
}

/// `loss ← Σ f(x, t) / n` over `batch × item_len` elements and their targets.
///
/// Elements whose target is `ignore` do not contribute to the loss. As in Caffe, targets are
/// truncated to integers before they are compared with `ignore`, so a target of 0.7 is ignored if
/// `ignore` is 0.
///
/// ```
/// use cortado::{host::Workers, kernel::slices};
/// use cortado::op::{ElementwiseLoss, ElementwiseLossKind, LossNormalization};
///
/// let (kind, normalization) = (ElementwiseLossKind::Squared, LossNormalization::BatchSize);
/// let op = ElementwiseLoss { kind, batch: 2, item_len: 2, ignore: Some(-1), normalization };
/// let (x, targets, mut loss) = ([1.0f32, 2.0, 3.0, 4.0], [1.0, 0.0, 0.0, -1.0], [0.0]);
/// slices::elementwise_loss(Workers::global(), &op, &x, &targets, &mut loss)?;
/// assert_eq!(loss, [(0.0 + 4.0 + 9.0) / 2.0 / 2.0]);
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ElementwiseLoss<A> {
    /// The loss function `f`.
    pub kind: ElementwiseLossKind<A>,
    /// Number of items in the batch.
    pub batch: usize,
    /// Number of elements per item.
    pub item_len: usize,
    /// Target value that marks ignored elements, if any.
    pub ignore: Option<i64>,
    /// Divisor `n`.
    pub normalization: LossNormalization,
}

/// A loss function of one element `x` and its target `t`.
///
/// ```
/// use cortado::op::ElementwiseLossKind;
///
/// let loss = ElementwiseLossKind::Contrastive { margin: 2.0 };
/// let (squared_distance, similar, dissimilar) = (9.0, 1.0, 0.0);
/// assert_eq!(loss.eval(squared_distance, similar), 4.5);
/// assert_eq!(loss.eval(squared_distance, dissimilar), 0.0);
/// assert_eq!(loss.derivative(squared_distance, similar), 0.5);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ElementwiseLossKind<A> {
    /// The squared error, `(x − t)² / 2`.
    Squared,
    /// `ln(1 + eˣ) − t·x`: the cross entropy of the sigmoid of `x`.
    SigmoidCrossEntropy,
    /// The contrastive loss, `x / 2` if `⌊|t|⌋ ≠ 0`, which marks a similar pair, else `max(0,
    /// margin − √x)² / 2`. The element `x` is the squared distance between the two vectors of a
    /// pair.
    Contrastive {
        /// Smallest distance at which the contrastive loss of a dissimilar pair is 0.
        margin: A,
    },
    /// Like [`Contrastive`](Self::Contrastive), but `max(0, margin − x) / 2` for dissimilar pairs.
    ContrastiveLegacy {
        /// Smallest squared distance at which the contrastive loss of a dissimilar pair is 0.
        margin: A,
    },
}

/// Returns the larger of `x` and `floor`, or NaN if `x` is NaN, so that NaN scores give a NaN loss.
/// `Float::max` would return `floor` if `x` is NaN.
#[inline(always)]
pub(crate) fn at_least<A: Float>(x: A, floor: A) -> A {
    if x < floor { floor } else { x }
}

impl<A: Float> ElementwiseLossKind<A> {
    /// Evaluates the loss function at `x` and `t`. The kernels of all devices approximate the
    /// result of `eval`.
    #[inline(always)]
    pub fn eval(&self, x: A, t: A) -> A {
        let (zero, one) = (A::zero(), A::one());
        let half = one / (one + one);
        match *self {
            Self::Squared => half * (x - t) * (x - t),
            // The argument of `exp` is at most 0, so `exp` cannot overflow.
            Self::SigmoidCrossEntropy => x.max(zero) - x * t + (-x.abs()).exp().ln_1p(),
            Self::Contrastive { .. } | Self::ContrastiveLegacy { .. } if t.trunc() != zero => {
                half * x
            }
            Self::Contrastive { margin } => {
                let deficit = at_least(margin - x.sqrt(), zero);
                half * deficit * deficit
            }
            Self::ContrastiveLegacy { margin } => half * at_least(margin - x, zero),
        }
    }

    /// Returns the derivative of the loss function with respect to `x`. As in Caffe, the derivative
    /// of [`Contrastive`](Self::Contrastive) divides by the distance plus 1e-4, to prevent a
    /// division by zero.
    #[inline(always)]
    pub fn derivative(&self, x: A, t: A) -> A {
        let (zero, one) = (A::zero(), A::one());
        let half = one / (one + one);
        match *self {
            Self::Squared => x - t,
            Self::SigmoidCrossEntropy => one / (one + (-x).exp()) - t,
            Self::Contrastive { .. } | Self::ContrastiveLegacy { .. } if t.trunc() != zero => half,
            Self::Contrastive { margin } => {
                let (distance, floor) = (x.sqrt(), A::from(1e-4).unwrap_or_else(A::epsilon));
                -half * at_least(margin - distance, zero) / (distance + floor)
            }
            Self::ContrastiveLegacy { margin } if margin > x => -half,
            Self::ContrastiveLegacy { .. } => zero,
        }
    }
}

impl<A> ElementwiseLoss<A> {
    /// Fails unless the operand lengths match the descriptor.
    ///
    /// # Errors
    /// Returns [`Error::Length`], which names the operand, if an operand has the wrong length.
    /// Returns [`Error::ShapeOverflow`] if an element count overflows.
    pub fn check(&self, op: &'static str, x: usize, t: usize) -> Result<()> {
        let count = Axis::new(self.batch, self.item_len, 1)?.count();
        check_len(op, "x", count, x)?;
        check_len(op, "t", count, t)
    }

    /// Returns the divisor `n`; `valid` is the number of targets that are not ignored.
    pub fn divisor(&self, valid: usize) -> f64 {
        self.normalization.divisor(self.batch, self.item_len, valid)
    }
}
