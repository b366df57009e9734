//! Batches out of arrays that the caller gives.

use super::{Arity, Layer, LayerContext, PropagateDown};
use crate::{
    blob::Blob,
    device::Device,
    element::Element,
    error::{Error, Result},
    proto::LayerParameter,
    shape::Shape,
};

/// Hands out batches of an array of items and of their labels, in order and round and round. Tops
/// are the data, `batch_size × channels × height × width`, and the labels.
///
/// The arrays come from [`reset`](Self::reset), which a net's layer is reached for by
/// [`Net::layer_as`](crate::Net::layer_as).
pub struct MemoryDataLayer<T: Element> {
    shape: Shape,
    data: Vec<T>,
    labels: Vec<T>,
    /// The next batch's first item.
    next: usize,
}

impl<T: Element> MemoryDataLayer<T> {
    /// From the layer's parameters.
    ///
    /// # Errors
    /// [`Error::InvalidData`] unless all four extents are given and positive.
    pub fn new<D: Device>(param: &LayerParameter, _: &LayerContext<'_, D>) -> Result<Self> {
        let param = param.memory_data_param.unwrap_or_default();
        let extents = [param.batch_size(), param.channels(), param.height(), param.width()];
        let shape = Shape::new(&extents.map(|extent| extent as usize))?;
        if shape.count() == 0 {
            let what = "positive batch_size, channels, height and width";
            return Err(Error::InvalidData(format!("memory_data_param needs {what}")));
        }
        Ok(Self { shape, data: Vec::new(), labels: Vec::new(), next: 0 })
    }

    /// Takes new items and their labels, and starts with the first. They are handed out as they
    /// are: `transform_param` is for records.
    ///
    /// # Errors
    /// [`Error::Length`] unless `data` holds an item for each of `labels`; [`Error::InvalidData`] if
    /// there are none, or if they are no whole number of batches. The layer is then as it was.
    #[doc(alias = "Reset")]
    pub fn reset(&mut self, data: Vec<T>, labels: Vec<T>) -> Result<()> {
        let (items, batch) = (labels.len(), self.shape[0]);
        if items == 0 || !items.is_multiple_of(batch) {
            return Err(Error::InvalidData(format!("{items} items are no batches of {batch}")));
        }
        let want = items.saturating_mul(self.item());
        crate::error::check_len("reset", "data", want, data.len())?;
        *self = Self { shape: self.shape.clone(), data, labels, next: 0 };
        Ok(())
    }

    /// Elements of an item.
    fn item(&self) -> usize {
        self.shape[1..].iter().product()
    }
}

impl<T: Element, D: Device> Layer<T, D> for MemoryDataLayer<T> {
    fn kind(&self) -> &'static str {
        "MemoryData"
    }

    fn arity(&self) -> Arity {
        Arity::exactly(0, 2)
    }

    fn reshape(&mut self, _: &[Blob<T, D>], top: &mut [Blob<T, D>]) -> Result<()> {
        top[0].reshape(&self.shape)?;
        top[1].reshape(&self.shape[..1])
    }

    fn forward(&mut self, _: &D, _: &[Blob<T, D>], top: &[Blob<T, D>]) -> Result<()> {
        if self.labels.is_empty() {
            let how = "give it some by `MemoryDataLayer::reset`";
            return Err(Error::InvalidData(format!("the layer has no data: {how}")));
        }
        let (batch, item) = (self.shape[0], self.item());
        let items = self.next..self.next + batch;
        let data = &self.data[items.start * item..items.end * item];
        top[0].data_mut()?.host_write_only()?.copy_from_slice(data);
        top[1].data_mut()?.host_write_only()?.copy_from_slice(&self.labels[items.clone()]);
        self.next = items.end % self.labels.len();
        Ok(())
    }

    fn backward(
        &mut self,
        _: &D,
        _: &[Blob<T, D>],
        _: PropagateDown<'_>,
        _: &[Blob<T, D>],
    ) -> Result<()> {
        Ok(())
    }
}
