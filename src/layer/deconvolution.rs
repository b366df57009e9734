//! The Deconvolution layer: transposed convolution over any number of spatial axes.

use super::{
    base_convolution::{BaseConvolution, Direction},
    prelude::*,
};

/// Transposed convolution: every element of a bottom adds a multiple of the filters to a window of
/// the top. The spatial extents of the top are about `stride` times the bottom's extents.
///
/// The Deconvolution layer reads the same fields of `convolution_param` as
/// [`ConvolutionLayer`](crate::layer::ConvolutionLayer). The filters have the shape `channels ×
/// num_output/group × kernel…`.
///
/// ```
/// use cortado::{prelude::*, proto::parse_text};
///
/// let text = r#"
///     layer { type: "Input" top: "x" input_param { shape { dim: 1 dim: 1 dim: 1 dim: 2 } } }
///     layer { type: "Deconvolution" bottom: "x" top: "y" convolution_param {
///       num_output: 1 kernel_size: 2 stride: 2 weight_filler { value: 1 } } }"#;
/// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?)?;
/// net.blob("x").unwrap().data_mut()?.host_mut()?.copy_from_slice(&[3.0, 5.0]);
/// net.forward()?;
/// assert_eq!(net.blob("y").unwrap().to_vec()?, [3.0, 3.0, 5.0, 5.0, 3.0, 3.0, 5.0, 5.0]);
/// # Ok::<(), cortado::Error>(())
/// ```
pub struct DeconvolutionLayer<T: Element>(BaseConvolution<T>);

impl<T: Element> DeconvolutionLayer<T> {
    /// Creates the layer.
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`](crate::Error::InvalidData) if `num_output` is 0, or an error
    /// if a filler's definition is invalid.
    pub fn new(param: &LayerParameter, _: &LayerContext<'_>) -> Result<Self> {
        BaseConvolution::new(Direction::Backward, param).map(Self)
    }
}

impl<T: Element> Layer<T> for DeconvolutionLayer<T> {
    fn kind(&self) -> &'static str {
        "Deconvolution"
    }

    fn arity(&self) -> Arity {
        Arity::one_top_per_bottom()
    }

    fn setup(&mut self, cx: &LayerContext<'_>, bottom: &[Blob<T>]) -> Result<()> {
        self.0.setup(cx, bottom)
    }

    fn reshape(&mut self, bottom: &[Blob<T>], top: &mut [Blob<T>]) -> Result<()> {
        self.0.reshape(bottom, top)
    }

    fn forward(&mut self, device: &AnyDevice, bottom: &[Blob<T>], top: &[Blob<T>]) -> Result<()> {
        let (op, filters) = (self.0.op()?, self.0.weights.weights()?.data()?);
        for (bottom, top) in bottom.iter().zip(top) {
            let (x, mut y) = (bottom.data()?, top.data_mut()?);
            device.convolve_backward_input(op, filters.view(), x.view(), y.view_mut())?;
            self.0.add_bias(device, y.view_mut())?;
        }
        Ok(())
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
            self.0.add_gradients(device, dy.view(), bottom.data()?.view(), propagate)?;
            if propagate.bottom[i] {
                let (w, mut dx) = (self.0.weights.weights()?.data()?, bottom.diff_mut()?);
                device.convolve(self.0.op()?, dy.view(), w.view(), None, dx.view_mut())?;
            }
        }
        Ok(())
    }

    fn params(&self) -> &[Blob<T>] {
        self.0.weights.blobs()
    }

    fn params_mut(&mut self) -> &mut [Blob<T>] {
        self.0.weights.blobs_mut()
    }
}
