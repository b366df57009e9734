//! `y = W·x + b`, fully connected.

use super::{Context, Layer, Propagate, weights::Fillers};
use crate::{
    blob::Blob,
    device::Device,
    element::Element,
    error::{Error, Result},
    memory::Src,
    op::{Axis, Binary, Gemm, Transpose},
    proto::LayerParameter,
};

/// Fully connected layer: the axes from `axis` on are one input vector of K elements; weights are
/// N×K, or K×N if `transpose`, where N is `num_output`.
pub struct InnerProductLayer<T: Element, D: Device> {
    outputs: usize,
    axis: isize,
    transpose: bool,
    fillers: Fillers,
    /// Input vectors, and elements of one.
    rows: usize,
    inputs: usize,
    params: Vec<Blob<T, D>>,
}

impl<T: Element, D: Device> InnerProductLayer<T, D> {
    /// From the layer's parameters.
    ///
    /// # Errors
    /// [`Error::Invalid`] without a positive `num_output`; those of the fillers.
    pub fn new(param: &LayerParameter, _: &Context<'_, D>) -> Result<Self> {
        let param = param.inner_product_param.clone().unwrap_or_default();
        if param.num_output() == 0 {
            return Err(Error::Invalid("inner_product_param needs a positive num_output".into()));
        }
        let (weights, bias) = (param.weight_filler.as_ref(), param.bias_filler.as_ref());
        Ok(Self {
            outputs: param.num_output() as usize,
            axis: param.axis() as isize,
            transpose: param.transpose(),
            fillers: Fillers::new(weights, bias, param.bias_term())?,
            rows: 0,
            inputs: 0,
            params: Vec::new(),
        })
    }

    /// How the weights are read to map inputs to outputs, and back.
    fn transposes(&self) -> (Transpose, Transpose) {
        match self.transpose {
            false => (Transpose::Yes, Transpose::No),
            true => (Transpose::No, Transpose::Yes),
        }
    }
}

impl<T: Element, D: Device> Layer<T, D> for InnerProductLayer<T, D> {
    fn kind(&self) -> &'static str {
        "InnerProduct"
    }

    fn setup(&mut self, cx: &Context<'_, D>, bottom: &[Blob<T, D>]) -> Result<()> {
        let shape = bottom[0].shape();
        let inputs = shape.count_range(shape.canonical_axis(self.axis)?, shape.len())?;
        let shape = match self.transpose {
            false => [self.outputs, inputs],
            true => [inputs, self.outputs],
        };
        self.params = self.fillers.make(cx, &shape, self.outputs)?;
        self.inputs = inputs;
        Ok(())
    }

    fn reshape(&mut self, bottom: &[Blob<T, D>], top: &mut [Blob<T, D>]) -> Result<()> {
        let shape = bottom[0].shape();
        let axis = shape.canonical_axis(self.axis)?;
        let inputs = shape.count_range(axis, shape.len())?;
        if inputs != self.inputs {
            let why = format!("input vectors of {inputs} elements, weights for {}", self.inputs);
            return Err(Error::Shape(why));
        }
        self.rows = shape.count_range(0, axis)?;
        let mut shape = shape[..axis].to_vec();
        shape.push(self.outputs);
        top[0].reshape(&shape)
    }

    fn forward(&mut self, device: &D, bottom: &[Blob<T, D>], top: &[Blob<T, D>]) -> Result<()> {
        let op =
            Gemm::with(Transpose::No, self.transposes().0, self.rows, self.outputs, self.inputs);
        let (x, w) = (bottom[0].data()?, self.params[0].data()?);
        let mut y = top[0].data_mut()?;
        device.gemm(&op, x.view(), w.view(), y.view_mut())?;
        if self.fillers.has_bias() {
            let axis = Axis::new(self.rows, self.outputs, 1)?;
            let bias = self.params[1].data()?;
            device.broadcast(Binary::Add, &axis, Src::InPlace, bias.view(), y.view_mut())?;
        }
        Ok(())
    }

    fn backward(
        &mut self,
        device: &D,
        top: &[Blob<T, D>],
        propagate: Propagate<'_>,
        bottom: &[Blob<T, D>],
    ) -> Result<()> {
        let dy = top[0].diff()?;
        if propagate.params[0] {
            let (x, mut dw) = (bottom[0].data()?, self.params[0].diff_mut()?);
            let gemm = |m, n| Gemm::with(Transpose::Yes, Transpose::No, m, n, self.rows);
            if self.transpose {
                let op = gemm(self.inputs, self.outputs).accumulate();
                device.gemm(&op, x.view(), dy.view(), dw.view_mut())?;
            } else {
                let op = gemm(self.outputs, self.inputs).accumulate();
                device.gemm(&op, dy.view(), x.view(), dw.view_mut())?;
            }
        }
        if self.fillers.has_bias() && propagate.params[1] {
            let axis = Axis::new(self.rows, self.outputs, 1)?;
            let mut db = self.params[1].diff_mut()?;
            device.sum_onto(&axis, T::acc(1.0), dy.view(), db.view_mut())?;
        }
        if propagate.bottom[0] {
            let op = Gemm::with(
                Transpose::No,
                self.transposes().1,
                self.rows,
                self.inputs,
                self.outputs,
            );
            let (w, mut dx) = (self.params[0].data()?, bottom[0].diff_mut()?);
            device.gemm(&op, dy.view(), w.view(), dx.view_mut())?;
        }
        Ok(())
    }

    fn params(&self) -> &[Blob<T, D>] {
        &self.params
    }

    fn params_mut(&mut self) -> &mut [Blob<T, D>] {
        &mut self.params
    }
}
