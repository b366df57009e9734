//! The Split layer: one blob for several consumers.

use super::prelude::*;
use crate::{memory::Src, op::Binary};

/// Makes every top share the data of the bottom. The gradient is the sum of the tops' gradients.
pub struct SplitLayer;

impl SplitLayer {
    /// Creates the layer, which has no parameters.
    pub fn new<D: Device>(_: &LayerParameter, _: &LayerContext<'_, D>) -> Result<Self> {
        Ok(Self)
    }
}

impl<T: Element, D: Device> Layer<T, D> for SplitLayer {
    fn kind(&self) -> &'static str {
        "Split"
    }

    fn arity(&self) -> Arity {
        Arity::between(1..=1, 1..=usize::MAX)
    }

    fn reshape(&mut self, bottom: &[Blob<T, D>], top: &mut [Blob<T, D>]) -> Result<()> {
        for top in top {
            top.reshape_like(&bottom[0])?;
            top.share_data(&bottom[0])?;
        }
        Ok(())
    }

    fn forward(&mut self, _: &D, _: &[Blob<T, D>], _: &[Blob<T, D>]) -> Result<()> {
        Ok(())
    }

    fn backward(
        &mut self,
        device: &D,
        top: &[Blob<T, D>],
        _: PropagateDown<'_>,
        bottom: &[Blob<T, D>],
    ) -> Result<()> {
        let mut dx = bottom[0].diff_mut()?;
        let first = top[0].diff()?;
        let Some(second) = top.get(1) else {
            return device.copy(first.view(), dx.view_mut());
        };
        device.binary(Binary::Add, first.view().into(), second.diff()?.view(), dx.view_mut())?;
        for top in &top[2..] {
            device.binary(Binary::Add, Src::InPlace, top.diff()?.view(), dx.view_mut())?;
        }
        Ok(())
    }
}
