//! The upgrade of V1 data layers: moves transformation fields to `transform_param`.

use super::change::Change;
use crate::{
    error::Result,
    proto::messages::{NetParameter, v1_layer_parameter::LayerType},
};

/// Moves the named fields of a message to `transform_param`. Returns whether the message had any of
/// the named fields.
macro_rules! move_fields {
    ($layer:ident.$param:ident: $($field:ident)*) => {{
        let mut has_moved = false;
        if let Some(param) = &mut $layer.$param {
            $(if let Some(value) = param.$field.take() {
                $layer.transform_param.get_or_insert_default().$field = Some(value);
                has_moved = true;
            })*
        }
        has_moved
    }};
}

#[doc(alias = "UpgradeNetDataTransformation")]
pub(super) fn upgrade(net: &mut NetParameter) -> Result<Vec<Change>> {
    let mut has_moved = false;
    for layer in &mut net.layers {
        has_moved |= match layer.r#type() {
            LayerType::Data => {
                move_fields!(layer.data_param: scale mean_file crop_size mirror)
            }
            LayerType::ImageData => {
                move_fields!(layer.image_data_param: scale mean_file crop_size mirror)
            }
            LayerType::WindowData => {
                move_fields!(layer.window_data_param: scale mean_file crop_size mirror)
            }
            _ => false,
        };
    }
    Ok(has_moved.then_some(Change::Transformation).into_iter().collect())
}
