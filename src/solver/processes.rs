//! The processes of a training run, as one of the processes sees them.

use super::event::Action;
use crate::{
    communicator::{Communicator, all_gather, gather_bytes, scaled_sum_tree},
    element::Element,
    error::{Error, Result},
    memory::{
        ledger::LedgerContext,
        trace::{self, Wait, Work},
    },
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc::{Receiver, Sender, channel},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

/// The connection of a solver to the other processes of the run. A thread owns the communicator, so
/// that the solver can compute while processes exchange data.
pub(super) struct Processes {
    rank: usize,
    size: usize,
    /// `None` if the run has one process, or after an error.
    thread: Option<CommunicationThread>,
    waited: Duration,
}

type Job = Box<dyn FnOnce(&mut dyn Communicator) + Send>;

struct CommunicationThread {
    jobs: Sender<Job>,
    /// Whether the thread must drop the communicator without running the remaining jobs.
    must_leave: Arc<AtomicBool>,
    /// The total time in nanoseconds for which the thread has run jobs.
    busy: Arc<AtomicU64>,
    handle: JoinHandle<()>,
}

/// The result of a job that the communication thread may not have run yet.
pub(super) enum Pending<R> {
    Started(Receiver<Result<R>>),
    /// In a run with one process, the result is available at once.
    Ready(R),
}

/// The actions that all processes take after an iteration or before a batch of a test, because one
/// of the processes requested them.
#[derive(Clone, Copy)]
pub(super) struct Agreed {
    pub(super) snapshot: bool,
    pub(super) stop: bool,
}

impl Processes {
    /// Returns the `Processes` of a run that has only one process.
    pub(super) fn single() -> Self {
        Self { rank: 0, size: 1, thread: None, waited: Duration::ZERO }
    }

    /// Returns a process of a run, and starts the thread that owns `communicator`.
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`] if the number of processes is not a power of two, and an error
    /// if the thread cannot be started.
    pub(super) fn new(mut communicator: Box<dyn Communicator>) -> Result<Self> {
        let (rank, size) = (communicator.rank(), communicator.size());
        if !size.is_power_of_two() {
            let reason = format!("processes: expected a power of two, found {size}");
            return Err(Error::InvalidData(reason));
        }
        if size == 1 {
            return Ok(Self::single());
        }
        let (jobs, queue) = channel::<Job>();
        let must_leave = Arc::new(AtomicBool::new(false));
        let stops = Arc::clone(&must_leave);
        let busy = Arc::new(AtomicU64::new(0));
        let total = Arc::clone(&busy);
        let context = LedgerContext::current();
        let run = move || {
            let _context = context.enter();
            for job in queue {
                if stops.load(Ordering::Acquire) {
                    break;
                }
                let _span = trace::span("exchange");
                let start = Instant::now();
                job(&mut *communicator);
                let nanoseconds = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
                total.fetch_add(nanoseconds, Ordering::Relaxed);
            }
        };
        let builder = thread::Builder::new().name("cortado-exchange".into());
        let handle = builder.spawn(run).map_err(|error| {
            Error::InvalidData(format!("cannot start the communication thread: {error}"))
        })?;
        let thread = Some(CommunicationThread { jobs, must_leave, busy, handle });
        Ok(Self { rank, size, thread, waited: Duration::ZERO })
    }

    pub(super) fn rank(&self) -> usize {
        self.rank
    }

    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// Returns the total time for which the solver has waited for other processes; `None` in a run
    /// with one process.
    pub(super) fn waited(&self) -> Option<Duration> {
        (self.size > 1).then_some(self.waited)
    }

    /// Returns the total time for which the communication thread has exchanged data with other
    /// processes; `None` in a run with one process.
    pub(super) fn exchanged(&self) -> Option<Duration> {
        let thread = self.thread.as_ref()?;
        Some(Duration::from_nanos(thread.busy.load(Ordering::Relaxed)))
    }

    /// Leaves the run after an error, so that the exchanges of the other processes with this process
    /// fail. Does not wait for exchanges that have started.
    pub(super) fn leave(&mut self) {
        if let Some(thread) = self.thread.take() {
            thread.must_leave.store(true, Ordering::Release);
        }
    }

    /// Starts a job on the communication thread, after all earlier jobs.
    pub(super) fn start<R: Send + 'static>(
        &self,
        job: impl FnOnce(&mut dyn Communicator) -> Result<R> + Send + 'static,
    ) -> Result<Pending<R>> {
        let (sender, result) = channel();
        let job = Box::new(move |communicator: &mut dyn Communicator| {
            // The solver drops the receiver if another job failed.
            let _ = sender.send(job(communicator));
        });
        match &self.thread {
            Some(thread) if thread.jobs.send(job).is_ok() => Ok(Pending::Started(result)),
            _ => Err(self.has_left()),
        }
    }

    /// Waits for the result of a job.
    pub(super) fn wait<R>(&mut self, pending: Pending<R>) -> Result<R> {
        let receiver = match pending {
            Pending::Started(receiver) => receiver,
            Pending::Ready(result) => return Ok(result),
        };
        let (start, span) = (Instant::now(), trace::start());
        let result = receiver.recv();
        span.finish(|| Work::Wait(Wait::Processes));
        self.waited += start.elapsed();
        result.unwrap_or_else(|_| Err(self.has_left()))
    }

    fn has_left(&self) -> Error {
        Error::InvalidData(format!(
            "process {}: has left the run after an earlier error; build a new solver from the last \
             snapshot",
            self.rank
        ))
    }

    /// Returns the messages of all processes in the order of their ranks.
    pub(super) fn all_gather(&mut self, message: Vec<u8>) -> Result<Vec<Vec<u8>>> {
        if self.size == 1 {
            return Ok(vec![message]);
        }
        let pending = self.start(move |communicator| all_gather(communicator, &message))?;
        self.wait(pending)
    }

    /// Starts to add the values of all processes along the binary tree over ranks, and to multiply
    /// the sums by `scale`.
    pub(super) fn start_scaled_sum<T: Element>(
        &self,
        mut values: Vec<T>,
        scale: T::Acc,
    ) -> Result<Pending<Vec<T>>> {
        if self.size == 1 {
            values.iter_mut().for_each(|value| *value = T::from_acc(value.to_acc() * scale));
            return Ok(Pending::Ready(values));
        }
        self.start(move |communicator| {
            scaled_sum_tree(communicator, &mut values, scale).map(|()| values)
        })
    }

    /// Returns the actions that any process requests.
    pub(super) fn agree(&mut self, action: Action) -> Result<Agreed> {
        let own = match action {
            Action::Continue => 0,
            Action::Snapshot => 1,
            Action::Stop => 2,
        };
        let actions = match self.size {
            1 => vec![own],
            _ => {
                let pending = self.start(move |communicator| gather_bytes(communicator, own))?;
                self.wait(pending)?
            }
        };
        let requested = |action: u8| actions.contains(&action);
        Ok(Agreed { snapshot: requested(1), stop: requested(2) })
    }
}

impl Drop for Processes {
    /// Drops the communicator, after the jobs that the solver has started.
    fn drop(&mut self) {
        if let Some(CommunicationThread { jobs, handle, .. }) = self.thread.take() {
            drop(jobs);
            // If the communicator panicked, the solver has already received an error instead of the
            // result of the job.
            let _ = handle.join();
        }
    }
}
