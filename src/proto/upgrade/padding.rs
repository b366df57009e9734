//! The upgrade of padding layers of the V0 format: moves their padding to the following layers.

use crate::{
    error::{Error, Result},
    proto::messages::{NetParameter, V1LayerParameter},
};
use std::{collections::HashMap, mem};

struct Padding {
    bottom: String,
    pad: u32,
}

impl Padding {
    /// Returns the padding of a layer; `None` if the layer is not a padding layer.
    fn from_layer(layer: &V1LayerParameter) -> Result<Option<Self>> {
        let Some(old) = layer.layer.as_ref().filter(|_| is_padding(layer)) else {
            return Ok(None);
        };
        match (&layer.bottom[..], &layer.top[..]) {
            ([bottom], [_]) => Ok(Some(Self { bottom: bottom.clone(), pad: old.pad() })),
            _ => Err(layer_error(layer, "a padding layer takes one bottom and one top")),
        }
    }
}

pub(super) fn is_padding(layer: &V1LayerParameter) -> bool {
    layer.layer.as_ref().is_some_and(|old| old.r#type() == "padding")
}

#[doc(alias = "UpgradeV0PaddingLayers")]
pub(super) fn merge(net: &mut NetParameter) -> Result<()> {
    // Map from the net's inputs and the tops of the visited layers to their padding; `None` unless
    // the blob is the top of a padding layer.
    let mut blobs: HashMap<_, _> = net.input.iter().map(|input| (input.clone(), None)).collect();
    for mut layer in mem::take(&mut net.layers) {
        merge_into_layer(&mut layer, &blobs)?;
        match Padding::from_layer(&layer)? {
            Some(padding) => {
                blobs.extend(layer.top.pop().map(|top| (top, Some(padding))));
            }
            None => {
                blobs.extend(layer.top.iter().map(|top| (top.clone(), None)));
                net.layers.push(layer);
            }
        }
    }
    Ok(())
}

/// Moves the padding of a padding layer to `layer`, if a bottom of `layer` is the top of the
/// padding layer.
fn merge_into_layer(
    layer: &mut V1LayerParameter,
    blobs: &HashMap<String, Option<Padding>>,
) -> Result<()> {
    for index in 0..layer.bottom.len() {
        let bottom = &layer.bottom[index];
        let Some(padding) = blobs.get(bottom) else {
            return Err(layer_error(layer, format!("unknown bottom blob `{bottom}`")));
        };
        let Some(Padding { bottom, pad }) = padding else { continue };
        let kind = layer.layer.as_ref().map_or("", |old| old.r#type());
        if !["conv", "pool"].contains(&kind) || layer.bottom.len() != 1 {
            let reason = "only conv and pool layers with one bottom can follow a padding layer";
            return Err(layer_error(layer, reason));
        }
        layer.bottom[index].clone_from(bottom);
        layer.layer.get_or_insert_default().pad = Some(*pad);
    }
    Ok(())
}

fn layer_error(layer: &V1LayerParameter, problem: impl Into<String>) -> Error {
    let name = layer.layer.as_ref().map_or(layer.name(), |old| old.name());
    Error::InvalidData(problem.into()).context(format!("layer `{name}`"))
}
