//! Batches prepared ahead of time, by a thread of their own.

mod worker;

use crate::{
    blob::Blob,
    data::{
        DataReader, DataTransformer, QueueError, QueuePair,
        worker_thread::{JoinOnDrop, WorkerError, catch_panic},
    },
    device::Device,
    element::Element,
    error::{Error, Result},
    memory::ledger,
};
use worker::BatchFiller;
use std::{
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

/// Records made ready for a net.
///
/// A batch may be overwritten as soon as it is given back: what brings it to the device is
/// finished before the net gets it, and what the net has queued on the device by then comes
/// before what is brought there next ([`SyncedMemory::prefetch`](crate::SyncedMemory::prefetch)).
#[derive(Debug)]
pub struct Batch<T: Element, D: Device> {
    /// Batch × channels × height × width.
    pub data: Blob<T, D>,
    /// One label a record.
    pub label: Blob<T, D>,
}

/// How batches are prepared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrefetchOptions {
    /// Records in each.
    pub size: usize,
    /// Batches prepared ahead, at most 1024.
    pub depth: usize,
    /// Threads that transform the records of a batch; 0 is as many as the machine runs at once.
    /// They change no bit.
    pub threads: usize,
}

/// A thread that transforms records, by several others if that pays, and brings them to the
/// device while the net computes on earlier ones.
///
/// Batch j holds the reader's records from j · batch size on. A fixed number of batches goes
/// round: taken by [`next`](Self::next), given back by [`recycle`](Self::recycle). The thread
/// ends when this is dropped, which waits for it, and at its first error; the log is told of an
/// error that befell batches which nobody took.
#[doc(alias = "BasePrefetchingDataLayer")]
pub struct Prefetcher<T: Element, D: Device> {
    device: D,
    shared: Arc<Shared<T, D>>,
    /// Ends the thread's waiting for records.
    stop: Box<dyn Fn() + Send + Sync>,
    shape: [usize; 4],
    depth: usize,
    /// Batches taken and not given back.
    out: usize,
    waited: Duration,
    /// Dropped, and so waited for, after the queues are closed.
    _thread: JoinOnDrop,
}

struct Shared<T: Element, D: Device> {
    name: String,
    batches: QueuePair<Batch<T, D>>,
    /// What ended the thread, until the caller hears of it.
    failure: WorkerError,
}

/// Most batches prepared ahead: more would only fill the memory.
const MAX_DEPTH: usize = 1024;
/// How long a wait for data is nothing to speak of.
const SLOW_WAIT: Duration = Duration::from_secs(1);

impl<T: Element, D: Device> Prefetcher<T, D> {
    /// Waits for the first record, for its shape, and starts to prepare batches.
    ///
    /// # Errors
    /// [`Error::InvalidInput`] if a batch's size is 0, the depth is not in 1 to 1024, or threads cannot be
    /// started; those of the first record, which name source and record; those of [`Blob::new`]
    /// and of [`Memory::fork_queue`](crate::Memory::fork_queue).
    pub fn new(
        device: &D,
        reader: DataReader,
        transformer: DataTransformer,
        batches: PrefetchOptions,
    ) -> Result<Self> {
        let PrefetchOptions { size, depth, threads } = batches;
        for (what, value, most) in
            [("batch_size", size, usize::MAX), ("prefetch", depth, MAX_DEPTH)]
        {
            if !(1..=most).contains(&value) {
                let why = match value {
                    0 => format!("`{what}` is 0"),
                    _ => format!("`{what}` is {value}, the most is {most}"),
                };
                return Err(Error::invalid_input("data_param", why));
            }
        }
        let (name, stop) = (reader.source().to_owned(), Box::new(reader.stop()));
        let mut filler =
            BatchFiller::new(reader, transformer, device.fork_queue()?, size, threads)?;
        let shape = filler.shape();
        let batches: Result<Vec<_>> = (0..depth).map(|_| Batch::new(device, shape)).collect();
        let shared = Arc::new(Shared {
            name,
            batches: QueuePair::new(batches?),
            failure: WorkerError::new(),
        });
        let theirs = Arc::clone(&shared);
        let context = ledger::LedgerContext::current();
        let thread = JoinOnDrop::spawn("cortado-data", move || {
            let _context = context.enter();
            theirs.run(&mut filler);
        })?;
        let (device, waited) = (device.clone(), Duration::ZERO);
        Ok(Self { device, shared, stop, shape, depth, out: 0, waited, _thread: thread })
    }

    /// Shape of a batch's data: batch, channels, height, width.
    pub fn shape(&self) -> [usize; 4] {
        self.shape
    }

    /// What the source calls itself.
    pub fn source(&self) -> &str {
        &self.shared.name
    }

    /// The next batch, current on host and device, waiting for it.
    ///
    /// If all batches are out, another is made: what is not given back costs memory, and never
    /// a standstill.
    ///
    /// # Errors
    /// What kept the thread from preparing it, a panic too: it names source and record. There
    /// are no batches after that, and every later call says so.
    #[allow(clippy::should_implement_trait)] // no iterator: it never ends
    pub fn next(&mut self) -> Result<Batch<T, D>> {
        let batches = &self.shared.batches;
        if self.out == self.depth {
            let another = Batch::new(&self.device, self.shape)?;
            // Closed after an error, which is to come.
            let _ = batches.free.push(another);
            self.out -= 1;
        }
        let start = Instant::now();
        let batch = match batches.full.pop_timeout(SLOW_WAIT) {
            Ok(batch) => Some(batch),
            Err(QueueError::Closed) => None,
            Err(QueueError::TimedOut) => {
                batches.full.pop_logging(&format!("Waiting for data of {}", self.shared.name))
            }
        };
        self.waited += start.elapsed();
        if let Some(batch) = batch {
            self.out += 1;
            return Ok(batch);
        }
        let failure = self.shared.failure.take();
        Err(failure.unwrap_or_else(|| {
            Error::InvalidData(format!("{}: no more is read after an error", self.shared.name))
        }))
    }

    /// Takes a batch back, to be overwritten.
    pub fn recycle(&mut self, batch: Batch<T, D>) {
        if self.out > 0 {
            self.out -= 1;
            // Closed after an error: then there is no more use for it.
            let _ = self.shared.batches.free.push(batch);
        }
    }

    /// How long [`next`](Self::next) has waited for data so far.
    pub fn wait_time(&self) -> Duration {
        self.waited
    }
}

impl<T: Element, D: Device> Drop for Prefetcher<T, D> {
    fn drop(&mut self) {
        self.shared.batches.close();
        (self.stop)();
    }
}

impl<T: Element, D: Device> fmt::Debug for Prefetcher<T, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Prefetcher({} in batches of {})", self.shared.name, self.shape[0])
    }
}

impl<T: Element, D: Device> Batch<T, D> {
    fn new(device: &D, shape: [usize; 4]) -> Result<Self> {
        Ok(Self { data: Blob::new(device, &shape)?, label: Blob::new(device, &shape[..1])? })
    }
}

impl<T: Element, D: Device> Shared<T, D> {
    /// The thread: ends when the queues are closed, or closes them at an error.
    fn run(&self, filler: &mut BatchFiller<D>) {
        if let Err(error) = catch_panic(|| self.prepare(filler)) {
            self.failure.set(error);
        }
        self.batches.close();
    }

    fn prepare(&self, filler: &mut BatchFiller<D>) -> Result<()> {
        while let Some(batch) = self.batches.free.pop() {
            if !filler.fill(&batch)? || self.batches.full.push(batch).is_err() {
                break;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
