//! The Convolution layer, for any number of spatial axes.

use super::{
    base_convolution::{BaseConvolution, Direction},
    prelude::*,
};
use crate::op::Unary;

/// Convolution with learned filters. In each bottom, the axes before `axis` are the batch, `axis`
/// holds the channels, and the axes after `axis` are spatial. The layer applies the same filters to
/// each bottom and has one top per bottom.
///
/// ```
/// use cortado::{prelude::*, proto::parse_text};
///
/// let text = r#"
///     layer { type: "Input" top: "x" input_param { shape { dim: 1 dim: 1 dim: 3 dim: 3 } } }
///     layer { type: "Convolution" bottom: "x" top: "y" convolution_param {
///       num_output: 1 kernel_size: 3 pad: 1 weight_filler { value: 1 } } }"#;
/// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?)?;
/// net.blob("x").unwrap().data_mut()?.host_mut()?.copy_from_slice(&[1.0; 9]);
/// net.forward()?;
/// assert_eq!(net.blob("y").unwrap().to_vec()?, [4.0, 6.0, 4.0, 6.0, 9.0, 6.0, 4.0, 6.0, 4.0]);
/// # Ok::<(), cortado::Error>(())
/// ```
pub struct ConvolutionLayer<T: Element> {
    kind: &'static str,
    base: BaseConvolution<T>,
}

impl<T: Element> ConvolutionLayer<T> {
    /// Creates the layer.
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`](crate::Error::InvalidData) if `num_output` is 0, or an error
    /// if a filler's definition is invalid.
    pub fn new(param: &LayerParameter, _: &LayerContext<'_>) -> Result<Self> {
        Ok(Self { kind: "Convolution", base: BaseConvolution::new(Direction::Forward, param)? })
    }

    /// Creates a layer of the type `DepthwiseConvolution` or `ConvolutionDepthwise`, which forks of
    /// Caffe for MobileNet and ShuffleNet have: a convolution in which each channel is a group.
    ///
    /// # Errors
    /// Returns the same errors as [`new`](Self::new).
    pub fn depthwise(param: &LayerParameter, _: &LayerContext<'_>) -> Result<Self> {
        let kind = match param.r#type() {
            "ConvolutionDepthwise" => "ConvolutionDepthwise",
            _ => "DepthwiseConvolution",
        };
        Ok(Self { kind, base: BaseConvolution::new(Direction::Forward, param)?.depthwise() })
    }

    fn convolve(
        &self,
        device: &AnyDevice,
        bottom: &[Blob<T>],
        top: &[Blob<T>],
        function: Option<Unary<f64>>,
    ) -> Result<()> {
        let (op, filters) = (self.base.op()?, self.base.weights.weights()?.data()?);
        let bias = self.base.weights.bias().map(Blob::data).transpose()?;
        for (bottom, top) in bottom.iter().zip(top) {
            let (x, mut y) = (bottom.data()?, top.data_mut()?);
            let (x, w, y) = (x.view(), filters.view(), y.view_mut());
            let bias = bias.as_ref().map(|bias| bias.view());
            match function {
                Some(function) => {
                    device.convolve_with_activation(op, x, w, bias, function.cast(), y)?
                }
                None => device.convolve(op, x, w, bias, y)?,
            }
        }
        Ok(())
    }
}

impl<T: Element> Layer<T> for ConvolutionLayer<T> {
    fn kind(&self) -> &'static str {
        self.kind
    }

    fn arity(&self) -> Arity {
        Arity::one_top_per_bottom()
    }

    fn setup(&mut self, cx: &LayerContext<'_>, bottom: &[Blob<T>]) -> Result<()> {
        self.base.setup(cx, bottom)
    }

    fn reshape(&mut self, bottom: &[Blob<T>], top: &mut [Blob<T>]) -> Result<()> {
        self.base.reshape(bottom, top)
    }

    fn forward(&mut self, device: &AnyDevice, bottom: &[Blob<T>], top: &[Blob<T>]) -> Result<()> {
        self.convolve(device, bottom, top, None)
    }

    fn forward_fused(
        &mut self,
        device: &AnyDevice,
        bottom: &[Blob<T>],
        top: &[Blob<T>],
        function: Unary<f64>,
    ) -> Result<bool> {
        self.convolve(device, bottom, top, Some(function)).map(|()| true)
    }

    fn backward(
        &mut self,
        device: &AnyDevice,
        top: &[Blob<T>],
        propagate: PropagateDown<'_>,
        bottom: &[Blob<T>],
    ) -> Result<()> {
        for (i, (bottom, top)) in bottom.iter().zip(top).enumerate() {
            let dy = top.diff()?;
            self.base.add_gradients(device, bottom.data()?.view(), dy.view(), propagate)?;
            if propagate.bottom[i] {
                let (w, mut dx) = (self.base.weights.weights()?.data()?, bottom.diff_mut()?);
                let op = self.base.op()?;
                device.convolve_backward_input(op, w.view(), dy.view(), dx.view_mut())?;
            }
        }
        Ok(())
    }

    fn params(&self) -> &[Blob<T>] {
        self.base.weights.blobs()
    }

    fn params_mut(&mut self) -> &mut [Blob<T>] {
        self.base.weights.blobs_mut()
    }
}
