//! Helper functions of loss layers: normalization, ignored labels and shape checks.

use super::prelude::*;
use crate::{
    op::{Axis, LossNormalization},
    proto::{LossParameter, loss_parameter::NormalizationMode},
    shape::Shape,
};

/// Returns the normalization of a loss, which the field `normalization` or the older field
/// `normalize` selects. Returns `default` if the loss parameters set neither `normalization` nor
/// `normalize`.
pub(super) fn normalization(
    param: &LossParameter,
    default: LossNormalization,
) -> LossNormalization {
    match (param.normalization, param.normalize) {
        (None, None) => default,
        (None, Some(false)) => LossNormalization::BatchSize,
        (None, Some(true)) => LossNormalization::Valid,
        (Some(_), _) => match param.normalization() {
            NormalizationMode::Full => LossNormalization::Full,
            NormalizationMode::Valid => LossNormalization::Valid,
            NormalizationMode::BatchSize => LossNormalization::BatchSize,
            NormalizationMode::None => LossNormalization::None,
        },
    }
}

pub(super) fn ignore(param: &LossParameter) -> Option<i64> {
    param.ignore_label.map(i64::from)
}

/// Checks that bottoms of shapes `a` and `b` hold the same number of items.
pub(super) fn check_batch(a: &Shape, b: &Shape) -> Result<()> {
    if a.is_empty() || a.first() != b.first() {
        return wrong_shape(format!("bottoms of shapes {a} and {b} differ in their first axis"));
    }
    Ok(())
}

/// Checks that the number of labels is the number of scores divided by the extent of `axis`.
pub(super) fn check_labels(scores: &Shape, labels: &Shape, axis: &Axis) -> Result<()> {
    let expected = axis.reduced_count();
    if labels.count() != expected {
        return wrong_shape(format!(
            "expected {expected} labels for scores {scores}, found shape {labels}"
        ));
    }
    Ok(())
}
