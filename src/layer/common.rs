//! Helper functions that several layers share: shape checks, gradient checks and error
//! constructors.

use super::layer_trait::PropagateDown;
use crate::{
    blob::Blob,
    device::AnyDevice,
    element::Element,
    error::{Error, Result},
    kernel::traits::*,
    op::Axis,
    shape::Shape,
};

pub(super) fn invalid<R>(reason: impl Into<String>) -> Result<R> {
    Err(Error::InvalidData(reason.into()))
}

pub(super) fn wrong_shape<R>(reason: impl Into<String>) -> Result<R> {
    Err(Error::Shape(reason.into()))
}

/// Unwraps `value`, which a layer's `reshape` has derived from the shapes of the bottoms.
///
/// # Errors
/// Returns [`Error::InvalidData`] if `value` is `None`, which means that the layer's `reshape` has
/// not run yet.
pub(super) fn reshaped<V>(value: &Option<V>) -> Result<&V> {
    value.as_ref().ok_or_else(|| Error::InvalidData("called before reshape".into()))
}

/// Returns an axis that flattens all axes of `shape` except the first, the batch axis.
pub(super) fn per_item_axis(shape: &Shape) -> Result<Axis> {
    let (batch, item_len) = (shape.count_range(0, 1)?, shape.count_range(1, shape.len())?);
    Axis::new(batch, item_len, 1)
}

/// Returns the extents of a batch of images: num, channels, height and width.
///
/// # Errors
/// Returns [`Error::Shape`] unless `shape` has four axes.
pub(super) fn image_extents(shape: &Shape) -> Result<[usize; 4]> {
    shape[..].try_into().map_err(|_| {
        Error::Shape(format!("expected 4 axes (num, channels, height, width), found shape {shape}"))
    })
}

pub(super) fn zero_gradients<T: Element>(
    device: &AnyDevice,
    propagate: PropagateDown<'_>,
    bottom: &[Blob<T>],
) -> Result<()> {
    for (bottom, _) in bottom.iter().zip(propagate.bottom).filter(|(_, requested)| **requested) {
        device.fill(T::default(), bottom.diff_mut()?.view_mut())?;
    }
    Ok(())
}

/// Checks that `propagate` does not request the gradient of a bottom that has no gradient, such as
/// labels.
///
/// # Errors
/// Returns [`Error::InvalidData`], which names the bottom's index and content, if `propagate`
/// requests the bottom's gradient.
pub(super) fn check_no_gradient(propagate: &[bool], bottom: usize, content: &str) -> Result<()> {
    match propagate.get(bottom) {
        Some(true) => {
            Err(Error::InvalidData(format!("bottom {bottom} ({content}) has no gradient")))
        }
        _ => Ok(()),
    }
}
