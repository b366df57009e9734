//! The Python layer SpatialDropoutLayer of ENet, which zeroes random channels during training.

use super::{position, prelude::*, python::PythonParam};
use crate::{
    memory::{Src, ViewMut},
    op::{Axis, Binary, RngKey, Unary},
    proto::LayerState,
};

/// Spatial dropout, which replaces the Python layer `spatial_dropout.SpatialDropoutLayer` of ENet
/// (TimoSaemann/ENet). With the entry `'phase': 'TRAIN'` of `param_str`, the layer replaces each
/// channel of each image by 0 with the probability `p`, and divides all other channels by `1 − p`.
/// With any other phase, the layer divides all channels by `1 − p`, as the Python layer does. The
/// phase of the net has no effect.
///
/// The Python layer multiplies the gradients of all images by the mask of the last image; cortado
/// multiplies the gradient of each image by the mask of that image. The layer regenerates the masks
/// in the backward pass, like [`DropoutLayer`](super::DropoutLayer). The method was introduced by
/// Tompson et al., Efficient object localization using convolutional networks (2015).
///
/// ```
/// use cortado::{prelude::*, proto::parse_text};
///
/// let text = r#"
///     layer { type: "Input" top: "x" input_param { shape { dim: 1 dim: 2 dim: 1 dim: 1 } } }
///     layer { type: "Python" bottom: "x" top: "y" python_param {
///       module: "spatial_dropout" layer: "SpatialDropoutLayer"
///       param_str: "{'phase': 'TEST', 'p': '0.5'}" } }"#;
/// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?)?;
/// net.blob("x").unwrap().copy_from_slice(&[1.0, 2.0])?;
/// net.forward()?;
/// assert_eq!(net.blob("y").unwrap().to_vec()?, [2.0, 4.0]);
/// # Ok::<(), cortado::Error>(())
/// ```
pub struct SpatialDropoutLayer<T: Element> {
    keep: f64,
    is_training: bool,
    /// One factor per channel of each image.
    mask: Blob<T>,
    key: RngKey,
    passes: u64,
}

/// Returns whether the layer with the settings `python` drops channels, and the probability `1 − p`
/// with which the layer keeps a channel.
///
/// # Errors
/// Returns any error from [`SpatialDropoutLayer::new`].
pub(crate) fn spatial_dropout_settings(python: &PythonParam) -> Result<(bool, f64)> {
    let entries = python.entries()?;
    let phase = entries.iter().find(|(key, _)| key == "phase").map(|(_, values)| &values[..]);
    let Some([phase]) = phase else {
        return invalid("python_param: param_str: phase is required");
    };
    match python.number("p")? {
        Some(p) if p > 0.0 && p < 1.0 => Ok((phase == "TRAIN", 1.0 - p)),
        _ => invalid("python_param: param_str: p between 0 and 1 is required"),
    }
}

impl<T: Element> SpatialDropoutLayer<T> {
    /// Creates the layer from `param_str`.
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`] if `phase` or `p` is missing, or unless `0 < p < 1`.
    pub fn new(param: &LayerParameter, cx: &LayerContext<'_>) -> Result<Self> {
        let (is_training, keep) = spatial_dropout_settings(&PythonParam::of(param))?;
        let (mask, key) = (Blob::new(cx.device, &[0])?, cx.pass_key());
        Ok(Self { keep, is_training, mask, key, passes: 0 })
    }

    /// Computes `y` from `x` in the forward pass, or `dx` from `dy` in the backward pass.
    fn apply(
        &self,
        device: &AnyDevice,
        x: Src<'_, T, AnyDevice>,
        y: ViewMut<'_, T, AnyDevice>,
    ) -> Result<()> {
        if !self.is_training {
            return device.unary(Unary::Scale(T::acc(1.0 / self.keep)), x, y);
        }
        let mut mask = self.mask.data_mut()?;
        device.fill(T::from_f64(1.0), mask.view_mut())?;
        device.dropout(self.key.child(self.passes), self.keep, Src::InPlace, mask.view_mut())?;
        let channels = self.mask.count();
        let axis = Axis::new(1, channels, y.len() / channels.max(1))?;
        device.broadcast(Binary::Mul, &axis, x, mask.view(), y)
    }
}

impl<T: Element> Layer<T> for SpatialDropoutLayer<T> {
    fn kind(&self) -> &'static str {
        "Python"
    }

    fn reshape(&mut self, bottom: &[Blob<T>], top: &mut [Blob<T>]) -> Result<()> {
        self.mask.reshape(&[bottom[0].num()?, bottom[0].channels()?])?;
        top[0].reshape_like(&bottom[0])
    }

    fn forward(&mut self, device: &AnyDevice, bottom: &[Blob<T>], top: &[Blob<T>]) -> Result<()> {
        self.passes += 1;
        let (x, mut y) = top[0].data_mut_from(&bottom[0])?;
        self.apply(device, x.src(), y.view_mut())
    }

    fn backward(
        &mut self,
        device: &AnyDevice,
        top: &[Blob<T>],
        _: PropagateDown<'_>,
        bottom: &[Blob<T>],
    ) -> Result<()> {
        let (dy, mut dx) = bottom[0].diff_mut_from(&top[0])?;
        self.apply(device, dy.src(), dx.view_mut())
    }

    fn state(&self) -> Result<Option<LayerState>> {
        position::state(self.passes)
    }

    fn set_state(&mut self, state: &LayerState) -> Result<()> {
        self.passes = position::of(state)?;
        Ok(())
    }

    fn skip_passes(&mut self, passes: u64) -> Result<bool> {
        self.passes = self.passes.saturating_add(passes);
        Ok(true)
    }
}
