//! Losses and measures over class scores and labels.

use super::Axis;

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
        let divisor = match self.normalization {
            LossNormalization::Full => self.axis.rest(),
            LossNormalization::Valid => valid,
            LossNormalization::BatchSize => self.axis.outer,
            LossNormalization::None => 1,
        };
        divisor.max(1) as f64
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
