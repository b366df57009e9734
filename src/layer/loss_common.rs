//! What losses have in common: divisors, labels that do not count, and bottoms that fit.

use crate::{
    error::{Error, Result},
    op::{Axis, LossNormalization},
    proto::{LossParameter, loss_parameter::NormalizationMode},
    shape::Shape,
};

/// What divides a loss: `normalization`, else the older `normalize`, else the layer's default.
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

/// The label of positions that do not count.
pub(super) fn ignore(param: &LossParameter) -> Option<i64> {
    param.ignore_label.map(i64::from)
}

/// Fails unless bottoms hold as many items.
pub(super) fn expect_batch(a: &Shape, b: &Shape) -> Result<()> {
    if a.is_empty() || a.first() != b.first() {
        let why = format!("bottoms of shapes {a} and {b} differ in their first axis");
        return Err(Error::Shape(why));
    }
    Ok(())
}

/// Fails unless there is a label for each position of the scores.
pub(super) fn expect_labels(scores: &Shape, labels: &Shape, axis: &Axis) -> Result<()> {
    let want = axis.reduced_count();
    if labels.count() != want {
        let why = format!("labels {labels} for scores {scores}: {want} labels are needed");
        return Err(Error::Shape(why));
    }
    Ok(())
}

/// Items and the elements of each: classes where all axes after the first are.
pub(super) fn per_item_axis(shape: &Shape) -> Result<Axis> {
    let (batch, each) = (shape.count_range(0, 1)?, shape.count_range(1, shape.len())?);
    Axis::new(batch, each, 1)
}

/// Of a layer that is asked to run before it knows its shapes.
pub(super) fn not_reshaped_error() -> Error {
    Error::InvalidData("forward before reshape".into())
}

/// Of labels and targets, which no gradient reaches.
pub(super) fn no_gradient(what: &str, bottom: usize) -> Error {
    Error::InvalidData(format!("no gradient reaches the {what} (bottom {bottom})"))
}
