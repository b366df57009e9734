//! The upgrade of a net's input fields to an Input layer.

use super::change::Change;
use crate::{
    error::{Error, Result},
    proto::messages::{BlobShape, InputParameter, LayerParameter, NetParameter},
};
use std::mem;

#[doc(alias = "UpgradeNetInput")]
pub(super) fn upgrade(net: &mut NetParameter) -> Result<Vec<Change>> {
    if net.input.is_empty() {
        return Ok(Vec::new());
    }
    let shapes = take_shapes(net)?;
    let top = mem::take(&mut net.input);
    if !shapes.is_empty() {
        let layer = LayerParameter {
            name: Some("input".into()),
            r#type: Some("Input".into()),
            top,
            input_param: Some(InputParameter { shape: shapes }),
            ..Default::default()
        };
        net.layer.insert(0, layer);
    }
    Ok(vec![Change::Inputs])
}

/// Removes the input shapes from the net. Returns one shape per input, or an empty list if the net
/// has no input shapes. `input_shape` takes precedence over `input_dim`. Drops shapes beyond the
/// number of inputs.
fn take_shapes(net: &mut NetParameter) -> Result<Vec<BlobShape>> {
    let (mut shapes, dims) = (mem::take(&mut net.input_shape), mem::take(&mut net.input_dim));
    let field = if shapes.is_empty() { "input_dim" } else { "input_shape" };
    if shapes.is_empty() {
        let shape = |dims: &[i32]| BlobShape { dim: dims.iter().copied().map(i64::from).collect() };
        shapes = dims.chunks_exact(4).map(shape).collect();
    }
    let has_shapes = !shapes.is_empty() || !dims.is_empty();
    if has_shapes && shapes.len() < net.input.len() {
        let input = &net.input[shapes.len()];
        return Err(Error::InvalidData(format!(
            "input `{input}`: expected a shape in {field}, found no shape"
        )));
    }
    shapes.truncate(net.input.len());
    Ok(shapes)
}
