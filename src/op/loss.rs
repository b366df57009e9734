//! Losses, and measures over class scores and labels.

use super::Axis;
use crate::error::{Error, Result, check_len};
use num_traits::Float;

/// What a summed loss is divided by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LossNormalization {
    /// All labels, ignored ones too: `outer · inner`.
    Full,
    /// Labels that are not ignored; at least 1.
    Valid,
    /// The batch: `outer`.
    BatchSize,
    /// Nothing.
    None,
}

impl LossNormalization {
    /// What the loss of `outer × inner` labels is divided by when `valid` are not ignored.
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
/// `tiny` is the least positive normal `f32`, so that a probability of zero costs 87.3 rather
/// than infinity. Labels, one for each position of `axis.outer × axis.inner`, are class numbers
/// held in elements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SoftmaxLoss {
    /// The axis of the classes.
    pub axis: Axis,
    /// Label of positions that do not count.
    pub ignore: Option<i64>,
    /// What `n` is.
    pub normalization: LossNormalization,
}

impl SoftmaxLoss {
    /// What the loss is divided by when `valid` labels are not ignored.
    pub fn divisor(&self, valid: usize) -> f64 {
        self.normalization.divisor(self.axis.outer, self.axis.inner, valid)
    }
}

/// Share of the labels whose score is among the `top_k` greatest of its position.
///
/// A score that equals the label's counts against it, as in Caffe; a score of NaN is never right,
/// unlike Caffe's. Without any label that counts,
/// the result is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accuracy {
    /// The axis of the classes.
    pub axis: Axis,
    /// How many greatest scores count as right.
    pub top_k: usize,
    /// Label of positions that do not count.
    pub ignore: Option<i64>,
}

/// `loss ← Σ f(x, label) / n` over class scores or probabilities `x`. Labels are as in
/// [`SoftmaxLoss`].
///
/// Where `f` is a logarithm, a matrix of `extent × extent` may weigh every class by the label's row:
/// `−Σ m[label, k] · ln max(x[k], floor)`; without one it is the label's own logarithm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClassLoss {
    /// The axis of the classes.
    pub axis: Axis,
    /// What `f` is.
    pub form: ClassLossKind,
    /// Label of positions that do not count.
    pub ignore: Option<i64>,
    /// What `n` is.
    pub normalization: LossNormalization,
}

/// A loss of the scores of all classes, one of which is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClassLossKind {
    /// `−ln max(x[label], floor)` of probabilities.
    Log,
    /// As [`Log`](Self::Log), but the gradient is that of the scores whose softmax `x` is.
    LogWithSoftmaxGradient,
    /// `max(0, 1 − x[label]) + Σ max(0, 1 + x[k])` over the other classes.
    Hinge,
    /// As [`Hinge`](Self::Hinge), each term squared.
    SquaredHinge,
}

impl ClassLoss {
    /// Least probability whose logarithm is taken.
    pub const FLOOR: f64 = 1e-20;

    /// Fails unless operands have these lengths, and only a logarithm has a matrix.
    ///
    /// # Errors
    /// [`Error::Length`] names the operand; [`Error::InvalidInput`].
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
        if matches!(self.form, ClassLossKind::Hinge | ClassLossKind::SquaredHinge) {
            return Err(Error::invalid_input(op, "a hinge takes no matrix"));
        }
        check_len(op, "matrix", self.axis.extent.saturating_mul(self.axis.extent), matrix)
    }
}

/// `loss ← Σ f(x, t) / n` over `batch × each` elements and their targets.
///
/// A target counts unless it is to be ignored; as in Caffe, its fraction is left out of account
/// there, so that 0.7 is ignored where 0 is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ElementwiseLoss<A> {
    /// What `f` is.
    pub form: ElementwiseLossKind<A>,
    /// Items.
    pub batch: usize,
    /// Elements of an item.
    pub each: usize,
    /// Target of elements that do not count.
    pub ignore: Option<i64>,
    /// What `n` is.
    pub normalization: LossNormalization,
}

/// A loss of one number against a target.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ElementwiseLossKind<A> {
    /// `(x − t)² / 2`
    Squared,
    /// `ln(1 + eˣ) − t·x`: the cross entropy of the sigmoid of x.
    SigmoidCrossEntropy,
    /// `x / 2` if `⌊|t|⌋ ≠ 0`, else `max(0, margin − √x)² / 2`: x is the squared distance of a
    /// pair that t says is alike.
    Contrastive {
        /// Distance from which pairs that are not alike cost nothing.
        margin: A,
    },
    /// As [`Contrastive`](Self::Contrastive), with `max(0, margin − x) / 2` for the latter.
    ContrastiveLegacy {
        /// Squared distance from which pairs that are not alike cost nothing.
        margin: A,
    },
}

impl<A: Float> ElementwiseLossKind<A> {
    /// The loss itself: what every device must agree with.
    #[inline(always)]
    pub fn eval(&self, x: A, t: A) -> A {
        let (zero, one) = (A::zero(), A::one());
        let half = one / (one + one);
        match *self {
            Self::Squared => half * (x - t) * (x - t),
            // The exponent is never positive: it cannot overflow.
            Self::SigmoidCrossEntropy => x.max(zero) - x * t + (-x.abs()).exp().ln_1p(),
            Self::Contrastive { .. } | Self::ContrastiveLegacy { .. } if t.trunc() != zero => {
                half * x
            }
            Self::Contrastive { margin } => {
                let short = (margin - x.sqrt()).max(zero);
                half * short * short
            }
            Self::ContrastiveLegacy { margin } => half * (margin - x).max(zero),
        }
    }

    /// Its derivative by x. That of [`Contrastive`](Self::Contrastive) has 1e-4 added to the
    /// distance it divides by, as in Caffe.
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
                -half * (margin - distance).max(zero) / (distance + floor)
            }
            Self::ContrastiveLegacy { margin } if margin > x => -half,
            Self::ContrastiveLegacy { .. } => zero,
        }
    }
}

impl<A> ElementwiseLoss<A> {
    /// Fails unless operands have these lengths.
    ///
    /// # Errors
    /// [`Error::Length`] names the operand; [`Error::ShapeOverflow`].
    pub fn check(&self, op: &'static str, x: usize, t: usize) -> Result<()> {
        let count = Axis::new(self.batch, self.each, 1)?.count();
        check_len(op, "x", count, x)?;
        check_len(op, "t", count, t)
    }

    /// What the loss is divided by when `valid` targets are not ignored.
    pub fn divisor(&self, valid: usize) -> f64 {
        self.normalization.divisor(self.batch, self.each, valid)
    }
}
