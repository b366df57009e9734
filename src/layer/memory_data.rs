//! The MemoryData layer, which reads batches from arrays that the caller supplies.

use super::{position, prelude::*};
use crate::{proto::LayerState, shape::Shape};

/// A layer whose tops hold batches from an array of items and an array of labels. The layer reads
/// both arrays in order, and starts over after the last item. The first top holds the items as
/// `batch_size × channels × height × width`, and the second top holds the labels.
///
/// [`reset`](Self::reset) sets the arrays of items and labels.
/// [`Net::layer_as`](crate::Net::layer_as) gives access to the `MemoryDataLayer` of a net.
///
/// ```
/// use cortado::{layer::MemoryDataLayer, prelude::*, proto::parse_text};
///
/// let text = r#"layer { name: "data" type: "MemoryData" top: "x" top: "label"
///     memory_data_param { batch_size: 1 channels: 2 height: 1 width: 1 } }"#;
/// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?)?;
/// let data = net.layer_as::<MemoryDataLayer<f32>>("data").unwrap();
/// data.reset(vec![1.0, 2.0, 3.0, 4.0], vec![7.0, 8.0])?; // two items
/// net.forward_layers(0..1)?;
/// assert_eq!(net.blob("x").unwrap().to_vec()?, [1.0, 2.0]);
/// # Ok::<(), cortado::Error>(())
/// ```
pub struct MemoryDataLayer<T: Element> {
    shape: Shape,
    data: Vec<T>,
    labels: Vec<T>,
    next: usize,
}

impl<T: Element> MemoryDataLayer<T> {
    /// Creates the layer.
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`] unless `batch_size`, `channels`, `height` and `width` are
    /// positive.
    pub fn new(param: &LayerParameter, _: &LayerContext<'_>) -> Result<Self> {
        let param = param.memory_data_param.unwrap_or_default();
        let extents = [param.batch_size(), param.channels(), param.height(), param.width()];
        let shape = Shape::new(&extents.map(|extent| extent as usize))?;
        if shape.count() == 0 {
            let reason = "batch_size, channels, height and width must be positive";
            return invalid(format!("memory_data_param: {reason}"));
        }
        Ok(Self { shape, data: Vec::new(), labels: Vec::new(), next: 0 })
    }

    /// Replaces the array of items and the array of labels. The next batch starts with the first
    /// item of `data`. The layer ignores `transform_param`, because `transform_param` applies only
    /// to layers that read records.
    ///
    /// # Errors
    /// Returns [`Error::Length`] unless `data` holds one item per label, and [`Error::InvalidData`]
    /// unless the items form one or more whole batches. If `reset` fails, the layer keeps its
    /// previous arrays.
    #[doc(alias = "Reset")]
    pub fn reset(&mut self, data: Vec<T>, labels: Vec<T>) -> Result<()> {
        let (items, batch) = (labels.len(), self.shape[0]);
        if items == 0 || !items.is_multiple_of(batch) {
            return invalid(format!(
                "reset: expected one or more batches of {batch}, found {items} items"
            ));
        }
        let expected = items.saturating_mul(self.item_len());
        crate::error::check_len("reset", "data", expected, data.len())?;
        *self = Self { shape: self.shape.clone(), data, labels, next: 0 };
        Ok(())
    }

    fn item_len(&self) -> usize {
        self.shape[1..].iter().product()
    }
}

impl<T: Element> Layer<T> for MemoryDataLayer<T> {
    fn kind(&self) -> &'static str {
        "MemoryData"
    }

    fn arity(&self) -> Arity {
        Arity::exactly(0, 2)
    }

    fn reshape(&mut self, _: &[Blob<T>], top: &mut [Blob<T>]) -> Result<()> {
        top[0].reshape(&self.shape)?;
        top[1].reshape(&self.shape[..1])
    }

    fn state(&self) -> Result<Option<LayerState>> {
        position::state(self.next as u64)
    }

    /// Moves to the item at the position in `state`. Has no effect if the caller has not set the
    /// arrays with [`reset`](MemoryDataLayer::reset).
    fn set_state(&mut self, state: &LayerState) -> Result<()> {
        let (position, items) = (position::of(state)?, self.labels.len() as u64);
        if items == 0 {
            return Ok(());
        }
        if position >= items || !position.is_multiple_of(self.shape[0] as u64) {
            let batch = self.shape[0];
            return invalid(format!(
                "position {position} is not the start of a batch of {batch} among {items} items"
            ));
        }
        self.next = position as usize;
        Ok(())
    }

    fn forward(&mut self, _: &AnyDevice, _: &[Blob<T>], top: &[Blob<T>]) -> Result<()> {
        if self.labels.is_empty() {
            return invalid("the layer has no data; set it with `MemoryDataLayer::reset`");
        }
        let (batch, item_len) = (self.shape[0], self.item_len());
        let items = self.next..self.next + batch;
        let data = &self.data[items.start * item_len..items.end * item_len];
        top[0].data_mut()?.host_write_only()?.copy_from_slice(data);
        top[1].data_mut()?.host_write_only()?.copy_from_slice(&self.labels[items.clone()]);
        self.next = items.end % self.labels.len();
        Ok(())
    }
}
