//! Batches out of a source of records.

use super::{Arity, Layer, LayerContext, PropagateDown};
use crate::{
    blob::Blob,
    data::{Color, DataReader, DataTransformer, PrefetchOptions, Prefetcher, Source},
    device::Device,
    element::Element,
    error::{Error, Result},
    proto::{LayerParameter, TransformationParameter},
};
use std::time::Duration;

/// Hands out batches of a source, read and prepared ahead by threads: tops are the data and, if
/// there is a second, the labels.
///
/// `source` is the path of a database, or names a scheme, as [`SourceRegistry`](crate::data::Sources) has
/// it. What kind of database it is the path tells, whatever `backend` says.
pub struct DataLayer<T: Element, D: Device> {
    kind: &'static str,
    prefetcher: Prefetcher<T, D>,
}

/// How a source's records are taken: fields of the layer's parameters.
pub(super) struct BatchParams {
    pub(super) batch_size: u32,
    pub(super) prefetch: u32,
    pub(super) rand_skip: u32,
}

impl<T: Element, D: Device> DataLayer<T, D> {
    /// From the layer's parameters; opens the source and starts the thread.
    ///
    /// # Errors
    /// Those of the source, of the first record and of `transform_param`.
    pub fn new(param: &LayerParameter, cx: &LayerContext<'_, D>) -> Result<Self> {
        let data = param.data_param.clone().unwrap_or_default();
        let transform = param.transform_param.clone().unwrap_or_default();
        if data.source().is_empty() {
            return Err(Error::InvalidData("data_param needs a source".into()));
        }
        let mut source = cx.sources.open(data.source())?;
        source.set_color(Color::forced(&transform)?);
        let taken = BatchParams {
            batch_size: data.batch_size(),
            prefetch: data.prefetch(),
            rand_skip: data.rand_skip(),
        };
        Self::of("Data", source, &transform, taken, cx)
    }

    /// Of a source, for the layer type `kind`.
    pub(super) fn of(
        kind: &'static str,
        source: Box<dyn Source>,
        transform: &TransformationParameter,
        taken: BatchParams,
        cx: &LayerContext<'_, D>,
    ) -> Result<Self> {
        let transformer = DataTransformer::new(transform, cx.phase, cx.key)?;
        let skip = match taken.rand_skip {
            0 => 0,
            most => cx.key.named_child("rand_skip").words(0)[0] % most,
        };
        let batches = PrefetchOptions {
            size: taken.batch_size as usize,
            depth: taken.prefetch as usize,
            threads: cx.device.host_workers().count(),
        };
        let reader = DataReader::new(source, skip.into(), batches.size.clamp(1, LONGEST_RUN))?;
        let prefetcher = Prefetcher::new(cx.device, reader, transformer, batches)?;
        Ok(Self { kind, prefetcher })
    }
}

/// Batches prepared ahead where the parameters do not say.
pub(super) const PREFETCH: u32 = 4;
/// Most records that are handed from thread to thread at once.
const LONGEST_RUN: usize = 64;

impl<T: Element, D: Device> Layer<T, D> for DataLayer<T, D> {
    fn kind(&self) -> &'static str {
        self.kind
    }

    fn arity(&self) -> Arity {
        Arity::between(0..=0, 1..=2)
    }

    fn data_wait_time(&self) -> Option<Duration> {
        Some(self.prefetcher.wait_time())
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
        _: PropagateDown<'_>,
        _: &[Blob<T, D>],
    ) -> Result<()> {
        Ok(())
    }
}
