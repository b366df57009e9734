//! The Scale layer, which computes `y = x · s + b`.

use super::{
    axis_operand::AxisOperand,
    prelude::*,
    saved_input::SavedInput,
    weight_bias::{filled_blob, filler},
};
use crate::{
    filler::Filler,
    op::{Axis, Binary},
    proto::ScaleParameter,
};

/// Computes `y = x · s + b`, where `s` covers some axes of `x` and is broadcast along the other
/// axes. The scale factor `s` is a learned parameter, or the second bottom if the layer has two
/// bottoms. The bias `b` is an optional learned parameter.
///
/// The forward pass of the Scale layer runs a single kernel; the backward pass runs one kernel per
/// gradient.
///
/// ```
/// use cortado::{prelude::*, proto::parse_text};
///
/// let text = r#"
///     layer { type: "Input" top: "x" input_param { shape { dim: 2 dim: 2 } } }
///     layer { type: "Input" top: "s" input_param { shape { dim: 2 } } }
///     layer { type: "Scale" bottom: "x" bottom: "s" top: "y" scale_param { axis: 0 } }"#;
/// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?)?;
/// net.blob("x").unwrap().data_mut()?.host_mut()?.copy_from_slice(&[1.0, 2.0, 3.0, 4.0]);
/// net.blob("s").unwrap().data_mut()?.host_mut()?.copy_from_slice(&[10.0, 100.0]);
/// net.forward()?;
/// assert_eq!(net.blob("y").unwrap().to_vec()?, [10.0, 20.0, 300.0, 400.0]);
/// # Ok::<(), cortado::Error>(())
/// ```
pub struct ScaleLayer<T: Element> {
    param: ScaleParameter,
    operand: AxisOperand,
    axis: Option<Axis>,
    saved_input: SavedInput<T>,
    params: Vec<Blob<T>>,
}

impl<T: Element> ScaleLayer<T> {
    /// Creates the layer.
    pub fn new(param: &LayerParameter, cx: &LayerContext<'_>) -> Result<Self> {
        let param = param.scale_param.clone().unwrap_or_default();
        let operand = AxisOperand { axis: param.axis(), num_axes: param.num_axes() };
        let saved_input = SavedInput::new(cx.device)?;
        Ok(Self { param, operand, axis: None, saved_input, params: Vec::new() })
    }

    fn scale<'a>(&'a self, bottom: &'a [Blob<T>]) -> &'a Blob<T> {
        bottom.get(1).unwrap_or_else(|| &self.params[0])
    }

    /// Returns the bias `b`, which is the last parameter of the layer; `None` without `bias_term`.
    fn bias(&self) -> Option<&Blob<T>> {
        self.params.last().filter(|_| self.param.bias_term())
    }
}

impl<T: Element> Layer<T> for ScaleLayer<T> {
    fn kind(&self) -> &'static str {
        "Scale"
    }

    fn arity(&self) -> Arity {
        Arity::between(1..=2, 1..=1)
    }

    fn allows_in_place(&self) -> bool {
        true
    }

    fn setup(&mut self, cx: &LayerContext<'_>, bottom: &[Blob<T>]) -> Result<()> {
        let shape = match bottom.get(1) {
            Some(scale) => &scale.shape()[..],
            None => {
                let shape = self.operand.shape(bottom[0].shape())?;
                let filler = filler(&self.param.filler, Filler::Constant { value: 1.0 })?;
                self.params.push(filled_blob(cx, shape, &filler, 0)?);
                shape
            }
        };
        if self.param.bias_term() {
            let filler = filler(&self.param.bias_filler, Filler::default())?;
            self.params.push(filled_blob(cx, shape, &filler, 1)?);
        }
        Ok(())
    }

    fn reshape(&mut self, bottom: &[Blob<T>], top: &mut [Blob<T>]) -> Result<()> {
        let scale = self.scale(bottom).shape();
        let axis = self.operand.axis(bottom[0].shape(), scale)?;
        if let Some(bias) = self.bias()
            && *bias.shape() != *scale
        {
            return wrong_shape(format!(
                "bias of shape {} does not fit scale of shape {scale}",
                bias.shape()
            ));
        }
        self.axis = Some(axis);
        top[0].reshape_like(&bottom[0])?;
        self.saved_input.reshape(&bottom[0], &top[0])
    }

    fn forward(&mut self, device: &AnyDevice, bottom: &[Blob<T>], top: &[Blob<T>]) -> Result<()> {
        let (axis, scale) = (reshaped(&self.axis)?, self.scale(bottom).data()?);
        let (x, mut y) = top[0].data_mut_from(self.saved_input.save(&bottom[0], &top[0])?)?;
        match self.bias() {
            Some(bias) => {
                let bias = bias.data()?;
                device.affine(axis, x.src(), scale.view(), bias.view(), y.view_mut())
            }
            None => device.broadcast(Binary::Mul, axis, x.src(), scale.view(), y.view_mut()),
        }
    }

    fn backward(
        &mut self,
        device: &AnyDevice,
        top: &[Blob<T>],
        propagate: PropagateDown<'_>,
        bottom: &[Blob<T>],
    ) -> Result<()> {
        let axis = *reshaped(&self.axis)?;
        if let (Some(bias), Some(true)) = (self.bias(), propagate.params.last()) {
            let (dy, mut db) = (top[0].diff()?, bias.diff_mut()?);
            device.sum_to_axis(&axis, T::acc(1.0), dy.view(), db.view_mut())?;
        }
        // `beta` is 0 if the scale factor is a bottom, whose gradient is overwritten, and 1 if the
        // scale factor is a parameter, whose gradient is accumulated.
        let (propagates, beta) = match bottom.get(1) {
            Some(_) => (propagate.bottom[1], 0.0),
            None => (propagate.params[0], 1.0),
        };
        if propagates {
            let (x, dy) = (self.saved_input.input(&bottom[0], &top[0]).data()?, top[0].diff()?);
            let mut ds = self.scale(bottom).diff_mut()?;
            device.dot_to_axis(&axis, T::acc(beta), dy.view(), x.view(), ds.view_mut())?;
        }
        if propagate.bottom[0] {
            let scale = self.scale(bottom).data()?;
            let (dy, mut dx) = bottom[0].diff_mut_from(&top[0])?;
            device.broadcast(Binary::Mul, &axis, dy.src(), scale.view(), dx.view_mut())?;
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
