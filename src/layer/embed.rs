//! A learnt vector for each index.

use super::{Context, Layer, Propagate, losses, weights::Fillers};
use crate::{
    blob::Blob,
    device::Device,
    element::Element,
    error::{Error, Result},
    memory::Src,
    op::{Axis, Binary, Rows},
    proto::LayerParameter,
};

/// `y[i] = W[index[i]] + b`: weights are `input_dim` × `num_output`; the top has an axis more than
/// the indices. An index that has no row is an error.
pub struct EmbedLayer<T: Element, D: Device> {
    rows: usize,
    outputs: usize,
    fillers: Fillers,
    indices: Blob<u32, D>,
    params: Vec<Blob<T, D>>,
}

impl<T: Element, D: Device> EmbedLayer<T, D> {
    /// From the layer's parameters.
    ///
    /// # Errors
    /// [`Error::Invalid`] without positive `num_output` and `input_dim`; those of the fillers.
    pub fn new(param: &LayerParameter, cx: &Context<'_, D>) -> Result<Self> {
        let param = param.embed_param.clone().unwrap_or_default();
        if param.num_output() == 0 || param.input_dim() == 0 {
            let why = "embed_param needs positive num_output and input_dim";
            return Err(Error::Invalid(why.into()));
        }
        let (weights, bias) = (param.weight_filler.as_ref(), param.bias_filler.as_ref());
        Ok(Self {
            rows: param.input_dim() as usize,
            outputs: param.num_output() as usize,
            fillers: Fillers::new(weights, bias, param.bias_term())?,
            indices: Blob::new(cx.device, &[0])?,
            params: Vec::new(),
        })
    }

    fn op(&self) -> Rows {
        Rows { table: self.rows, width: self.outputs, count: self.indices.count() }
    }

    /// The bias along the outputs.
    fn axis(&self) -> Result<Axis> {
        Axis::new(self.indices.count(), self.outputs, 1)
    }
}

impl<T: Element, D: Device> Layer<T, D> for EmbedLayer<T, D> {
    fn kind(&self) -> &'static str {
        "Embed"
    }

    fn setup(&mut self, cx: &Context<'_, D>, _: &[Blob<T, D>]) -> Result<()> {
        self.params = self.fillers.make(cx, &[self.rows, self.outputs], self.outputs)?;
        Ok(())
    }

    fn reshape(&mut self, bottom: &[Blob<T, D>], top: &mut [Blob<T, D>]) -> Result<()> {
        let shape = bottom[0].shape();
        self.indices.reshape(shape)?;
        top[0].reshape(&[&shape[..], &[self.outputs]].concat())
    }

    fn forward(&mut self, device: &D, bottom: &[Blob<T, D>], top: &[Blob<T, D>]) -> Result<()> {
        let (given, mut y) = (bottom[0].data()?, top[0].data_mut()?);
        let (table, mut indices) = (self.params[0].data()?, self.indices.data_mut()?);
        let bound = u32::try_from(self.rows).unwrap_or(u32::MAX);
        device.to_indices(bound, given.view(), indices.view_mut())?;
        device.gather(&self.op(), table.view(), indices.view(), y.view_mut())?;
        let Some(bias) = self.params.get(1) else { return Ok(()) };
        let bias = bias.data()?;
        device.broadcast(Binary::Add, &self.axis()?, Src::InPlace, bias.view(), y.view_mut())
    }

    fn backward(
        &mut self,
        device: &D,
        top: &[Blob<T, D>],
        propagate: Propagate<'_>,
        _: &[Blob<T, D>],
    ) -> Result<()> {
        if propagate.bottom[0] {
            return Err(losses::no_gradient("indices", 0));
        }
        let dy = top[0].diff()?;
        if propagate.params[0] {
            let (indices, mut dw) = (self.indices.data()?, self.params[0].diff_mut()?);
            device.scatter_add(&self.op(), dy.view(), indices.view(), dw.view_mut())?;
        }
        if self.fillers.has_bias() && propagate.params[1] {
            let mut db = self.params[1].diff_mut()?;
            device.sum_onto(&self.axis()?, T::acc(1.0), dy.view(), db.view_mut())?;
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
