//! The Bias layer: `y = x + b`.

use super::{
    axis_operand::AxisOperand,
    prelude::*,
    weight_bias::{filled_blob, filler},
};
use crate::{
    blob::SrcGuard,
    filler::Filler,
    op::{Axis, Binary},
    proto::BiasParameter,
};

/// `y = x + b`, where `b` covers some axes of `x` and is broadcast along the other axes. The bias
/// `b` is a learned parameter, or the second bottom if the layer has two bottoms.
///
/// ```
/// use cortado::{prelude::*, proto::parse_text};
///
/// let text = r#"
///     layer { type: "Input" top: "x" input_param { shape { dim: 2 dim: 3 } } }
///     layer { type: "Input" top: "b" input_param { shape { dim: 3 } } }
///     layer { type: "Bias" bottom: "x" bottom: "b" top: "y" bias_param { axis: 1 } }"#;
/// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?)?;
/// net.blob("x").unwrap().data_mut()?.host_mut()?.copy_from_slice(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
/// net.blob("b").unwrap().data_mut()?.host_mut()?.copy_from_slice(&[10.0, 20.0, 30.0]);
/// net.forward()?;
/// assert_eq!(net.blob("y").unwrap().to_vec()?, [11.0, 22.0, 33.0, 14.0, 25.0, 36.0]);
/// # Ok::<(), cortado::Error>(())
/// ```
pub struct BiasLayer<T: Element> {
    param: BiasParameter,
    operand: AxisOperand,
    axis: Option<Axis>,
    params: Vec<Blob<T>>,
}

impl<T: Element> BiasLayer<T> {
    /// Creates the layer.
    pub fn new(param: &LayerParameter, _: &LayerContext<'_>) -> Result<Self> {
        let param = param.bias_param.clone().unwrap_or_default();
        let operand = AxisOperand { axis: param.axis(), num_axes: param.num_axes() };
        Ok(Self { param, operand, axis: None, params: Vec::new() })
    }
}

impl<T: Element> Layer<T> for BiasLayer<T> {
    fn kind(&self) -> &'static str {
        "Bias"
    }

    fn arity(&self) -> Arity {
        Arity::between(1..=2, 1..=1)
    }

    fn allows_in_place(&self) -> bool {
        true
    }

    fn setup(&mut self, cx: &LayerContext<'_>, bottom: &[Blob<T>]) -> Result<()> {
        if bottom.len() == 1 {
            let filler = filler(&self.param.filler, Filler::default())?;
            let shape = self.operand.shape(bottom[0].shape())?;
            self.params = vec![filled_blob(cx, shape, &filler, 0)?];
        }
        Ok(())
    }

    fn reshape(&mut self, bottom: &[Blob<T>], top: &mut [Blob<T>]) -> Result<()> {
        let b = bottom.get(1).unwrap_or_else(|| &self.params[0]);
        self.axis = Some(self.operand.axis(bottom[0].shape(), b.shape())?);
        top[0].reshape_like(&bottom[0])
    }

    fn forward(&mut self, device: &AnyDevice, bottom: &[Blob<T>], top: &[Blob<T>]) -> Result<()> {
        let b = bottom.get(1).unwrap_or_else(|| &self.params[0]).data()?;
        let (x, mut y) = top[0].data_mut_from(&bottom[0])?;
        device.broadcast(Binary::Add, reshaped(&self.axis)?, x.src(), b.view(), y.view_mut())
    }

    fn backward(
        &mut self,
        device: &AnyDevice,
        top: &[Blob<T>],
        propagate: PropagateDown<'_>,
        bottom: &[Blob<T>],
    ) -> Result<()> {
        let axis = *reshaped(&self.axis)?;
        match bottom.get(1) {
            Some(b) if propagate.bottom[1] => {
                let (dy, mut db) = (top[0].diff()?, b.diff_mut()?);
                device.sum_to_axis(&axis, T::acc(0.0), dy.view(), db.view_mut())?;
            }
            None if propagate.params[0] => {
                let (dy, mut db) = (top[0].diff()?, self.params[0].diff_mut()?);
                device.sum_to_axis(&axis, T::acc(1.0), dy.view(), db.view_mut())?;
            }
            _ => {}
        }
        if propagate.bottom[0]
            && let (SrcGuard::Other(dy), mut dx) = bottom[0].diff_mut_from(&top[0])?
        {
            device.copy(dy.view(), dx.view_mut())?;
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
