//! Local response normalisation.

use super::{Layer, LayerContext, PropagateDown};
use crate::{
    blob::Blob,
    device::Device,
    element::Element,
    error::{Error, Result},
    op::{Lrn, LrnRegion},
    proto::{LayerParameter, LrnParameter, lrn_parameter::NormRegion},
};

/// Local response normalisation over neighbouring channels or positions: see [`Lrn`].
///
/// Within a channel `k` counts as 1, as in Caffe.
#[doc(alias = "LRNLayer")]
pub struct LrnLayer<T: Element, D: Device> {
    param: LrnParameter,
    /// For the bottom's present shape.
    op: Option<Lrn>,
    /// What responses were divided by, before its power.
    scale: Blob<T, D>,
}

impl<T: Element, D: Device> LrnLayer<T, D> {
    /// From the layer's parameters.
    ///
    /// # Errors
    /// [`Error::InvalidData`] for an even `local_size`.
    pub fn new(param: &LayerParameter, cx: &LayerContext<'_, D>) -> Result<Self> {
        let param = param.lrn_param.unwrap_or_default();
        if param.local_size().is_multiple_of(2) {
            let why = format!("lrn_param: local_size {} is not odd", param.local_size());
            return Err(Error::InvalidData(why));
        }
        Ok(Self { param, op: None, scale: Blob::new(cx.device, &[0])? })
    }

    fn op(&self) -> Result<&Lrn> {
        self.op.as_ref().ok_or_else(|| Error::InvalidData("forward before reshape".into()))
    }
}

impl<T: Element, D: Device> Layer<T, D> for LrnLayer<T, D> {
    fn kind(&self) -> &'static str {
        "LRN"
    }

    fn reshape(&mut self, bottom: &[Blob<T, D>], top: &mut [Blob<T, D>]) -> Result<()> {
        let shape = bottom[0].shape();
        let &[batch, channels, height, width] = &shape[..] else {
            let why = format!("needs 4 axes (num, channels, height, width), not {shape}");
            return Err(Error::Shape(why));
        };
        let param = &self.param;
        self.op = Some(Lrn {
            region: match param.norm_region() {
                NormRegion::AcrossChannels => LrnRegion::AcrossChannels,
                NormRegion::WithinChannel => LrnRegion::WithinChannel,
            },
            batch,
            channels,
            plane: [height, width],
            size: param.local_size() as usize,
            alpha: param.alpha().into(),
            beta: param.beta().into(),
            k: param.k().into(),
        });
        self.scale.reshape_like(&bottom[0])?;
        top[0].reshape_like(&bottom[0])
    }

    fn forward(&mut self, device: &D, bottom: &[Blob<T, D>], top: &[Blob<T, D>]) -> Result<()> {
        let (x, mut scale, mut y) = (bottom[0].data()?, self.scale.data_mut()?, top[0].data_mut()?);
        device.lrn(self.op()?, x.view(), scale.view_mut(), y.view_mut())
    }

    fn backward(
        &mut self,
        device: &D,
        top: &[Blob<T, D>],
        propagate: PropagateDown<'_>,
        bottom: &[Blob<T, D>],
    ) -> Result<()> {
        if !propagate.bottom[0] {
            return Ok(());
        }
        let (x, y, scale) = (bottom[0].data()?, top[0].data()?, self.scale.data()?);
        let (dy, mut dx) = (top[0].diff()?, bottom[0].diff_mut()?);
        let (x, y, scale, dy) = (x.view(), y.view(), scale.view(), dy.view());
        device.lrn_backward(self.op()?, x, y, scale, dy, dx.view_mut())
    }
}
