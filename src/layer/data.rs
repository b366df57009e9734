//! Batches out of a source of records.

use super::{Arity, Context, Layer, Propagate};
use crate::{
    blob::Blob,
    data::{DataTransformer, Prefetcher},
    device::Device,
    element::Element,
    error::{Error, Result},
    proto::LayerParameter,
};
use std::time::Duration;

/// Hands out batches of a source, prepared ahead by a thread: tops are the data and, if there is
/// a second, the labels.
///
/// `source` is the path of a database, or names a scheme, as [`Sources`](crate::data::Sources) has
/// it. What kind of database it is the path tells, whatever `backend` says.
pub struct DataLayer<T: Element, D: Device> {
    prefetcher: Prefetcher<T, D>,
}

impl<T: Element, D: Device> DataLayer<T, D> {
    /// From the layer's parameters; opens the source and starts the thread.
    ///
    /// # Errors
    /// Those of the source, of the first record and of `transform_param`.
    pub fn new(param: &LayerParameter, cx: &Context<'_, D>) -> Result<Self> {
        let data = param.data_param.clone().unwrap_or_default();
        let transform = param.transform_param.clone().unwrap_or_default();
        if data.source().is_empty() {
            return Err(Error::Invalid("data_param needs a source".into()));
        }
        let transformer = DataTransformer::new(&transform, cx.phase, cx.key)?;
        let mut source = cx.sources.open(data.source())?;
        if data.rand_skip() > 0 {
            let [word, ..] = cx.key.named("rand_skip").words(0);
            source.skip(u64::from(word % data.rand_skip()))?;
        }
        let (batch, depth) = (data.batch_size() as usize, data.prefetch() as usize);
        Ok(Self { prefetcher: Prefetcher::new(cx.device, source, transformer, batch, depth)? })
    }

    /// How long the net has waited for data.
    pub fn waited(&self) -> Duration {
        self.prefetcher.waited()
    }
}

impl<T: Element, D: Device> Layer<T, D> for DataLayer<T, D> {
    fn kind(&self) -> &'static str {
        "Data"
    }

    fn arity(&self) -> Arity {
        Arity::between(0..=0, 1..=2)
    }

    fn reshape(&mut self, _: &[Blob<T, D>], top: &mut [Blob<T, D>]) -> Result<()> {
        let shape = self.prefetcher.shape();
        top[0].reshape(&shape)?;
        top.get_mut(1).map_or(Ok(()), |label| label.reshape(&shape[..1]))
    }

    fn forward(&mut self, _: &D, _: &[Blob<T, D>], top: &[Blob<T, D>]) -> Result<()> {
        let batch = self.prefetcher.next()?;
        let taken = top[0].swap_data(&batch.data);
        let taken = taken.and_then(|()| top.get(1).map_or(Ok(()), |l| l.swap_data(&batch.label)));
        self.prefetcher.recycle(batch);
        taken
    }

    fn backward(
        &mut self,
        _: &D,
        _: &[Blob<T, D>],
        _: Propagate<'_>,
        _: &[Blob<T, D>],
    ) -> Result<()> {
        Ok(())
    }
}
