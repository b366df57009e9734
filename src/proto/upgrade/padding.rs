//! Padding layers of the V0 format: the layers after them pad by themselves.

use super::{at_layer, v0::name};
use crate::{
    error::Result,
    proto::{NetParameter, V1LayerParameter},
};
use std::{collections::HashMap, mem};

/// What a padding layer does.
struct Padding {
    bottom: String,
    pad: u32,
}

impl Padding {
    /// That of a layer, if it is a padding layer.
    fn of(layer: &V1LayerParameter) -> Result<Option<Self>> {
        let Some(old) = layer.layer.as_ref().filter(|_| is_padding(layer)) else {
            return Ok(None);
        };
        match (&layer.bottom[..], &layer.top[..]) {
            ([bottom], [_]) => Ok(Some(Self { bottom: bottom.clone(), pad: old.pad() })),
            _ => Err(at_layer(name(layer), "padding takes one bottom and makes one top")),
        }
    }
}

pub(super) fn is_padding(layer: &V1LayerParameter) -> bool {
    layer.layer.as_ref().is_some_and(|old| old.r#type() == "padding")
}

/// Removes the padding layers of a net.
#[doc(alias = "UpgradeV0PaddingLayers")]
pub(super) fn merge(net: &mut NetParameter) -> Result<()> {
    // The blobs so far, each with the padding that made it, if one did.
    let mut blobs: HashMap<_, _> = net.input.iter().map(|input| (input.clone(), None)).collect();
    for mut layer in mem::take(&mut net.layers) {
        take_padding(&mut layer, &blobs)?;
        match Padding::of(&layer)? {
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

/// Takes over the padding before a layer, if its bottom comes from there.
fn take_padding(
    layer: &mut V1LayerParameter,
    blobs: &HashMap<String, Option<Padding>>,
) -> Result<()> {
    for index in 0..layer.bottom.len() {
        let bottom = &layer.bottom[index];
        let Some(maker) = blobs.get(bottom) else {
            return Err(at_layer(name(layer), format!("no layer before it makes `{bottom}`")));
        };
        let Some(Padding { bottom, pad }) = maker else { continue };
        let kind = layer.layer.as_ref().map_or("", |old| old.r#type());
        if !["conv", "pool"].contains(&kind) || layer.bottom.len() != 1 {
            let why = "only conv and pool layers with one bottom can follow a padding layer";
            return Err(at_layer(name(layer), why));
        }
        layer.bottom[index].clone_from(bottom);
        layer.layer.get_or_insert_default().pad = Some(*pad);
    }
    Ok(())
}
