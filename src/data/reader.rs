//! A thread that prefetches records of a source for one or more readers.

use super::{
    queue_pair::QueuePair,
    record::Record,
    source::Source,
    worker_thread::{JoinOnDrop, WorkerError, catch_panic},
};
use crate::{
    error::{Error, Result},
    memory::trace::{self, Wait, Work},
};
use std::{fmt, sync::Arc};

/// One of n readers of a source. A single thread reads the records for all n readers.
///
/// Reader i gets records i, i + n, i + 2n, … in order. If n nets that train together use one reader
/// each, every record reaches exactly one net. The speed of one net does not affect which records
/// another net gets.
///
/// The reader thread reads a bounded number of records ahead for each reader. A reader that stops
/// consuming eventually blocks the other readers, but a dropped reader does not. The reader thread
/// recycles the buffers of consumed records. The reader thread ends at its first error, or when the
/// last reader is dropped. Dropping the last reader joins the reader thread. If the reader thread
/// failed and a reader has not returned the error, dropping that reader logs the error.
///
/// ```
/// use cortado::data::{DataReader, SourceRegistry};
///
/// let source = SourceRegistry::default().open("digits:test?count=100")?;
/// let mut readers = DataReader::shared(source, 0, 8, 2)?;
/// assert_eq!((readers[0].next_record(), readers[1].next_record()), (0, 1));
/// let count = readers[1].records()?.len();
/// readers[1].consume(count);
/// assert_eq!(readers[1].next_record(), 1 + 2 * count as u64);
/// # Ok::<(), cortado::Error>(())
/// ```
#[doc(alias = "Body")]
pub struct DataReader {
    name: Arc<SourceName>,
    queues: Arc<ReaderQueues>,
    run: Option<RecordRun>,
    consumed: usize,
    number: u64,
    stride: u64,
    /// The handle of the reader thread. Dropping the last handle joins the thread, after
    /// `DataReader::drop` has closed the queues.
    _thread: Arc<JoinOnDrop>,
}

/// The name of a source, and the counts that determine the position of a record in the source.
/// Error messages contain the source's name and the record's position.
struct SourceName {
    source: String,
    records: Option<u64>,
    skipped: u64,
}

struct ReaderQueues {
    runs: QueuePair<RecordRun>,
    /// The error that ended the reader thread; empty after the reader has returned the error.
    error: WorkerError,
}

/// A run of several records, which a queue passes as one item, because a queue operation for each
/// record would be slow.
struct RecordRun {
    records: Vec<Record>,
    len: usize,
}

struct ReadThread {
    source: Box<dyn Source>,
    name: Arc<SourceName>,
    queues: Vec<Arc<ReaderQueues>>,
    /// The number of the next record that the thread reads.
    number: u64,
    /// The number of records that the thread skips after it has read one record for each reader.
    gap: u64,
    /// Whether the thread must skip `gap` records before it reads the next record.
    skips_gap: bool,
}

/// The number of runs of records per reader: the reader thread fills one run while the caller
/// consumes the other.
const RUNS: usize = 2;
/// The maximum number of records in a run, and the maximum number of readers of a source.
const MAX_RUN_LEN: usize = 1024;

impl DataReader {
    /// Starts a thread that skips `skip` records of `source` and then reads up to two runs of `run`
    /// records ahead. The reader gets the records of a run only after the thread has read the whole
    /// run.
    ///
    /// # Errors
    /// Returns [`Error::InvalidInput`] if `run` is not in 1 to 1024 or the thread cannot be
    /// started, and any error from [`Source::skip`].
    pub fn new(source: Box<dyn Source>, skip: u64, run: usize) -> Result<Self> {
        Self::resumed(source, skip, 0, run)
    }

    /// Like [`new`](Self::new), but continues interrupted training at record number `first`: the
    /// thread skips `skip + first` records. Record numbers, on which random choices depend, start
    /// at `first`.
    ///
    /// ```
    /// use cortado::data::{DataReader, SourceRegistry};
    ///
    /// let open = || SourceRegistry::default().open("digits:test?count=100");
    /// let mut reader = DataReader::new(open()?, 0, 8)?;
    /// let mut resumed = DataReader::resumed(open()?, 0, 3, 8)?;
    /// reader.records()?; // a run of 8 records
    /// reader.consume(3);
    /// assert_eq!(reader.next_record(), resumed.next_record());
    /// assert_eq!(reader.records()?[0].values(), resumed.records()?[0].values());
    /// # Ok::<(), cortado::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns any error from [`new`](Self::new).
    pub fn resumed(source: Box<dyn Source>, skip: u64, first: u64, run: usize) -> Result<Self> {
        Self::strided(source, skip, (first, 1), run)
    }

    /// Like [`resumed`](Self::resumed), but gets only the records `first`, `first + stride`,
    /// `first + 2 · stride`, …. If processes that train together use one such reader each, every
    /// record reaches exactly one process.
    ///
    /// ```
    /// use cortado::data::{DataReader, SourceRegistry};
    ///
    /// let source = SourceRegistry::default().open("digits:test?count=100")?;
    /// let mut reader = DataReader::strided(source, 0, (1, 4), 8)?;
    /// assert_eq!(reader.next_record(), 1);
    /// reader.records()?;
    /// reader.consume(2);
    /// assert_eq!(reader.next_record(), 9);
    /// # Ok::<(), cortado::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns any error from [`new`](Self::new), and [`Error::InvalidInput`] if `stride` is 0.
    pub fn strided(
        source: Box<dyn Source>,
        skip: u64,
        (first, stride): (u64, u64),
        run: usize,
    ) -> Result<Self> {
        if stride == 0 {
            return Err(Error::invalid_input("DataReader", "`stride` must be positive, found 0"));
        }
        let mut readers = Self::start(source, (skip, first), run, (1, stride - 1))?;
        readers.pop().ok_or_else(|| Error::InvalidData("DataReader: no reader".into()))
    }

    /// Like [`new`](Self::new), but returns `count` readers, which get the records in turn.
    ///
    /// # Errors
    /// Returns any error from [`new`](Self::new), and [`Error::InvalidInput`] unless 1 ≤ `count` ≤
    /// 1024.
    pub fn shared(
        source: Box<dyn Source>,
        skip: u64,
        run: usize,
        count: usize,
    ) -> Result<Vec<Self>> {
        Self::start(source, (skip, 0), run, (count, 0))
    }

    fn start(
        mut source: Box<dyn Source>,
        (skip, first): (u64, u64),
        run: usize,
        (count, gap): (usize, u64),
    ) -> Result<Vec<Self>> {
        for (argument, value) in [("run", run), ("count", count)] {
            if !(1..=MAX_RUN_LEN).contains(&value) {
                let reason = format!("`{argument}` must be in 1 to {MAX_RUN_LEN}, found {value}");
                return Err(Error::invalid_input("DataReader", reason));
            }
        }
        let name =
            SourceName { source: source.describe(), records: source.records(), skipped: skip };
        let result = source.skip(skip).and_then(|()| source.skip(first));
        result.map_err(|error| error.context(name.source.clone()))?;
        let name = Arc::new(name);
        let queues: Vec<_> = (0..count).map(|_| Arc::new(ReaderQueues::new(run))).collect();
        let read_thread = ReadThread {
            source,
            name: Arc::clone(&name),
            queues: queues.clone(),
            number: first,
            gap,
            skips_gap: false,
        };
        let thread = Arc::new(JoinOnDrop::spawn("cortado-read", || read_thread.run())?);
        let readers = (first..).zip(queues).map(|(number, queues)| Self {
            name: Arc::clone(&name),
            queues,
            run: None,
            consumed: 0,
            number,
            stride: gap + count as u64,
            _thread: Arc::clone(&thread),
        });
        Ok(readers.collect())
    }

    /// Returns the name of the source.
    pub fn source(&self) -> &str {
        &self.name.source
    }

    /// Returns the number of records in one pass over the source; `None` if the number is unknown.
    pub fn source_records(&self) -> Option<u64> {
        self.name.records
    }

    /// Waits for the next records and returns at least one record. Later calls return the same
    /// records until the caller [consumes](Self::consume) them.
    ///
    /// # Errors
    /// Returns the error or panic that ended the reader thread, with the source and the record
    /// number. After an error, every later call of `records` fails, too.
    pub fn records(&mut self) -> Result<&[Record]> {
        self.wait_for_run()?;
        match &self.run {
            Some(run) => Ok(&run.records[self.consumed..run.len]),
            None => {
                let reason = "no records are available after an earlier error";
                Err(Error::InvalidData(format!("{}: {reason}", self.name.source)))
            }
        }
    }

    /// Waits for the next records. Returns `false` after a [stop](Self::stop_function), or if an
    /// earlier call returned an error.
    pub(super) fn wait_for_run(&mut self) -> Result<bool> {
        if self.run.is_none() {
            let span = trace::start();
            self.run = self.queues.runs.full.pop();
            span.finish(|| Work::Wait(Wait::Records));
            self.consumed = 0;
        }
        if self.run.is_some() {
            return Ok(true);
        }
        self.queues.error.take().map_or(Ok(false), Err)
    }

    /// Consumes the first `count` of the [`records`](Self::records), or all records if there are
    /// fewer.
    pub fn consume(&mut self, count: usize) {
        let Some(run) = &self.run else { return };
        let count = count.min(run.len - self.consumed);
        self.consumed += count;
        self.number += count as u64 * self.stride;
        if self.consumed == run.len
            && let Some(run) = self.run.take()
        {
            // After an error, the queue is closed, so the push fails and the run of records is
            // dropped.
            let _ = self.queues.runs.free.push(run);
        }
    }

    /// Returns the number of the next record. Record numbers start at 0, or at the argument `first`
    /// of [`resumed`](Self::resumed). Record numbers count the records of all readers, and do not
    /// restart when the source repeats.
    pub fn next_record(&self) -> u64 {
        self.number
    }

    /// Returns the difference between the numbers of successive records of this reader: the number of
    /// readers, or the argument `stride` of [`strided`](Self::strided).
    pub fn stride(&self) -> u64 {
        self.stride
    }

    /// Adds context to an error: the name of the source, and the position of record `number` in the
    /// source.
    #[must_use]
    pub fn locate_error(&self, number: u64, error: Error) -> Error {
        self.name.locate_error(number, error)
    }

    /// Returns a function with which another thread can end this reader's wait for records.
    pub(super) fn stop_function(&self) -> impl Fn() + Send + Sync + use<> {
        let queues = Arc::clone(&self.queues);
        move || queues.runs.close()
    }
}

impl Drop for DataReader {
    fn drop(&mut self) {
        self.queues.runs.close();
    }
}

impl fmt::Debug for DataReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DataReader({}, record {})", self.name.source, self.number)
    }
}

impl SourceName {
    fn locate_error(&self, number: u64, error: Error) -> Error {
        let index = number.saturating_add(self.skipped);
        let index = self.records.map_or(index, |count| index % count.max(1));
        error.context(format!("{}, record {index}", self.source))
    }
}

impl ReaderQueues {
    fn new(run: usize) -> Self {
        let new_run = |_| RecordRun { records: vec![Record::default(); run], len: 0 };
        Self { runs: QueuePair::new((0..RUNS).map(new_run)), error: WorkerError::new() }
    }
}

impl ReadThread {
    /// Reads records until an error occurs or all queues are closed. After an error, closes the
    /// queues.
    fn run(mut self) {
        let Err(error) = self.read() else { return };
        let text = error.to_string();
        let mut error = Some(error);
        for queues in &self.queues {
            // `Error` does not implement `Clone`: the first reader gets the error, and every other
            // reader gets an error with the same text.
            let error = error.take().unwrap_or_else(|| Error::InvalidData(text.clone()));
            queues.error.set(error);
            queues.runs.close();
        }
    }

    fn read(&mut self) -> Result<()> {
        loop {
            let span = trace::start();
            let free = self.queues.iter().map(|queues| queues.runs.free.pop());
            let mut runs: Vec<_> = free.collect();
            span.finish(|| Work::Wait(Wait::Buffer));
            if runs.iter().all(Option::is_none) {
                return Ok(());
            }
            runs.iter_mut().flatten().for_each(|run| run.len = 0);
            let span = trace::span("read records");
            let result = catch_panic(|| self.fill(&mut runs));
            drop(span);
            let result = result.map_err(|error| self.name.locate_error(self.number, error));
            // Pass on the records that were read before an error, because only the failed record is
            // invalid.
            for (queues, run) in self.queues.iter().zip(runs) {
                if let Some(run) = run.filter(|run| run.len > 0) {
                    let _ = queues.runs.full.push(run);
                }
            }
            result?;
        }
    }

    /// Reads records into the readers' buffers in turn, until all buffers are full or all readers
    /// are dropped.
    fn fill(&mut self, runs: &mut [Option<RecordRun>]) -> Result<()> {
        let longest_run = runs.iter().flatten().map(|run| run.records.len()).max();
        for i in 0..longest_run.unwrap_or(0) {
            for (queues, run) in self.queues.iter().zip(runs.iter_mut()) {
                run.take_if(|_| queues.runs.is_closed());
            }
            if runs.iter().all(Option::is_none) {
                break;
            }
            if self.skips_gap && self.gap > 0 {
                self.source.skip(self.gap)?;
                self.number += self.gap;
            }
            self.skips_gap = true;
            for run in runs.iter_mut() {
                match run {
                    Some(run) => {
                        self.source.read(&mut run.records[i])?;
                        run.len = i + 1;
                    }
                    None => self.source.skip(1)?,
                }
                self.number += 1;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
