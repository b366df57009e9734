//! Records read ahead, by one thread for however many take them.

use super::{
    QueuePair, Record, Source,
    worker_thread::{JoinOnDrop, WorkerError, catch_panic},
};
use crate::error::{Error, Result};
use std::{fmt, sync::Arc};

/// One of those who take the records of a source, which a thread of its own reads for them all.
///
/// Of n, the i-th gets records i, i + n, i + 2n, … in order, whatever the threads do: so n nets
/// that train together see each record once, and what each sees does not depend on the others'
/// speed. The thread reads a little ahead for each, and no further: who takes nothing holds the
/// others up, and who is dropped does not. Buffers of records go round. The thread ends at its
/// first error, and when the last of them is dropped, which waits for it; the log is told of an
/// error that a reader was not.
#[doc(alias = "Body")]
pub struct DataReader {
    name: Arc<Name>,
    line: Arc<ReaderQueues>,
    /// What is being taken, and how much of it is.
    run: Option<RecordRun>,
    taken: usize,
    /// Number of the next record, and from one to the next.
    number: u64,
    step: u64,
    /// Dropped, and so waited for, after the line is closed.
    _thread: Arc<JoinOnDrop>,
}

/// What a source and its records are called.
struct Name {
    source: String,
    records: Option<u64>,
    skipped: u64,
}

/// What goes round between the thread and one reader.
struct ReaderQueues {
    runs: QueuePair<RecordRun>,
    /// What ended the thread, until the reader hears of it.
    failure: WorkerError,
}

/// Records handed over together: the queues are not worth it for one.
struct RecordRun {
    records: Vec<Record>,
    /// Those that were read.
    len: usize,
}

/// What the thread works with.
struct ReadThread {
    source: Box<dyn Source>,
    name: Arc<Name>,
    lines: Vec<Arc<ReaderQueues>>,
    /// Number of the next record.
    number: u64,
}

/// Runs of each reader: one is read while another is taken.
const RUNS: usize = 2;
/// Most records of a run, and most readers of a source.
const MAX_RUN_LEN: usize = 1024;

impl DataReader {
    /// Passes over `skip` records of `source` and reads the others in runs of `run`, up to two of
    /// them ahead. A run is handed over when it is complete.
    ///
    /// # Errors
    /// [`Error::InvalidInput`] if `run` is not in 1 to 1024, or the thread cannot be started; those of
    /// [`Source::skip`].
    pub fn new(source: Box<dyn Source>, skip: u64, run: usize) -> Result<Self> {
        let mut one = Self::shared(source, skip, run, 1)?;
        one.pop().ok_or_else(|| Error::InvalidData("no reader was made".into()))
    }

    /// As [`new`](Self::new), for `count` that take the records in turn.
    ///
    /// # Errors
    /// As there; [`Error::InvalidInput`] if `count` is not in 1 to 1024.
    pub fn shared(
        mut source: Box<dyn Source>,
        skip: u64,
        run: usize,
        count: usize,
    ) -> Result<Vec<Self>> {
        for (what, value) in [("run", run), ("count", count)] {
            if !(1..=MAX_RUN_LEN).contains(&value) {
                let why = format!("`{what}` is {value}, not in 1 to {MAX_RUN_LEN}");
                return Err(Error::invalid_input("DataReader", why));
            }
        }
        let name = Name { source: source.describe(), records: source.records(), skipped: skip };
        source.skip(skip).map_err(|error| error.context(name.source.clone()))?;
        let name = Arc::new(name);
        let lines: Vec<_> = (0..count).map(|_| Arc::new(ReaderQueues::new(run))).collect();
        let reading =
            ReadThread { source, name: Arc::clone(&name), lines: lines.clone(), number: 0 };
        let thread = Arc::new(JoinOnDrop::spawn("cortado-read", || reading.run())?);
        let readers = (0..).zip(lines).map(|(number, line)| Self {
            name: Arc::clone(&name),
            line,
            run: None,
            taken: 0,
            number,
            step: count as u64,
            _thread: Arc::clone(&thread),
        });
        Ok(readers.collect())
    }

    /// What the source calls itself.
    pub fn source(&self) -> &str {
        &self.name.source
    }

    /// The next records, at least one, waiting for them; they stay the next until they are
    /// [consumed](Self::consume).
    ///
    /// # Errors
    /// What kept the next record from being read, a panic too: it names source and record. There
    /// are no records after that, and every later call says so.
    pub fn records(&mut self) -> Result<&[Record]> {
        self.wait_for_run()?;
        match &self.run {
            Some(run) => Ok(&run.records[self.taken..run.len]),
            None => {
                let why = "no more is read after an error";
                Err(Error::InvalidData(format!("{}: {why}", self.name.source)))
            }
        }
    }

    /// Waits for the next records, and tells whether there are any: none are after the
    /// [stop](Self::stop), nor once an error was told.
    pub(super) fn wait_for_run(&mut self) -> Result<bool> {
        if self.run.is_none() {
            self.run = self.line.runs.full.pop();
            self.taken = 0;
        }
        if self.run.is_some() {
            return Ok(true);
        }
        self.line.failure.take().map_or(Ok(false), Err)
    }

    /// Takes the first `count` of [`records`](Self::records), at most all of them.
    pub fn consume(&mut self, count: usize) {
        let Some(run) = &self.run else { return };
        let count = count.min(run.len - self.taken);
        self.taken += count;
        self.number += count as u64 * self.step;
        if self.taken == run.len
            && let Some(run) = self.run.take()
        {
            // Closed after an error: then there is no more use for it.
            let _ = self.line.runs.free.push(run);
        }
    }

    /// Number of the next record, counted from 0 over all readers of the source, round after
    /// round: a function of how many were consumed alone.
    pub fn next_record(&self) -> u64 {
        self.number
    }

    /// From one record's number to the next one's: how many readers there are.
    pub fn stride(&self) -> u64 {
        self.step
    }

    /// Adds source and record, given the record's number, to an error.
    #[must_use]
    pub fn locate_error(&self, number: u64, error: Error) -> Error {
        self.name.of(number, error)
    }

    /// What ends this reader's waiting from another thread.
    pub(super) fn stop(&self) -> impl Fn() + Send + Sync + use<> {
        let line = Arc::clone(&self.line);
        move || line.runs.close()
    }
}

impl Drop for DataReader {
    fn drop(&mut self) {
        self.line.runs.close();
    }
}

impl fmt::Debug for DataReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DataReader({}, record {})", self.name.source, self.number)
    }
}

impl Name {
    fn of(&self, number: u64, error: Error) -> Error {
        let index = number.saturating_add(self.skipped);
        let index = self.records.map_or(index, |count| index % count.max(1));
        error.context(format!("{}, record {index}", self.source))
    }
}

impl ReaderQueues {
    fn new(run: usize) -> Self {
        let new = |_| RecordRun { records: vec![Record::default(); run], len: 0 };
        Self { runs: QueuePair::new((0..RUNS).map(new)), failure: WorkerError::new() }
    }
}

impl ReadThread {
    /// The thread: ends when all queues are closed, or closes them at an error.
    fn run(mut self) {
        let Err(error) = self.read() else { return };
        let text = error.to_string();
        let mut error = Some(error);
        for line in &self.lines {
            // There is one; the others get its words.
            let error = error.take().unwrap_or_else(|| Error::InvalidData(text.clone()));
            line.failure.set(error);
            line.runs.close();
        }
    }

    /// Reads run after run for everyone, until nobody is left.
    fn read(&mut self) -> Result<()> {
        loop {
            let free = self.lines.iter().map(|line| line.runs.free.pop());
            let mut runs: Vec<_> = free.collect();
            if runs.iter().all(Option::is_none) {
                return Ok(());
            }
            runs.iter_mut().flatten().for_each(|run| run.len = 0);
            let filled = catch_panic(|| self.fill(&mut runs));
            let filled = filled.map_err(|error| self.name.of(self.number, error));
            // What precedes an error is good.
            for (line, run) in self.lines.iter().zip(runs) {
                if let Some(run) = run.filter(|run| run.len > 0) {
                    let _ = line.runs.full.push(run);
                }
            }
            filled?;
        }
    }

    /// Reads into the runs in turn, until they are full or nobody wants them.
    fn fill(&mut self, runs: &mut [Option<RecordRun>]) -> Result<()> {
        let most = runs.iter().flatten().map(|run| run.records.len()).max();
        for i in 0..most.unwrap_or(0) {
            for (line, run) in self.lines.iter().zip(runs.iter_mut()) {
                run.take_if(|_| line.runs.is_closed());
            }
            if runs.iter().all(Option::is_none) {
                break;
            }
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
