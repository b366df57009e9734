//! What nobody is to see.

use super::{Arity, Layer, LayerContext, PropagateDown};
use crate::{blob::Blob, device::Device, element::Element, error::Result, proto::LayerParameter};

/// Consumes its bottoms, so that they are no outputs of the net. Their gradients are zero.
pub struct SilenceLayer;

impl SilenceLayer {
    /// From the layer's parameters, of which there are none.
    ///
    /// # Errors
    /// None; fallible as all makers are.
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
        for (bottom, _) in
            bottom.iter().zip(propagate.bottom).filter(|(_, propagates)| **propagates)
        {
            device.fill(T::default(), bottom.diff_mut()?.view_mut())?;
        }
        Ok(())
    }
}
