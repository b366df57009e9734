//! The InnerProduct layer, a fully connected layer that computes `y = W·x + b`.

use super::{prelude::*, weight_bias::WeightsAndBias};
use crate::op::{Axis, Gemm, Transpose, Unary};

/// A fully connected layer, which multiplies each input vector by a weight matrix. In a bottom, the
/// axes from `axis` on form one input vector of K elements. The weight matrix is N×K, or K×N with
/// `transpose`, where N is `num_output`.
///
/// ```
/// use cortado::{prelude::*, proto::parse_text};
///
/// let text = r#"
///     layer { type: "Input" top: "x" input_param { shape { dim: 1 dim: 3 } } }
///     layer { type: "InnerProduct" bottom: "x" top: "y" inner_product_param {
///       num_output: 2 weight_filler { value: 2 } bias_filler { value: 1 } } }"#;
/// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?)?;
/// net.blob("x").unwrap().data_mut()?.host_mut()?.copy_from_slice(&[1.0, 2.0, 3.0]);
/// net.forward()?;
/// assert_eq!(net.blob("y").unwrap().to_vec()?, [13.0, 13.0]);
/// # Ok::<(), cortado::Error>(())
/// ```
pub struct InnerProductLayer<T: Element> {
    axis: isize,
    transpose: bool,
    rows: usize,
    inputs: usize,
    weights: WeightsAndBias<T>,
}

impl<T: Element> InnerProductLayer<T> {
    /// Creates the layer.
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`] if `num_output` is 0, or an error if a filler's definition is
    /// invalid.
    pub fn new(param: &LayerParameter, _: &LayerContext<'_>) -> Result<Self> {
        let param = param.inner_product_param.clone().unwrap_or_default();
        let fillers = [&param.weight_filler, &param.bias_filler];
        Ok(Self {
            axis: param.axis() as isize,
            transpose: param.transpose(),
            rows: 0,
            inputs: 0,
            weights: WeightsAndBias::new(
                "inner_product_param",
                param.num_output(),
                fillers,
                param.bias_term(),
            )?,
        })
    }

    /// Returns whether the GEMM of the forward pass transposes the weight matrix, and whether the
    /// GEMM of the backward pass does.
    fn transposes(&self) -> (Transpose, Transpose) {
        match self.transpose {
            false => (Transpose::Yes, Transpose::No),
            true => (Transpose::No, Transpose::Yes),
        }
    }

    /// Computes the top. If the layer has a bias, applies `function` to the elements of the top.
    fn multiply(
        &self,
        device: &AnyDevice,
        bottom: &[Blob<T>],
        top: &[Blob<T>],
        function: Option<Unary<f64>>,
    ) -> Result<()> {
        let (rows, outputs, inputs) = (self.rows, self.weights.outputs(), self.inputs);
        let op = Gemm::new(rows, outputs, inputs).transpose(Transpose::No, self.transposes().0);
        let (x, w) = (bottom[0].data()?, self.weights.weights()?.data()?);
        let mut y = top[0].data_mut()?;
        let Some(bias) = self.weights.bias() else {
            return device.gemm(&op, x.view(), w.view(), y.view_mut());
        };
        let (bias, function) = (bias.data()?, function.map(Unary::cast));
        device.gemm_with_bias(&op, x.view(), w.view(), bias.view(), function, y.view_mut())
    }
}

impl<T: Element> Layer<T> for InnerProductLayer<T> {
    fn kind(&self) -> &'static str {
        "InnerProduct"
    }

    fn setup(&mut self, cx: &LayerContext<'_>, bottom: &[Blob<T>]) -> Result<()> {
        let shape = bottom[0].shape();
        let inputs = shape.count_range(shape.canonical_axis(self.axis)?, shape.len())?;
        let outputs = self.weights.outputs();
        let shape = if self.transpose { [inputs, outputs] } else { [outputs, inputs] };
        self.weights.create(cx, &shape)?;
        self.inputs = inputs;
        Ok(())
    }

    fn reshape(&mut self, bottom: &[Blob<T>], top: &mut [Blob<T>]) -> Result<()> {
        let shape = bottom[0].shape();
        let axis = shape.canonical_axis(self.axis)?;
        let inputs = shape.count_range(axis, shape.len())?;
        if inputs != self.inputs {
            return wrong_shape(format!(
                "input vectors: expected {} elements, found {inputs}",
                self.inputs
            ));
        }
        self.rows = shape.count_range(0, axis)?;
        let mut shape = shape[..axis].to_vec();
        shape.push(self.weights.outputs());
        top[0].reshape(&shape)
    }

    fn forward(&mut self, device: &AnyDevice, bottom: &[Blob<T>], top: &[Blob<T>]) -> Result<()> {
        self.multiply(device, bottom, top, None)
    }

    fn forward_fused(
        &mut self,
        device: &AnyDevice,
        bottom: &[Blob<T>],
        top: &[Blob<T>],
        function: Unary<f64>,
    ) -> Result<bool> {
        if self.weights.bias().is_none() {
            return Ok(false);
        }
        self.multiply(device, bottom, top, Some(function)).map(|()| true)
    }

    fn backward(
        &mut self,
        device: &AnyDevice,
        top: &[Blob<T>],
        propagate: PropagateDown<'_>,
        bottom: &[Blob<T>],
    ) -> Result<()> {
        let dy = top[0].diff()?;
        let (rows, inputs, outputs) = (self.rows, self.inputs, self.weights.outputs());
        if propagate.params[0] {
            let (x, mut dw) = (bottom[0].data()?, self.weights.weights()?.diff_mut()?);
            let gemm = |m, n| Gemm::new(m, n, rows).transpose(Transpose::Yes, Transpose::No);
            if self.transpose {
                let op = gemm(inputs, outputs).accumulate();
                device.gemm(&op, x.view(), dy.view(), dw.view_mut())?;
            } else {
                let op = gemm(outputs, inputs).accumulate();
                device.gemm(&op, dy.view(), x.view(), dw.view_mut())?;
            }
        }
        let axis = Axis::new(rows, outputs, 1)?;
        self.weights.add_bias_gradient(device, &axis, dy.view(), propagate)?;
        if propagate.bottom[0] {
            let op = Gemm::new(rows, inputs, outputs).transpose(Transpose::No, self.transposes().1);
            let (w, mut dx) = (self.weights.weights()?.data()?, bottom[0].diff_mut()?);
            device.gemm(&op, dy.view(), w.view(), dx.view_mut())?;
        }
        Ok(())
    }

    fn params(&self) -> &[Blob<T>] {
        self.weights.blobs()
    }

    fn params_mut(&mut self) -> &mut [Blob<T>] {
        self.weights.blobs_mut()
    }
}
