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
///
/// # Errors
/// Returns [`Error::InvalidData`] for `PRE_FIXED`, which only layers that call [`fixed_divisor`]
/// support.
pub(super) fn normalization(
    param: &LossParameter,
    default: LossNormalization,
) -> Result<LossNormalization> {
    Ok(match (param.normalization, param.normalize) {
        (None, None) => default,
        (None, Some(false)) => LossNormalization::BatchSize,
        (None, Some(true)) => LossNormalization::Valid,
        (Some(_), _) => match param.normalization() {
            NormalizationMode::Full => LossNormalization::Full,
            NormalizationMode::Valid => LossNormalization::Valid,
            NormalizationMode::BatchSize => LossNormalization::BatchSize,
            NormalizationMode::None => LossNormalization::None,
            NormalizationMode::PreFixed => {
                return invalid(
                    "loss_param: normalization PRE_FIXED is only implemented for \
                     SoftmaxWithLoss, SmoothL1Loss and their OHEM variants",
                );
            }
        },
    })
}

/// Returns the divisor `pre_fixed_normalizer` of a loss with the normalization `PRE_FIXED`, which
/// the fork R-FCN introduced, or `None` for another normalization. As in the fork, the divisor is
/// at least 1.
///
/// # Errors
/// Returns [`Error::InvalidData`] unless the divisor is positive and finite.
pub(super) fn fixed_divisor(param: &LossParameter) -> Result<Option<f64>> {
    if param.normalization != Some(NormalizationMode::PreFixed as i32) {
        return Ok(None);
    }
    let divisor = f64::from(param.pre_fixed_normalizer());
    match divisor > 0.0 && divisor.is_finite() {
        true => Ok(Some(divisor.max(1.0))),
        false => invalid(format!(
            "loss_param: pre_fixed_normalizer must be positive and finite, found {divisor}"
        )),
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
