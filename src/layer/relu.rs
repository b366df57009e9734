//! `y = max(x, 0)`

use super::{Context, Layer, Propagate};
use crate::{
    blob::Blob,
    device::Device,
    element::Element,
    error::Result,
    op::{Binary, Unary},
    proto::LayerParameter,
};

/// Rectified linear unit: `y = max(x, 0) + negative_slope · min(x, 0)`.
pub struct ReluLayer {
    slope: f64,
}

impl ReluLayer {
    /// From the layer's parameters.
    ///
    /// # Errors
    /// None; fallible as all makers are.
    pub fn new<D: Device>(param: &LayerParameter, _: &Context<'_, D>) -> Result<Self> {
        let slope = param.relu_param.as_ref().map_or(0.0, |relu| relu.negative_slope());
        Ok(Self { slope: slope.into() })
    }
}

impl<T: Element, D: Device> Layer<T, D> for ReluLayer {
    fn kind(&self) -> &'static str {
        "ReLU"
    }

    fn allows_in_place(&self) -> bool {
        true
    }

    fn reshape(&mut self, bottom: &[Blob<T, D>], top: &mut [Blob<T, D>]) -> Result<()> {
        top[0].reshape_like(&bottom[0])
    }

    fn forward(&mut self, device: &D, bottom: &[Blob<T, D>], top: &[Blob<T, D>]) -> Result<()> {
        let (x, mut y) = top[0].data_from(&bottom[0])?;
        device.unary(Unary::Relu { slope: T::acc(self.slope) }, x.src(), y.view_mut())
    }

    fn backward(
        &mut self,
        device: &D,
        top: &[Blob<T, D>],
        propagate: Propagate<'_>,
        bottom: &[Blob<T, D>],
    ) -> Result<()> {
        if propagate.bottom[0] {
            let op = Binary::ReluGrad { slope: T::acc(self.slope) };
            let (x, (dy, mut dx)) = (bottom[0].data()?, bottom[0].diff_from(&top[0])?);
            device.binary(op, dy.src(), x.view(), dx.view_mut())?;
        }
        Ok(())
    }
}
