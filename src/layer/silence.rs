//! The Silence layer.

use super::prelude::*;

/// Consumes its bottoms, so that they are not outputs of the net. Their gradients are zero.
pub struct SilenceLayer;

impl SilenceLayer {
    /// Creates the layer, which has no parameters.
    pub fn new<D: Device>(_: &LayerParameter, _: &LayerContext<'_, D>) -> Result<Self> {
        Ok(Self)
    }
}

impl<T: Element, D: Device> Layer<T, D> for SilenceLayer {
    fn kind(&self) -> &'static str {
        "Silence"
    }

    fn arity(&self) -> Arity {
        Arity::between(1..=usize::MAX, 0..=0)
    }

    fn reshape(&mut self, _: &[Blob<T, D>], _: &mut [Blob<T, D>]) -> Result<()> {
        Ok(())
    }

    fn forward(&mut self, _: &D, _: &[Blob<T, D>], _: &[Blob<T, D>]) -> Result<()> {
        Ok(())
    }

    fn backward(
        &mut self,
        device: &D,
        _: &[Blob<T, D>],
        propagate: PropagateDown<'_>,
        bottom: &[Blob<T, D>],
    ) -> Result<()> {
        zero_gradients(device, propagate, bottom)
    }
}
