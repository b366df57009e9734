//! The LRN layer: local response normalization.

use super::prelude::*;
use crate::{
    op::{Lrn, LrnRegion},
    proto::{LrnParameter, lrn_parameter::NormRegion},
};

/// Local response normalization (LRN) over neighbouring channels or neighbouring positions; see
/// [`Lrn`].
///
/// As in Caffe, the layer ignores the field `k` and uses 1 instead if `norm_region` is
/// `WITHIN_CHANNEL`.
///
/// ```
/// use cortado::{prelude::*, proto::parse_text};
///
/// let text = r#"
///     layer { type: "Input" top: "x" input_param { shape { dim: 1 dim: 3 dim: 1 dim: 1 } } }
///     layer { type: "LRN" bottom: "x" top: "y" lrn_param { local_size: 3 alpha: 3 } }"#;
/// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?)?;
/// net.blob("x").unwrap().data_mut()?.host_mut()?.copy_from_slice(&[1.0; 3]);
/// net.forward()?;
/// let y = net.blob("y").unwrap().to_vec()?;
/// assert!(y[1] < y[0]); // channel 1 has two neighbours, channel 0 has one
/// # Ok::<(), cortado::Error>(())
/// ```
#[doc(alias = "LRNLayer")]
pub struct LrnLayer<T: Element> {
    param: LrnParameter,
    op: Option<Lrn>,
    /// The base `s` of the power `s^(−β)` for each element; see [`Lrn`].
    scale: Blob<T>,
}

impl<T: Element> LrnLayer<T> {
    /// Creates the layer.
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`] if `local_size` is even.
    pub fn new(param: &LayerParameter, cx: &LayerContext<'_>) -> Result<Self> {
        let param = param.lrn_param.unwrap_or_default();
        if param.local_size().is_multiple_of(2) {
            return invalid(format!(
                "lrn_param: local_size must be odd, found {}",
                param.local_size()
            ));
        }
        Ok(Self { param, op: None, scale: Blob::new(cx.device, &[0])? })
    }
}

impl<T: Element> Layer<T> for LrnLayer<T> {
    fn kind(&self) -> &'static str {
        "LRN"
    }

    fn reshape(&mut self, bottom: &[Blob<T>], top: &mut [Blob<T>]) -> Result<()> {
        let [batch, channels, height, width] = image_extents(bottom[0].shape())?;
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

    fn forward(&mut self, device: &AnyDevice, bottom: &[Blob<T>], top: &[Blob<T>]) -> Result<()> {
        let (x, mut scale, mut y) = (bottom[0].data()?, self.scale.data_mut()?, top[0].data_mut()?);
        device.lrn(reshaped(&self.op)?, x.view(), scale.view_mut(), y.view_mut())
    }

    fn backward(
        &mut self,
        device: &AnyDevice,
        top: &[Blob<T>],
        _: PropagateDown<'_>,
        bottom: &[Blob<T>],
    ) -> Result<()> {
        let (x, y, scale) = (bottom[0].data()?, top[0].data()?, self.scale.data()?);
        let (dy, mut dx) = (top[0].diff()?, bottom[0].diff_mut()?);
        let (x, y, scale, dy) = (x.view(), y.view(), scale.view(), dy.view());
        device.lrn_backward(reshaped(&self.op)?, x, y, scale, dy, dx.view_mut())
    }
}
