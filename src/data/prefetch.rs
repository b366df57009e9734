//! Batches prepared ahead of time, by a thread of their own.

use crate::{
    blob::Blob,
    data::{DataTransformer, Missed, QueuePair, Record, Source},
    device::Device,
    element::Element,
    error::{Error, Result},
    memory::ledger,
};
use parking_lot::Mutex;
use std::{
    any::Any,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

/// Records made ready for a net.
#[derive(Debug)]
pub struct Batch<T: Element, D: Device> {
    /// Batch × channels × height × width.
    pub data: Blob<T, D>,
    /// One label a record.
    pub label: Blob<T, D>,
}

/// A thread that reads records, transforms them, and brings them to the device while the net
/// computes on earlier ones.
///
/// Batch j holds the records from j · batch size on, round and round the source. A fixed number
/// of batches goes round: taken by [`next`](Self::next), given back by
/// [`recycle`](Self::recycle). The thread ends when this is dropped, which waits for it, and at
/// its first error.
pub struct Prefetcher<T: Element, D: Device> {
    device: D,
    shared: Arc<Shared<T, D>>,
    thread: Option<JoinHandle<()>>,
    shape: [usize; 4],
    depth: usize,
    /// Batches taken and not given back.
    out: usize,
    waited: Duration,
}

struct Shared<T: Element, D: Device> {
    name: String,
    batches: QueuePair<Batch<T, D>>,
    /// What ended the thread, until the caller hears of it.
    failure: Mutex<Option<Error>>,
}

/// What the thread works with.
struct Reader<D> {
    source: Box<dyn Source>,
    /// What the source says of itself.
    name: String,
    records: Option<u64>,
    transformer: DataTransformer,
    /// A queue of the device's apart from the net's.
    queue: D,
    shape: [usize; 4],
    /// The record whose number is `next`, once it is read.
    record: Record,
    is_read: bool,
    /// Records put into batches so far.
    next: u64,
}

impl<T: Element, D: Device> Prefetcher<T, D> {
    /// Reads the first record, for its shape, and starts to prepare batches of `batch` records,
    /// up to `depth` of them ahead.
    ///
    /// # Errors
    /// [`Error::Value`] if `batch` is 0, `depth` is not in 1 to 1024, or the thread cannot be
    /// started; those of the first record, which name source and record; those of [`Blob::new`] and of
    /// [`Memory::fork`](crate::Memory::fork).
    pub fn new(
        device: &D,
        source: Box<dyn Source>,
        transformer: DataTransformer,
        batch: usize,
        depth: usize,
    ) -> Result<Self> {
        for (what, value, most) in [("batch_size", batch, usize::MAX), ("prefetch", depth, DEEPEST)]
        {
            if !(1..=most).contains(&value) {
                let why = match value {
                    0 => format!("`{what}` is 0"),
                    _ => format!("`{what}` is {value}, the most is {most}"),
                };
                return Err(Error::value("data_param", why));
            }
        }
        let mut reader = Reader {
            name: source.describe(),
            records: source.records(),
            source,
            transformer,
            queue: device.fork()?,
            shape: [batch, 0, 0, 0],
            record: Record::default(),
            is_read: false,
            next: 0,
        };
        reader.read()?;
        let first = reader.transformer.output_shape(&reader.record);
        let [channels, height, width] = first.map_err(|error| reader.named(error))?;
        let shape = [batch, channels, height, width];
        reader.shape = shape;
        let batches: Result<Vec<_>> = (0..depth).map(|_| Batch::new(device, shape)).collect();
        let shared = Arc::new(Shared {
            name: reader.name.clone(),
            batches: QueuePair::new(batches?),
            failure: Mutex::new(None),
        });
        let theirs = Arc::clone(&shared);
        let context = ledger::Context::here();
        let thread = thread::Builder::new()
            .name("cortado-data".into())
            .spawn(move || {
                let _context = context.enter();
                theirs.run(reader);
            })
            .map_err(|error| Error::value("data_param", format!("starting a thread: {error}")))?;
        let (device, thread) = (device.clone(), Some(thread));
        Ok(Self { device, shared, thread, shape, depth, out: 0, waited: Duration::ZERO })
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
        let batch = match batches.full.pop_timeout(PATIENCE) {
            Ok(batch) => Some(batch),
            Err(Missed::Closed) => None,
            Err(Missed::TimedOut) => {
                batches.full.pop_logging(&format!("Waiting for data of {}", self.shared.name))
            }
        };
        self.waited += start.elapsed();
        if let Some(batch) = batch {
            self.out += 1;
            return Ok(batch);
        }
        let failure = self.shared.failure.lock().take();
        Err(failure.unwrap_or_else(|| {
            Error::Invalid(format!("{}: no more is read after an error", self.shared.name))
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
    pub fn waited(&self) -> Duration {
        self.waited
    }
}

/// Most batches prepared ahead: more would only fill the memory.
const DEEPEST: usize = 1024;
/// How long a wait for data is nothing to speak of.
const PATIENCE: Duration = Duration::from_secs(1);

impl<T: Element, D: Device> Drop for Prefetcher<T, D> {
    fn drop(&mut self) {
        self.shared.batches.close();
        if let Some(thread) = self.thread.take() {
            // Its panics were caught.
            let _ = thread.join();
        }
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
    fn run(&self, mut reader: Reader<D>) {
        let end = catch_unwind(AssertUnwindSafe(|| self.prepare(&mut reader)));
        let failure = match end {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error),
            Err(panic) => Some(reader.named(Error::Invalid(message(&*panic)))),
        };
        *self.failure.lock() = failure;
        self.batches.close();
    }

    fn prepare(&self, reader: &mut Reader<D>) -> Result<()> {
        while let Some(batch) = self.batches.free.pop() {
            reader.fill(&batch)?;
            if self.batches.full.push(batch).is_err() {
                break;
            }
        }
        Ok(())
    }
}

impl<D: Device> Reader<D> {
    /// Overwrites `batch` with the next records.
    fn fill<T: Element>(&mut self, batch: &Batch<T, D>) -> Result<()> {
        {
            let (mut data, mut label) = (batch.data.data_mut()?, batch.label.data_mut()?);
            let (data, label) = (data.host_write_only()?, label.host_write_only()?);
            let size = self.shape[1..].iter().product::<usize>();
            for (i, label) in label.iter_mut().enumerate() {
                self.read()?;
                let written = self.transform(&mut data[i * size..][..size]);
                written.map_err(|error| self.named(error))?;
                *label = T::from_f64(self.record.label().into());
                self.next += 1;
                self.is_read = false;
            }
        }
        let upload = || {
            batch.data.data()?.prefetch(&self.queue)?;
            batch.label.data()?.prefetch(&self.queue)
        };
        upload()
            .map_err(|error| error.within(format!("{}, taking a batch to the device", self.name)))
    }

    /// Reads the next record, unless that is done.
    fn read(&mut self) -> Result<()> {
        if !self.is_read {
            let read = self.source.read(&mut self.record);
            read.map_err(|error| self.named(error))?;
            self.is_read = true;
        }
        Ok(())
    }

    fn transform<T: Element>(&self, image: &mut [T]) -> Result<()> {
        let got = self.transformer.output_shape(&self.record)?;
        if got != self.shape[1..] {
            let [c, h, w] = got;
            let [_, channels, height, width] = self.shape;
            let why = format!("{c} x {h} x {w} after records of {channels} x {height} x {width}");
            return Err(Error::Shape(why));
        }
        self.transformer.transform(self.next, &self.record, image)
    }

    /// Adds source and record.
    fn named(&self, error: Error) -> Error {
        let index = self.records.map_or(self.next, |count| self.next % count.max(1));
        error.within(format!("{}, record {index}", self.name))
    }
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("panicked: {}", text.unwrap_or("with no message"))
}

#[cfg(test)]
mod tests;
