//! Inputs that fields of the net declare.

use super::Change;
use crate::{
    error::{Error, Result},
    proto::{BlobShape, InputParameter, LayerParameter, NetParameter},
};
use std::mem;

#[doc(alias = "UpgradeNetInput")]
pub(super) fn upgrade(net: &mut NetParameter) -> Result<Vec<Change>> {
    if net.input.is_empty() {
        return Ok(Vec::new());
    }
    let shapes = shapes(net)?;
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

/// Takes the shapes out of the net: one for each input, or none at all. `input_shape` counts if
/// both forms are there; what is left over is of no input.
fn shapes(net: &mut NetParameter) -> Result<Vec<BlobShape>> {
    let (mut shapes, dims) = (mem::take(&mut net.input_shape), mem::take(&mut net.input_dim));
    let field = if shapes.is_empty() { "input_dim" } else { "input_shape" };
    if shapes.is_empty() {
        let shape = |dims: &[i32]| BlobShape { dim: dims.iter().copied().map(i64::from).collect() };
        shapes = dims.chunks_exact(4).map(shape).collect();
    }
    let given = !shapes.is_empty() || !dims.is_empty();
    if given && shapes.len() < net.input.len() {
        let input = &net.input[shapes.len()];
        return Err(Error::InvalidData(format!("{field} gives no shape for input `{input}`")));
    }
    shapes.truncate(net.input.len());
    Ok(shapes)
}
