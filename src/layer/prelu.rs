//! The PReLU layer, a rectified linear unit with learned slopes.

use super::{
    prelude::*,
    saved_input::SavedInput,
    weight_bias::{filled_blob, filler},
};
use crate::{
    filler::Filler,
    memory::Src,
    op::{Axis, Binary},
    proto::PReLuParameter,
};

/// Parametric ReLU: `y = x` where `x > 0`, otherwise `y = a · x`. The layer learns one slope `a`
/// per channel, or a single slope with `channel_shared`. The second axis of the bottom holds the
/// channels.
///
/// PReLU was introduced by He, Zhang, Ren and Sun (2015).
///
/// ```
/// use cortado::{prelude::*, proto::parse_text};
///
/// let text = r#"
///     layer { type: "Input" top: "x" input_param { shape { dim: 1 dim: 2 } } }
///     layer { type: "PReLU" bottom: "x" top: "y" }"#;
/// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?)?;
/// net.blob("x").unwrap().data_mut()?.host_mut()?.copy_from_slice(&[-4.0, 4.0]);
/// net.forward()?;
/// assert_eq!(net.blob("y").unwrap().to_vec()?, [-1.0, 4.0]); // slopes start at ¼
/// # Ok::<(), cortado::Error>(())
/// ```
#[doc(alias = "PReLULayer")]
pub struct PreluLayer<T: Element> {
    param: PReLuParameter,
    axis: Option<Axis>,
    saved_input: SavedInput<T>,
    /// Scratch space for the summands of the slopes' gradient, and for the slope that applies to
    /// each element.
    terms: Blob<T>,
    params: Vec<Blob<T>>,
}

impl<T: Element> PreluLayer<T> {
    /// Creates the layer.
    ///
    /// # Errors
    /// Propagates errors from the device.
    pub fn new(param: &LayerParameter, cx: &LayerContext<'_>) -> Result<Self> {
        Ok(Self {
            param: param.prelu_param.clone().unwrap_or_default(),
            axis: None,
            saved_input: SavedInput::new(cx.device)?,
            terms: Blob::new(cx.device, &[0])?,
            params: Vec::new(),
        })
    }
}

impl<T: Element> Layer<T> for PreluLayer<T> {
    fn kind(&self) -> &'static str {
        "PReLU"
    }

    fn allows_in_place(&self) -> bool {
        true
    }

    fn setup(&mut self, cx: &LayerContext<'_>, bottom: &[Blob<T>]) -> Result<()> {
        let channels = [bottom[0].channels()?];
        let shape = if self.param.channel_shared() { &[] } else { &channels[..] };
        let filler = filler(&self.param.filler, Filler::Constant { value: 0.25 })?;
        self.params = vec![filled_blob(cx, shape, &filler, 0)?];
        Ok(())
    }

    fn reshape(&mut self, bottom: &[Blob<T>], top: &mut [Blob<T>]) -> Result<()> {
        let shape = bottom[0].shape();
        // As in Caffe, the bottom must have at most four axes (checked by `channels`) and at least
        // two axes (checked by `Axis::of`).
        bottom[0].channels()?;
        let channels = Axis::of(shape, 1)?;
        let axis = match self.param.channel_shared() {
            true => Axis::new(1, 1, shape.count())?,
            false => channels,
        };
        if axis.extent != self.params[0].count() {
            let slopes = self.params[0].count();
            return wrong_shape(format!("{slopes} slopes do not fit {} channels", axis.extent));
        }
        self.axis = Some(axis);
        self.terms.reshape_like(&bottom[0])?;
        top[0].reshape_like(&bottom[0])?;
        self.saved_input.reshape(&bottom[0], &top[0])
    }

    fn forward(&mut self, device: &AnyDevice, bottom: &[Blob<T>], top: &[Blob<T>]) -> Result<()> {
        let (axis, slopes) = (reshaped(&self.axis)?, self.params[0].data()?);
        let (x, mut y) = top[0].data_mut_from(self.saved_input.save(&bottom[0], &top[0])?)?;
        device.broadcast(Binary::Prelu, axis, x.src(), slopes.view(), y.view_mut())
    }

    fn backward(
        &mut self,
        device: &AnyDevice,
        top: &[Blob<T>],
        propagate: PropagateDown<'_>,
        bottom: &[Blob<T>],
    ) -> Result<()> {
        let (axis, x) =
            (*reshaped(&self.axis)?, self.saved_input.input(&bottom[0], &top[0]).data()?);
        let mut terms = self.terms.data_mut()?;
        if propagate.params[0] {
            let (dy, mut da) = (top[0].diff()?, self.params[0].diff_mut()?);
            device.binary(Binary::MulNegative, dy.view().into(), x.view(), terms.view_mut())?;
            device.sum_to_axis(&axis, T::acc(1.0), terms.view(), da.view_mut())?;
        }
        if propagate.bottom[0] {
            let (x, slopes) = (Src::View(x.view()), self.params[0].data()?);
            device.broadcast(Binary::PreluSlope, &axis, x, slopes.view(), terms.view_mut())?;
            let (dy, mut dx) = bottom[0].diff_mut_from(&top[0])?;
            device.binary(Binary::Mul, dy.src(), terms.view(), dx.view_mut())?;
        }
        Ok(())
    }

    fn params(&self) -> &[Blob<T>] {
        &self.params
    }

    fn params_mut(&mut self) -> &mut [Blob<T>] {
        &mut self.params
    }
}
