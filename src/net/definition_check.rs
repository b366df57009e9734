//! Checks of net definitions for likely mistakes, and line numbers for error messages.

use super::filter::includes;
use crate::{
    error::{Error, Result},
    proto::{self, LayerParameter, NetParameter, NetState},
};
use std::{
    collections::{HashMap, HashSet},
    fs,
    path::Path,
};

/// Adds the path of the definition's file to an error that arose while a net was built. If the
/// error names a layer, also adds the number of the line at which the layer's definition starts,
/// unless several layers in state `state` have this name.
pub(super) fn locate(
    error: Error,
    path: &Path,
    definition: &NetParameter,
    state: &NetState,
) -> Error {
    let file = path.display().to_string();
    let line = failed_layer(&error).and_then(|name| layer_line(name, path, definition, state));
    error.context(line.map_or(file.clone(), |line| format!("{file}:{line}")))
}

/// Returns the name of the layer in which an error arose.
fn failed_layer(error: &Error) -> Option<&str> {
    let Error::Context { context, source } = error else { return None };
    // The name may be followed by the layer's type, as in "layer `ip` (InnerProduct)".
    let name = context.strip_prefix("layer `").and_then(|rest| {
        rest.strip_suffix('`').or_else(|| rest.rsplit_once("` (").map(|(name, _)| name))
    });
    name.or_else(|| failed_layer(source))
}

/// Returns the line number of the layer `name` in the definition's file. Returns `None` if no layer
/// or several layers in state `state` have this name, or if the upgrade from an old format has
/// changed the number of layers other than by inserting an Input layer at the start.
fn layer_line(
    name: &str,
    path: &Path,
    definition: &NetParameter,
    state: &NetState,
) -> Option<usize> {
    let lines = proto::layer_lines(&fs::read(path).ok()?);
    let is_named = |layer: &LayerParameter| {
        layer.name() == name && includes(layer, state).is_ok_and(|is_included| is_included)
    };
    let mut indices = (0..definition.layer.len()).filter(|&i| is_named(&definition.layer[i]));
    let (index, None) = (indices.next()?, indices.next()) else { return None };
    let inserted = definition.layer.len().checked_sub(lines.len())?;
    let is_expected = match &definition.layer[..inserted] {
        [] => true,
        [input] => input.r#type() == "Input",
        _ => false,
    };
    lines.get(index.checked_sub(inserted)?).copied().filter(|_| is_expected)
}

/// Checks the first bottom in `filtered_net` that no preceding layer produces. `filtered_net`
/// contains the layers of `definition` that `state` includes.
///
/// # Errors
/// Returns [`Error::InvalidData`], which names both layers, if a layer that the state excludes
/// produces this bottom.
pub(super) fn check_excluded_tops(
    definition: &NetParameter,
    filtered_net: &NetParameter,
    state: &NetState,
) -> Result<()> {
    let mut tops = HashSet::new();
    for layer in &filtered_net.layer {
        let mut bottoms = layer.bottom.iter().enumerate();
        if let Some((i, bottom)) = bottoms.find(|(_, name)| !tops.contains(name)) {
            let mut excluded = definition
                .layer
                .iter()
                .filter(|layer| includes(layer, state).is_ok_and(|is_included| !is_included));
            let Some(producer) = excluded.find(|layer| layer.top.contains(bottom)) else {
                return Ok(()); // The insertion of Split layers returns the error.
            };
            let reason = format!(
                "unknown bottom blob `{bottom}` (bottom {i}): the rules of layer `{}`, which has this \
                 top, exclude {}",
                producer.name(),
                describe(state)
            );
            let error = Error::InvalidData(reason);
            return Err(error.context(format!("layer `{}`", layer.name())));
        }
        tops.extend(&layer.top);
    }
    Ok(())
}

fn describe(state: &NetState) -> String {
    let (phase, level, stages) = (state.phase().as_str_name(), state.level(), &state.stage);
    format!("phase {phase}, level {level}, stages [{}]", stages.join(", "))
}

/// Returns the reason why a net has no layers.
pub(super) fn describe_empty_net(definition: &NetParameter, state: &NetState) -> String {
    match definition.layer.len() {
        0 => "net has no layers".into(),
        _ => format!("net has no layers: the rules of every layer exclude {}", describe(state)),
    }
}

/// Logs a warning for each name that several layers of a net have, and for each layer field with
/// the value NaN. Caffe logs nothing for duplicate names or NaN fields.
///
/// # Errors
/// Returns any error from [`proto::to_text`].
pub(super) fn warn_about_layers(net: &NetParameter) -> Result<()> {
    let mut counts = HashMap::<&str, usize>::new();
    for layer in &net.layer {
        let count = counts.entry(layer.name()).or_default();
        *count += 1;
        if *count == 2 && !layer.name().is_empty() {
            log::warn!(
                "net `{}`: several layers are called `{}`; trained weights are copied to the first \
                 of them only",
                net.name(),
                layer.name()
            );
        }
        for field in nan_fields(layer)? {
            log::warn!("layer `{}`: {field} is NaN", layer.name());
        }
    }
    Ok(())
}

/// Returns the paths, such as `transform_param.scale`, of a layer's fields whose value is NaN.
/// Ignores NaN in the layer's blobs.
fn nan_fields(layer: &LayerParameter) -> Result<Vec<String>> {
    let layer = LayerParameter { blobs: Vec::new(), ..layer.clone() };
    let (mut path, mut fields) = (Vec::new(), Vec::new());
    for line in proto::to_text(&layer)?.lines().map(str::trim_start) {
        if let Some(name) = line.strip_suffix(" {") {
            path.push(name.to_owned());
        } else if line == "}" {
            path.pop();
        } else if let Some((name, "nan")) = line.split_once(": ") {
            fields.push([&path[..], &[name.to_owned()]].concat().join("."));
        }
    }
    Ok(fields)
}
