//! The work of the prefetching thread, which fills batches.

use super::batch::Batch;
use crate::{
    data::{
        reader::DataReader, record::Record, transform::DataTransformer, worker_thread::catch_panic,
    },
    device::AnyDevice,
    element::Element,
    error::{Error, Result},
    host::Workers,
    sync::Mutex,
};

/// The minimum number of elements per thread for which another thread pays off.
const GRAIN: usize = 1 << 16;

pub(super) struct BatchFiller {
    reader: DataReader,
    transformer: DataTransformer,
    /// A forked queue of the device for uploads, so that uploads overlap with the net's kernels.
    queue: AnyDevice,
    shape: [usize; 4],
    workers: Workers,
    grain: usize,
}

impl BatchFiller {
    /// Waits for the first record, which determines the shape of all records.
    pub(super) fn new(
        mut reader: DataReader,
        transformer: DataTransformer,
        queue: AnyDevice,
        batch: usize,
        threads: usize,
    ) -> Result<Self> {
        let first = reader.records()?.first().map(|record| transformer.output_shape(record));
        let shape = first.unwrap_or_else(|| Err(Error::InvalidData("no records".into())));
        let number = reader.next_record();
        let [channels, height, width] =
            shape.map_err(|error| reader.locate_error(number, error))?;
        let shape = [batch, channels, height, width];
        let size = shape[1..].iter().fold(1, |size: usize, &extent| size.saturating_mul(extent));
        let grain = GRAIN.div_ceil(size.max(1));
        let workers = match batch <= grain {
            true => Workers::sequential(),
            false => Workers::new(threads)?,
        };
        Ok(Self { reader, transformer, queue, shape, workers, grain })
    }

    /// Returns the batch size, the number of channels, the height and the width.
    pub(super) fn shape(&self) -> [usize; 4] {
        self.shape
    }

    /// Sets the number of threads, and the number of records that each thread transforms at a time.
    #[cfg(test)]
    pub(super) fn set_workers(&mut self, grain: usize, workers: Workers) {
        (self.grain, self.workers) = (grain, workers);
    }

    /// Overwrites `batch` with the next records. Returns `false` if another thread has stopped the
    /// reader.
    pub(super) fn fill<T: Element>(&mut self, batch: &Batch<T>) -> Result<bool> {
        {
            let (mut data, mut label) = (batch.data.data_mut()?, batch.label.data_mut()?);
            let (mut data, mut label) = (data.host_write_only()?, label.host_write_only()?);
            let size = self.shape[1..].iter().product::<usize>();
            while !label.is_empty() {
                if !self.reader.wait_for_run()? {
                    return Ok(false);
                }
                let count = self.reader.records()?.len().min(label.len());
                let (images, labels);
                (images, data) = data.split_at_mut(count * size);
                (labels, label) = label.split_at_mut(count);
                self.transform(images, labels)?;
                self.reader.consume(count);
            }
        }
        let upload = || {
            batch.data.data()?.prefetch(&self.queue)?;
            batch.label.data()?.prefetch(&self.queue)
        };
        upload()
            .map(|()| true)
            .map_err(|error| error.context(format!("{}, uploading a batch", self.reader.source())))
    }

    /// Transforms the next `labels.len()` records on several threads.
    fn transform<T: Element>(&mut self, images: &mut [T], labels: &mut [T]) -> Result<()> {
        let (number, stride) = (self.reader.next_record(), self.reader.stride());
        let size = self.shape[1..].iter().product::<usize>();
        let records = self.reader.records()?;
        let (transformer, shape, grain) = (&self.transformer, self.shape, self.grain);
        // The index and the error of the first failing record of the batch.
        let first_error: Mutex<Option<(usize, Error)>> = Mutex::new(None);
        self.workers.for_each_chunk_pair(
            (labels, grain),
            (images, grain * size),
            |chunk, labels, images| {
                for (i, label) in labels.iter_mut().enumerate() {
                    let (index, image) = (chunk * grain + i, &mut images[i * size..][..size]);
                    let record = &records[index];
                    let number = number + index as u64 * stride;
                    match catch_panic(|| transform(transformer, number, record, shape, image)) {
                        Ok(()) => *label = T::from_f64(record.label().into()),
                        Err(error) => {
                            let mut first_error = first_error.lock();
                            if first_error.as_ref().is_none_or(|(first, _)| index < *first) {
                                *first_error = Some((index, error));
                            }
                            return;
                        }
                    }
                }
            },
        );
        match first_error.lock().take() {
            None => Ok(()),
            Some((index, error)) => {
                Err(self.reader.locate_error(number + index as u64 * stride, error))
            }
        }
    }
}

fn transform<T: Element>(
    transformer: &DataTransformer,
    number: u64,
    record: &Record,
    shape: [usize; 4],
    image: &mut [T],
) -> Result<()> {
    let got = transformer.output_shape(record)?;
    if got != shape[1..] {
        let [c, h, w] = got;
        let [_, channels, height, width] = shape;
        let reason =
            format!("expected shape {channels} x {height} x {width}, found {c} x {h} x {w}");
        return Err(Error::Shape(reason));
    }
    transformer.transform(number, record, image)
}
