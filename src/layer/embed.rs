//! The Embed layer, which maps each index to a learned vector.

use super::{prelude::*, weight_bias::WeightsAndBias};
use crate::op::{Axis, RowIndexing};

/// `y[i] = W[index[i]] + b`, where W is `input_dim` × `num_output`. The bottom holds the indices,
/// and the top has one more axis than the bottom. The forward pass fails if an index is not less
/// than `input_dim`.
///
/// ```
/// use cortado::{prelude::*, proto::parse_text};
///
/// let text = r#"
///     layer { type: "Input" top: "words" input_param { shape { dim: 2 } } }
///     layer { type: "Embed" bottom: "words" top: "vectors"
///       embed_param { input_dim: 3 num_output: 2 bias_term: false } }"#;
/// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?)?;
/// net.blob("words").unwrap().data_mut()?.host_mut()?.copy_from_slice(&[2.0, 0.0]);
/// let weights = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0];
/// net.params()[0].blob().data_mut()?.host_mut()?.copy_from_slice(&weights);
/// net.forward()?;
/// assert_eq!(net.blob("vectors").unwrap().to_vec()?, [4.0, 5.0, 0.0, 1.0]);
/// # Ok::<(), cortado::Error>(())
/// ```
pub struct EmbedLayer<T: Element> {
    rows: usize,
    indices: Blob<u32>,
    weights: WeightsAndBias<T>,
}

impl<T: Element> EmbedLayer<T> {
    /// Creates the layer.
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`] if `num_output` or `input_dim` is 0, or an error if a
    /// filler's definition is invalid.
    pub fn new(param: &LayerParameter, cx: &LayerContext<'_>) -> Result<Self> {
        let param = param.embed_param.clone().unwrap_or_default();
        if param.input_dim() == 0 {
            return invalid("embed_param: input_dim must be positive");
        }
        let fillers = [&param.weight_filler, &param.bias_filler];
        Ok(Self {
            rows: param.input_dim() as usize,
            indices: Blob::new(cx.device, &[0])?,
            weights: WeightsAndBias::new(
                "embed_param",
                param.num_output(),
                fillers,
                param.bias_term(),
            )?,
        })
    }

    fn op(&self) -> RowIndexing {
        RowIndexing { table: self.rows, width: self.weights.outputs(), count: self.indices.count() }
    }

    fn axis(&self) -> Result<Axis> {
        Axis::new(self.indices.count(), self.weights.outputs(), 1)
    }
}

impl<T: Element> Layer<T> for EmbedLayer<T> {
    fn kind(&self) -> &'static str {
        "Embed"
    }

    fn setup(&mut self, cx: &LayerContext<'_>, _: &[Blob<T>]) -> Result<()> {
        let shape = [self.rows, self.weights.outputs()];
        self.weights.create(cx, &shape)
    }

    fn reshape(&mut self, bottom: &[Blob<T>], top: &mut [Blob<T>]) -> Result<()> {
        let shape = bottom[0].shape();
        self.indices.reshape(shape)?;
        top[0].reshape(&[&shape[..], &[self.weights.outputs()]].concat())
    }

    fn forward(&mut self, device: &AnyDevice, bottom: &[Blob<T>], top: &[Blob<T>]) -> Result<()> {
        let (index, mut y) = (bottom[0].data()?, top[0].data_mut()?);
        let (table, mut indices) = (self.weights.weights()?.data()?, self.indices.data_mut()?);
        let bound = u32::try_from(self.rows).unwrap_or(u32::MAX);
        device.to_indices(bound, index.view(), indices.view_mut())?;
        device.gather(&self.op(), table.view(), indices.view(), y.view_mut())?;
        self.weights.add_bias(device, &self.axis()?, y.view_mut())
    }

    fn backward(
        &mut self,
        device: &AnyDevice,
        top: &[Blob<T>],
        propagate: PropagateDown<'_>,
        _: &[Blob<T>],
    ) -> Result<()> {
        check_no_gradient(propagate.bottom, 0, "indices")?;
        let dy = top[0].diff()?;
        if propagate.params[0] {
            let (indices, mut dw) = (self.indices.data()?, self.weights.weights()?.diff_mut()?);
            device.scatter_add(&self.op(), dy.view(), indices.view(), dw.view_mut())?;
        }
        self.weights.add_bias_gradient(device, &self.axis()?, dy.view(), propagate)
    }

    fn params(&self) -> &[Blob<T>] {
        self.weights.blobs()
    }

    fn params_mut(&mut self) -> &mut [Blob<T>] {
        self.weights.blobs_mut()
    }
}
