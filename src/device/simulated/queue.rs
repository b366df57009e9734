//! In-order queues, each of which delays its work until a caller waits for the queue.
//!
//! Decisions:
//! - Work stays queued until a caller waits for the queue, or the queue exceeds its size limits.
//!   Because queued work is delayed, code that relies on one queue running before another, but does
//!   not call `order_after`, reads stale bytes.
//! - A wait for a queue runs all work of that queue. From other queues, the wait runs only the work
//!   that the awaited queue was [ordered after](Queue::order_after). The rest of the work of other
//!   queues stays queued, as the contract of `Memory` allows.
//! - A queue stores the first failure of its work, and the next wait for that queue returns and
//!   clears the failure. If queue `b` was ordered after the failed work of queue `a`, a wait for
//!   `b` returns the failure as well. Work that was queued after the failed work still runs.

use super::{buffer::Region, fault::Fault, spans::Spans, state::DeviceState};
use crate::{
    error::{Error, Result},
    memory::DeviceWork,
    sync::Mutex,
};
use std::{collections::VecDeque, sync::Arc};

/// Number of pending work items above which a queue runs its work, even if no caller waits.
const MAX_PENDING_WORK: usize = 4096;
/// Number of bytes in pending uploads above which a queue runs its work, even if no caller waits.
const MAX_STAGED_BYTES: usize = 64 << 20;

/// A queue that runs its work in submission order.
#[derive(Default)]
pub(super) struct Queue {
    state: Mutex<QueueState>,
    pub(super) spans: Spans,
}

#[derive(Default)]
struct QueueState {
    pending_work: VecDeque<Work>,
    /// Number of work items that have been queued on this queue so far.
    end: u64,
    /// Number of bytes that pending uploads hold.
    staged_bytes: usize,
    failure: Option<Error>,
}

enum Work {
    Job(Job),
    /// Runs the work of another queue up to the given position, before later work of this queue.
    OrderAfter(Arc<Queue>, u64),
    Poison(Region),
}

/// A queued kernel or upload.
pub(super) struct Job {
    /// Description of the job in error messages and recorded spans.
    pub(super) work: DeviceWork,
    /// Regions that the job overwrites or updates.
    pub(super) outputs: Vec<Region>,
    /// Number of bytes that the job holds if the job is an upload, else 0.
    pub(super) staged_bytes: usize,
    pub(super) body: Box<dyn FnOnce() -> Result<()> + Send>,
}

impl Queue {
    pub(super) fn push_job(&self, state: &DeviceState, job: Job) {
        self.push(state, Work::Job(job));
    }

    pub(super) fn push_poison(&self, state: &DeviceState, region: Region) {
        self.push(state, Work::Poison(region));
    }

    /// Orders all later work of this queue after the work that is already queued on `other`.
    pub(super) fn order_after(&self, state: &DeviceState, other: &Arc<Self>) {
        let end = other.state.lock().end;
        self.push(state, Work::OrderAfter(Arc::clone(other), end));
    }

    /// Returns the number of pending work items.
    pub(super) fn len(&self) -> usize {
        self.state.lock().pending_work.len()
    }

    /// Runs all work queued so far.
    ///
    /// # Errors
    /// Returns the first failure since the last wait.
    pub(super) fn wait(&self, state: &DeviceState) -> Result<()> {
        self.run_pending(state);
        self.state.lock().failure.take().map_or(Ok(()), Err)
    }

    fn push(&self, state: &DeviceState, work: Work) {
        let mut queue = self.state.lock();
        queue.staged_bytes += work.staged_bytes();
        queue.pending_work.push_back(work);
        queue.end += 1;
        if queue.pending_work.len() > MAX_PENDING_WORK || queue.staged_bytes > MAX_STAGED_BYTES {
            drop(queue);
            self.run_pending(state);
        }
    }

    fn run_pending(&self, state: &DeviceState) {
        let _running = state.lock_run();
        let end = self.state.lock().end;
        self.run(state, end);
    }

    /// Runs the pending work of this queue up to position `end`. Dependencies between queues never
    /// form a cycle, because a call of `order_after` refers only to work that is already queued.
    fn run(&self, state: &DeviceState, end: u64) {
        while let Some(work) = self.pop(end) {
            if let Err(error) = work.run(state, &self.spans) {
                self.state.lock().failure.get_or_insert(error);
            }
        }
    }

    /// Removes and returns the first pending work item if its position is before `end`.
    fn pop(&self, end: u64) -> Option<Work> {
        let mut queue = self.state.lock();
        let first_position = queue.end - queue.pending_work.len() as u64;
        if first_position >= end {
            return None;
        }
        let work = queue.pending_work.pop_front()?;
        queue.staged_bytes -= work.staged_bytes();
        Some(work)
    }

    /// Returns a copy of the stored failure as an error, for a queue that was ordered after this
    /// queue.
    fn check_failure(&self) -> Result<()> {
        let queue = self.state.lock();
        queue.failure.as_ref().map_or(Ok(()), |error| Err(DeviceState::error(error.to_string())))
    }
}

impl Work {
    fn staged_bytes(&self) -> usize {
        match self {
            Self::Job(job) => job.staged_bytes,
            _ => 0,
        }
    }

    fn run(self, state: &DeviceState, spans: &Spans) -> Result<()> {
        match self {
            Self::Job(job) => {
                // Attributes the parallel regions of the job to the kernel call that queued the
                // job, and not to the kernel call that waits for the queue.
                let _kernel = match job.work {
                    DeviceWork::Kernel { call, .. } => Some(call.reenter()),
                    _ => None,
                };
                spans.measure(job.work, || job.run(state))
            }
            Self::OrderAfter(other, end) => {
                other.run(state, end);
                other.check_failure()
            }
            Self::Poison(region) => {
                region.poison();
                Ok(())
            }
        }
    }
}

impl Job {
    fn run(self, state: &DeviceState) -> Result<()> {
        state.count(|counters| counters.executed += 1);
        let result = match state.faults.occurs(Fault::InFlight) {
            true => Err(DeviceState::error("injected fault")),
            false => (self.body)(),
        };
        result.map_err(|error| {
            self.outputs.iter().for_each(Region::poison);
            error.context(format!("{}, in flight", self.work))
        })
    }
}
