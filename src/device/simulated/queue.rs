//! In-order queues whose work runs when somebody waits for it, and not before.
//!
//! Decisions:
//! - Work that nothing waits for stays queued: whatever relies on an order that it did not ask
//!   for finds the old bytes.
//! - A wait runs the waiting queue alone, and of others what it is ordered
//!   [`after`](Queue::after): they lag behind as far as they may.
//! - A failure in flight is kept by its queue and told once, by the first call that waits for that
//!   queue; waits of queues ordered after it tell of it too. The work behind it runs all the same.

use super::{buffer::Region, fault::Fault, state::DeviceState};
use crate::error::{Error, Result};
use parking_lot::Mutex;
use std::{collections::VecDeque, sync::Arc};

/// Work that a queue holds before it runs some on its own account, …
const MOST_WORK: usize = 4096;
/// … and bytes of it: copies of what was uploaded.
const MOST_BYTES: usize = 64 << 20;

/// A queue of work in order.
#[derive(Default)]
pub(super) struct Queue(Mutex<Line>);

#[derive(Default)]
struct Line {
    waiting: VecDeque<Work>,
    /// Work ever queued: the place behind the last in line.
    end: u64,
    /// Bytes that waiting uploads hold.
    staged: usize,
    failure: Option<Error>,
}

enum Work {
    Job(Job),
    /// Run the other queue up to a place first.
    After(Arc<Queue>, u64),
    Poison(Region),
}

/// A kernel or an upload.
pub(super) struct Job {
    /// As errors name it.
    pub(super) name: String,
    /// What it overwrites or updates.
    pub(super) writes: Vec<Region>,
    /// Bytes it holds that are not the device's.
    pub(super) staged: usize,
    pub(super) body: Box<dyn FnOnce() -> Result<()> + Send>,
}

impl Queue {
    pub(super) fn job(&self, machine: &DeviceState, job: Job) {
        self.push(machine, Work::Job(job));
    }

    pub(super) fn poison(&self, machine: &DeviceState, region: Region) {
        self.push(machine, Work::Poison(region));
    }

    /// Orders what follows after all that `other` holds now.
    pub(super) fn after(&self, machine: &DeviceState, other: &Arc<Self>) {
        let end = other.0.lock().end;
        self.push(machine, Work::After(Arc::clone(other), end));
    }

    /// Pieces of work that wait.
    pub(super) fn len(&self) -> usize {
        self.0.lock().waiting.len()
    }

    /// Runs all work queued so far.
    ///
    /// # Errors
    /// The first failure since the last wait.
    pub(super) fn wait(&self, machine: &DeviceState) -> Result<()> {
        self.settle(machine);
        self.failure()
    }

    fn push(&self, machine: &DeviceState, work: Work) {
        let mut line = self.0.lock();
        line.staged += work.staged();
        line.waiting.push_back(work);
        line.end += 1;
        if line.waiting.len() > MOST_WORK || line.staged > MOST_BYTES {
            drop(line);
            self.settle(machine);
        }
    }

    fn settle(&self, machine: &DeviceState) {
        let _turn = machine.turn();
        let end = self.0.lock().end;
        self.run(machine, end);
    }

    /// Runs work up to `end`. Two queues never run each other: an order points to work that was
    /// queued before it.
    fn run(&self, machine: &DeviceState, end: u64) {
        while let Some(work) = self.next(end) {
            if let Err(error) = work.run(machine) {
                self.0.lock().failure.get_or_insert(error);
            }
        }
    }

    /// Takes the first in line, if it stands before `end`.
    fn next(&self, end: u64) -> Option<Work> {
        let mut line = self.0.lock();
        let first = line.end - line.waiting.len() as u64;
        if first >= end {
            return None;
        }
        let work = line.waiting.pop_front()?;
        line.staged -= work.staged();
        Some(work)
    }

    /// Takes the failure.
    fn failure(&self) -> Result<()> {
        self.0.lock().failure.take().map_or(Ok(()), Err)
    }

    /// Tells a queue ordered after this one of the failure, which stays here.
    fn failed(&self) -> Result<()> {
        let line = self.0.lock();
        line.failure.as_ref().map_or(Ok(()), |error| Err(DeviceState::failed(error.to_string())))
    }
}

impl Work {
    fn staged(&self) -> usize {
        match self {
            Self::Job(job) => job.staged,
            _ => 0,
        }
    }

    fn run(self, machine: &DeviceState) -> Result<()> {
        match self {
            Self::Job(job) => job.run(machine),
            Self::After(other, end) => {
                other.run(machine, end);
                other.failed()
            }
            Self::Poison(region) => {
                region.poison();
                Ok(())
            }
        }
    }
}

impl Job {
    fn run(self, machine: &DeviceState) -> Result<()> {
        machine.count(|counters| counters.ran += 1);
        let outcome = match machine.faults.strikes(Fault::InFlight) {
            true => Err(DeviceState::failed("injected fault")),
            false => (self.body)(),
        };
        outcome.map_err(|error| {
            self.writes.iter().for_each(Region::poison);
            error.context(format!("{}, in flight", self.name))
        })
    }
}
