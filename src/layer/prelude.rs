//! Imports that the source files of almost all layers need.

pub(super) use super::{
    common::{
        check_no_gradient, image_extents, invalid, per_item_axis, reshaped, wrong_shape,
        zero_gradients,
    },
    layer_trait::{Arity, Layer, LayerContext, PropagateDown},
};
pub(super) use crate::{
    blob::Blob,
    device::AnyDevice,
    element::Element,
    error::{Error, Result},
    kernel::traits::*,
    proto::LayerParameter,
};
