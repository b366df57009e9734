//! Forward and backward passes of a net, layer by layer.

use cortado::{error::Result, net::Net};

/// Calls `time` with each layer's index and a function that runs the layer's forward pass. Does not
/// call `time` for a layer that is fused into the preceding layer.
pub(super) fn forward_layers(
    net: &mut Net<f32>,
    mut time: impl FnMut(usize, &mut dyn FnMut() -> Result<()>) -> Result<()>,
) -> Result<()> {
    let mut layers = 0..net.layer_names().len();
    while !layers.is_empty() {
        time(layers.start, &mut || net.forward_first(&mut layers).map(drop))?;
    }
    Ok(())
}

/// Calls `time` with each layer's index and a function that runs the layer's backward pass, from the
/// last layer to the first.
pub(super) fn backward_layers(
    net: &mut Net<f32>,
    mut time: impl FnMut(usize, &mut dyn FnMut() -> Result<()>) -> Result<()>,
) -> Result<()> {
    let layers = 0..net.layer_names().len();
    layers.rev().try_for_each(|index| time(index, &mut || net.backward_layers(index..index + 1)))
}
