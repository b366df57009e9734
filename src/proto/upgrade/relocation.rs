//! A map from the paths of a net's messages before an upgrade to their paths after the upgrade.

use crate::proto::{
    messages::{InputParameter, LayerParameter, NetParameter, V0LayerParameter, V1LayerParameter},
    scan::PathStep,
    schema::Schema,
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Relocation {
    /// The new index of each old layer; `None` for a padding layer, which the upgrade removes.
    layers: Vec<Option<usize>>,
    /// Whether the upgrade inserted an Input layer at the front of the net.
    has_input_layer: bool,
}

impl Relocation {
    /// Derives the new layer indices from `kept`, which states for each old layer whether the
    /// upgraded `net` still contains the layer.
    pub(super) fn new(kept: &[bool], net: &NetParameter) -> Self {
        let kept_count = kept.iter().filter(|&&kept| kept).count();
        let has_input_layer = net.layer.len() > kept_count;
        let mut indices = usize::from(has_input_layer)..;
        let layers = kept.iter().map(|&kept| if kept { indices.next() } else { None }).collect();
        Self { layers, has_input_layer }
    }

    /// Replaces the path that a message had before the upgrade by its path after the upgrade.
    /// Leaves the path of a removed message unchanged, because the old path matches no message of
    /// the upgraded net.
    pub(super) fn remap(&self, path: &mut Vec<PathStep>) {
        let Some(&first) = path.first() else { return };
        match field_name(NetParameter::SCHEMA, first.field) {
            Some("input_shape") if self.has_input_layer => {
                let steps = [
                    step(NetParameter::SCHEMA, "layer", 0),
                    step(LayerParameter::SCHEMA, "input_param", 0),
                    step(InputParameter::SCHEMA, "shape", first.index),
                ];
                path.splice(..1, steps.into_iter().flatten());
            }
            Some(old @ ("layer" | "layers")) => {
                let Some(&Some(index)) = self.layers.get(first.index) else { return };
                path.splice(..1, step(NetParameter::SCHEMA, "layer", index));
                if old == "layers" {
                    update_layer_field(path);
                }
            }
            _ => {}
        }
    }
}

/// Updates the second step of `path`, which selects a field of a V0 or V1 layer, to the number of
/// the field with the same name in `LayerParameter`. Keeps the field number if `LayerParameter` has
/// no field with this name.
fn update_layer_field(path: &mut Vec<PathStep>) {
    let mut layer = V1LayerParameter::SCHEMA;
    // The fields of a V0 layer are in the message `layer` of a V1 layer.
    if path.get(1).and_then(|step| field_name(layer, step.field)) == Some("layer") {
        path.remove(1);
        layer = V0LayerParameter::SCHEMA;
    }
    if let Some(inner) = path.get_mut(1) {
        let name = field_name(layer, inner.field);
        let current_step = name.and_then(|name| step(LayerParameter::SCHEMA, name, 0));
        inner.field = current_step.map_or(inner.field, |current_step| current_step.field);
    }
}

fn field_name(message: &Schema, number: u32) -> Option<&'static str> {
    Some(message.field(number)?.1.name)
}

fn step(message: &Schema, name: &str, index: usize) -> Option<PathStep> {
    Some(PathStep { field: message.field_by_name(name)?.number, index })
}
