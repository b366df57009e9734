//! A learnt vector for each index.

use super::{Layer, LayerContext, PropagateDown, loss_common, weight_bias::Weights};
use crate::{
    blob::Blob,
    device::Device,
    element::Element,
    error::{Error, Result},
    op::{Axis, RowIndexing},
    proto::LayerParameter,
};

/// `y[i] = W[index[i]] + b`: weights are `input_dim` × `num_output`; the top has an axis more than
/// the indices. An index that has no row is an error.
pub struct EmbedLayer<T: Element, D: Device> {
    rows: usize,
    indices: Blob<u32, D>,
    weights: Weights<T, D>,
}

impl<T: Element, D: Device> EmbedLayer<T, D> {
    /// From the layer's parameters.
    ///
    /// # Errors
    /// [`Error::InvalidData`] without positive `num_output` and `input_dim`; those of the fillers.
    pub fn new(param: &LayerParameter, cx: &LayerContext<'_, D>) -> Result<Self> {
        let param = param.embed_param.clone().unwrap_or_default();
        if param.input_dim() == 0 {
            return Err(Error::InvalidData("embed_param needs a positive input_dim".into()));
        }
        let fillers = [&param.weight_filler, &param.bias_filler];
        Ok(Self {
            rows: param.input_dim() as usize,
            indices: Blob::new(cx.device, &[0])?,
            weights: Weights::new("embed_param", param.num_output(), fillers, param.bias_term())?,
        })
    }

    fn op(&self) -> RowIndexing {
        RowIndexing { table: self.rows, width: self.weights.outputs(), count: self.indices.count() }
    }

    /// The bias along the outputs.
    fn axis(&self) -> Result<Axis> {
        Axis::new(self.indices.count(), self.weights.outputs(), 1)
    }
}

impl<T: Element, D: Device> Layer<T, D> for EmbedLayer<T, D> {
    fn kind(&self) -> &'static str {
        "Embed"
    }

    fn setup(&mut self, cx: &LayerContext<'_, D>, _: &[Blob<T, D>]) -> Result<()> {
        let shape = [self.rows, self.weights.outputs()];
        self.weights.make(cx, &shape)
    }

    fn reshape(&mut self, bottom: &[Blob<T, D>], top: &mut [Blob<T, D>]) -> Result<()> {
        let shape = bottom[0].shape();
        self.indices.reshape(shape)?;
        top[0].reshape(&[&shape[..], &[self.weights.outputs()]].concat())
    }

    fn forward(&mut self, device: &D, bottom: &[Blob<T, D>], top: &[Blob<T, D>]) -> Result<()> {
        let (given, mut y) = (bottom[0].data()?, top[0].data_mut()?);
        let (table, mut indices) = (self.weights.weights()?.data()?, self.indices.data_mut()?);
        let bound = u32::try_from(self.rows).unwrap_or(u32::MAX);
        device.to_indices(bound, given.view(), indices.view_mut())?;
        device.gather(&self.op(), table.view(), indices.view(), y.view_mut())?;
        self.weights.add_bias(device, &self.axis()?, y.view_mut())
    }

    fn backward(
        &mut self,
        device: &D,
        top: &[Blob<T, D>],
        propagate: PropagateDown<'_>,
        _: &[Blob<T, D>],
    ) -> Result<()> {
        if propagate.bottom[0] {
            return Err(loss_common::no_gradient("indices", 0));
        }
        let dy = top[0].diff()?;
        if propagate.params[0] {
            let (indices, mut dw) = (self.indices.data()?, self.weights.weights()?.diff_mut()?);
            device.scatter_add(&self.op(), dy.view(), indices.view(), dw.view_mut())?;
        }
        self.weights.add_bias_gradient(device, &self.axis()?, dy.view(), propagate)
    }

    fn params(&self) -> &[Blob<T, D>] {
        self.weights.blobs()
    }

    fn params_mut(&mut self) -> &mut [Blob<T, D>] {
        self.weights.blobs_mut()
    }
}
