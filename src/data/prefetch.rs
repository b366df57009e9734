//! Prefetching of batches: a thread prepares each batch before the net needs the batch.

mod batch;
mod worker;

pub use batch::Batch;

use super::{
    queue::QueueError,
    queue_pair::QueuePair,
    reader::DataReader,
    transform::DataTransformer,
    worker_thread::{JoinOnDrop, WorkerError, catch_panic},
};
use crate::{
    device::AnyDevice,
    element::Element,
    error::{Error, Result},
    kernel::traits::*,
    memory::trace::{self, Wait, Work},
};
use std::{
    fmt, iter,
    sync::Arc,
    time::{Duration, Instant},
};
use worker::BatchFiller;

/// The batch size, the number of batches and the number of threads of a [`Prefetcher`].
///
/// ```
/// use cortado::data::PrefetchOptions;
///
/// // The net computes on one batch of 64 records while a thread fills a second batch.
/// let options = PrefetchOptions { size: 64, depth: 2, threads: 1 };
/// let all_threads = PrefetchOptions { threads: 0, ..options };
/// assert_eq!(all_threads.size, 64);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrefetchOptions {
    /// The number of records in a batch.
    pub size: usize,
    /// The number of batches prepared ahead, at most 1024.
    pub depth: usize,
    /// The number of threads that transform the records of a batch. 0 stands for the number of
    /// hardware threads. Batches are bit-identical for any number of threads.
    pub threads: usize,
}

/// A thread that transforms records and uploads them while the net computes on earlier batches.
///
/// Batch j holds `size` records of the reader, starting at record j · `size`. Several threads
/// transform the records of a large batch. The caller gets a batch from [`next`](Self::next), and
/// returns the batch for reuse with [`recycle`](Self::recycle).
///
/// The prefetching thread ends at its first error, or when the prefetcher is dropped. Dropping the
/// prefetcher joins the prefetching thread. If the prefetching thread failed and
/// [`next`](Self::next) has not returned the error, dropping the prefetcher logs the error.
///
/// ```
/// use cortado::data::{DataReader, DataTransformer, PrefetchOptions, Prefetcher, SourceRegistry};
/// use cortado::{op::RngKey, prelude::*, proto::Phase};
///
/// let reader = DataReader::new(SourceRegistry::default().open("digits:test?count=100")?, 0, 16)?;
/// let transformer = DataTransformer::new(&Default::default(), Phase::Test, RngKey::new(1))?;
/// let options = PrefetchOptions { size: 25, depth: 2, threads: 1 };
/// let device = AnyDevice::new(&CpuDevice::new());
/// let mut prefetcher = Prefetcher::<f32>::new(&device, reader, transformer, options)?;
/// let batch = prefetcher.next()?;
/// assert_eq!((batch.data.shape()[0], batch.label.count()), (25, 25));
/// prefetcher.recycle(batch);
/// # Ok::<(), cortado::Error>(())
/// ```
#[doc(alias = "BasePrefetchingDataLayer")]
pub struct Prefetcher<T: Element> {
    device: AnyDevice,
    shared: Arc<Shared<T>>,
    stop_reader: Box<dyn Fn() + Send + Sync>,
    shape: [usize; 4],
    depth: usize,
    outstanding: usize,
    /// The number of the first record of the next batch.
    next_record: u64,
    /// The difference between the numbers of the first records of successive batches.
    batch_step: u64,
    wait_time: Duration,
    threads: usize,
    /// The handle of the prefetching thread. Dropping the handle joins the thread, after `stop` has
    /// closed the queues.
    thread: Option<JoinOnDrop>,
}

struct Shared<T: Element> {
    name: String,
    batches: QueuePair<Batch<T>>,
    /// The error that ended the prefetching thread; empty after `next` has returned the error.
    error: WorkerError,
}

/// The maximum number of batches prepared ahead. Preparing more batches would not reduce waits, but
/// would use more memory.
const MAX_DEPTH: usize = 1024;
/// The time for which [`Prefetcher::next`] waits for data before it logs the wait.
const SLOW_WAIT: Duration = Duration::from_secs(1);

impl<T: Element> Prefetcher<T> {
    /// Waits for the first record, which determines the shape of all records, and starts the
    /// prefetching thread.
    ///
    /// # Errors
    /// Returns [`Error::InvalidInput`] if `size` is 0, `depth` is not in 1 to 1024, or a thread
    /// cannot be started. Returns the error of reading the first record, with the source and the
    /// record number. Returns any error from [`Blob::new`](crate::Blob::new) and
    /// [`Memory::fork_queue`](crate::Memory::fork_queue).
    pub fn new(
        device: &AnyDevice,
        reader: DataReader,
        transformer: DataTransformer,
        options: PrefetchOptions,
    ) -> Result<Self> {
        let PrefetchOptions { size, depth, threads } = options;
        if size == 0 {
            return Err(Error::invalid_input("data_param", "`batch_size` is 0"));
        }
        if !(1..=MAX_DEPTH).contains(&depth) {
            let reason = format!("`prefetch` must be in 1 to {MAX_DEPTH}, found {depth}");
            return Err(Error::invalid_input("data_param", reason));
        }
        let (name, stop_reader) = (reader.source().to_owned(), Box::new(reader.stop_function()));
        let (next_record, batch_step) = (reader.next_record(), reader.stride() * size as u64);
        let filler = BatchFiller::new(reader, transformer, device.fork_queue()?, size, threads)?;
        let shape = filler.shape();
        let batches: Result<Vec<_>> = (0..depth).map(|_| Batch::new(device, shape)).collect();
        let (shared, thread) = Shared::start(name, batches?, filler)?;
        Ok(Self {
            device: device.clone(),
            shared,
            stop_reader,
            shape,
            depth,
            outstanding: 0,
            next_record,
            batch_step,
            wait_time: Duration::ZERO,
            threads,
            thread: Some(thread),
        })
    }

    /// Drops the previous reader and the prefetched batches, and continues with the records of
    /// `reader`. Reuses the memory of the batches.
    ///
    /// # Errors
    /// Returns [`Error::Shape`] if the transformed records of `reader` have a different shape from
    /// those of the previous reader, and any error from [`new`](Self::new). If the first record
    /// cannot be read or has a different shape, the prefetcher keeps its previous reader.
    pub fn restart(&mut self, reader: DataReader, transformer: DataTransformer) -> Result<()> {
        let (name, stop_reader) = (reader.source().to_owned(), Box::new(reader.stop_function()));
        let (next_record, batch_step) =
            (reader.next_record(), reader.stride() * self.shape[0] as u64);
        let queue = self.device.fork_queue()?;
        let filler = BatchFiller::new(reader, transformer, queue, self.shape[0], self.threads)?;
        if filler.shape() != self.shape {
            let (expected, found) = (self.shape, filler.shape());
            let reason = format!("expected batches of shape {expected:?}, found {found:?}");
            return Err(Error::Shape(format!("{name}: {reason}")));
        }
        self.stop();
        let old_batches = &self.shared.batches;
        let mut batches: Vec<_> =
            iter::from_fn(|| old_batches.free.try_pop().or_else(|| old_batches.full.try_pop()))
                .collect();
        while batches.len() + self.outstanding < self.depth {
            batches.push(Batch::new(&self.device, self.shape)?);
        }
        let (shared, thread) = Shared::start(name, batches, filler)?;
        (self.shared, self.thread, self.stop_reader) = (shared, Some(thread), stop_reader);
        (self.next_record, self.batch_step) = (next_record, batch_step);
        Ok(())
    }

    /// Stops the reader, and stops and joins the prefetching thread.
    fn stop(&mut self) {
        self.shared.batches.close();
        (self.stop_reader)();
        self.thread = None;
    }

    /// Returns the number of the first record of the next batch, as [`DataReader::next_record`]
    /// counts records.
    pub fn next_record(&self) -> u64 {
        self.next_record
    }

    /// Returns the number of the first record of the batch that follows the next `batches` batches.
    pub(crate) fn record_after(&self, batches: u64) -> u64 {
        self.next_record.saturating_add(self.batch_step.saturating_mul(batches))
    }

    /// Returns the shape of a batch's data: batch, channels, height, width.
    pub fn shape(&self) -> [usize; 4] {
        self.shape
    }

    /// Returns the name of the source.
    pub fn source(&self) -> &str {
        &self.shared.name
    }

    /// Waits for and returns the next batch, whose blobs are valid on host and device.
    ///
    /// If the caller holds all batches of the prefetcher, `next` allocates another batch. A batch
    /// that the caller does not recycle costs memory, but blocks no thread.
    ///
    /// # Errors
    /// Returns the error or panic that ended the prefetching thread, with the source and the record
    /// number. After an error, every later call of `next` fails, too.
    #[allow(clippy::should_implement_trait)] // not an `Iterator`, because the batches never end
    pub fn next(&mut self) -> Result<Batch<T>> {
        let batches = &self.shared.batches;
        if self.outstanding == self.depth {
            let batch = Batch::new(&self.device, self.shape)?;
            // If an error has ended the prefetching thread, the push fails, and `next` returns the
            // error of the thread.
            let _ = batches.free.push(batch);
            self.outstanding -= 1;
        }
        let (start, span) = (Instant::now(), trace::start());
        let batch = match batches.full.pop_timeout(SLOW_WAIT) {
            Ok(batch) => Some(batch),
            Err(QueueError::Closed) => None,
            Err(QueueError::TimedOut) => {
                batches.full.pop_logging(&format!("Waiting for data of {}", self.shared.name))
            }
        };
        span.finish(|| Work::Wait(Wait::Batch));
        self.wait_time += start.elapsed();
        if let Some(batch) = batch {
            self.outstanding += 1;
            self.next_record += self.batch_step;
            return Ok(batch);
        }
        Err(self.shared.error.take().unwrap_or_else(|| {
            Error::InvalidData(format!(
                "{}: no records are available after an earlier error",
                self.shared.name
            ))
        }))
    }

    /// Returns a batch to the prefetching thread for reuse. Drops a batch whose shape differs from
    /// the shape of the prefetcher's batches.
    pub fn recycle(&mut self, batch: Batch<T>) {
        if self.outstanding > 0 && batch.has_shape(self.shape) {
            self.outstanding -= 1;
            // After an error, the queue is closed, so the push fails and the batch is dropped.
            let _ = self.shared.batches.free.push(batch);
        }
    }

    /// Returns the total time for which [`next`](Self::next) has waited for data.
    pub fn wait_time(&self) -> Duration {
        self.wait_time
    }
}

impl<T: Element> Drop for Prefetcher<T> {
    fn drop(&mut self) {
        self.stop();
    }
}

impl<T: Element> fmt::Debug for Prefetcher<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Prefetcher({} in batches of {})", self.shared.name, self.shape[0])
    }
}

impl<T: Element> Shared<T> {
    /// Starts the prefetching thread.
    fn start(
        name: String,
        batches: Vec<Batch<T>>,
        mut filler: BatchFiller,
    ) -> Result<(Arc<Self>, JoinOnDrop)> {
        let batches = QueuePair::new(batches);
        let shared = Arc::new(Self { name, batches, error: WorkerError::new() });
        let thread_shared = Arc::clone(&shared);
        let thread = JoinOnDrop::spawn("cortado-data", move || thread_shared.run(&mut filler))?;
        Ok((shared, thread))
    }

    /// Fills batches until an error occurs or the queues are closed, and then closes the queues.
    fn run(&self, filler: &mut BatchFiller) {
        if let Err(error) = catch_panic(|| self.fill_batches(filler)) {
            self.error.set(error);
        }
        self.batches.close();
    }

    fn fill_batches(&self, filler: &mut BatchFiller) -> Result<()> {
        loop {
            let span = trace::start();
            let free_batch = self.batches.free.pop();
            span.finish(|| Work::Wait(Wait::Buffer));
            let Some(batch) = free_batch else { return Ok(()) };
            let _span = trace::span("prepare a batch");
            if !filler.fill(&batch)? || self.batches.full.push(batch).is_err() {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests;
