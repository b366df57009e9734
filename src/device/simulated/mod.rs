//! A discrete device on the host, for finding coherence bugs without any other hardware.
//!
//! Decisions:
//! - Its memory is its own: nothing is seen on the other side that was not copied there.
//! - Queued work runs when something waits for it, and not before; forks that nothing orders lag
//!   behind. So a missing wait or order shows in the first run.
//! - Memory without a value (stale, freed, written by work that failed) holds [`POISON`].
//! - Every kernel is native: it is checked and queued at the call, and is the host's when it
//!   runs. Results have the host's bits.
//! - Allocations, copies, launches and work in flight fail on demand ([`Fault`]).

mod buffer;
mod fault;
mod kernels;
mod launch;
mod state;
mod queue;

pub use buffer::{Buffer, POISON};
pub use fault::Fault;
pub use state::Counters;

use crate::{
    element::Element,
    error::Result,
    host::Workers,
    memory::{Memory, StaleAllocation},
};
use buffer::poison;
use launch::Launch;
use state::DeviceState;
use queue::{Job, Queue};
use std::{fmt, sync::Arc};

/// A device in host memory that is as strict as the contract of [`Memory`] allows. See the
/// [module](self).
#[derive(Clone)]
pub struct SimulatedDevice {
    machine: Arc<DeviceState>,
    queue: Arc<Queue>,
    workers: Workers,
}

impl SimulatedDevice {
    /// A device of its own, with as many threads as the machine runs at once.
    pub fn new() -> Self {
        Self::on(Workers::global().clone())
    }

    /// With `threads` threads of its own; 1 runs on the thread that waits, 0 is as
    /// [`new`](Self::new).
    ///
    /// # Errors
    /// [`Error::InvalidInput`](crate::Error::InvalidInput) if the threads cannot be started.
    pub fn with_threads(threads: usize) -> Result<Self> {
        match threads {
            0 => Ok(Self::new()),
            _ => Ok(Self::on(Workers::new(threads)?)),
        }
    }

    fn on(workers: Workers) -> Self {
        Self { machine: Arc::default(), queue: Arc::default(), workers }
    }

    /// Lets the `nth` event from now fail, on this handle or any fork of it; 1 is the next.
    pub fn inject_fault(&self, fault: Fault, nth: u64) {
        self.machine.faults.inject(fault, nth);
    }

    /// What the device, its forks included, did so far.
    pub fn counters(&self) -> Counters {
        self.machine.counters()
    }

    /// Pieces of work that wait in this handle's queue.
    pub fn pending(&self) -> usize {
        self.queue.len()
    }

    #[track_caller]
    fn launch<T: Element>(&self, kernel: &'static str) -> Result<Launch<'_>> {
        Launch::new(self, kernel, T::DTYPE.name())
    }

    /// Fails if this copy is to fail.
    fn copy_fault(&self, direction: &str, bytes: usize) -> Result<()> {
        match self.machine.faults.strikes(Fault::Copy) {
            true => {
                Err(DeviceState::failed(format!("{direction} of {bytes} bytes: injected fault")))
            }
            false => Ok(()),
        }
    }
}

impl Default for SimulatedDevice {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for SimulatedDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MirrorDevice").field("pending", &self.pending()).finish_non_exhaustive()
    }
}

impl Memory for SimulatedDevice {
    type Buffer = Buffer;

    fn name(&self) -> String {
        DeviceState::NAME.into()
    }
    fn alloc(&self, bytes: usize) -> Result<Buffer> {
        Buffer::zeroed(&self.machine, bytes)
    }
    fn upload(&self, src: &[u8], dst: &mut Buffer, at: usize) -> Result<()> {
        let region = dst.region(at, src.len())?;
        self.copy_fault("upload", src.len())?;
        self.machine.count(|counters| counters.uploads += 1);
        let (staged, to) = (src.to_vec(), region.clone());
        let job = Job {
            name: format!("upload of {} bytes", src.len()),
            writes: vec![region],
            staged: staged.len(),
            body: Box::new(move || {
                to.write::<u8>().copy_from_slice(&staged);
                Ok(())
            }),
        };
        self.queue.job(&self.machine, job);
        Ok(())
    }
    fn download(&self, src: &Buffer, at: usize, dst: &mut [u8]) -> Result<()> {
        let region = src.region(at, dst.len())?;
        self.copy_fault("download", dst.len())?;
        self.queue.wait(&self.machine)?;
        self.machine.count(|counters| counters.downloads += 1);
        dst.copy_from_slice(&region.read::<u8>());
        Ok(())
    }
    fn synchronize(&self) -> Result<()> {
        self.queue.wait(&self.machine)
    }
    fn fork_queue(&self) -> Result<Self> {
        Ok(Self { queue: Arc::default(), ..self.clone() })
    }
    fn order_after(&self, other: &Self) -> Result<()> {
        if !Arc::ptr_eq(&self.machine, &other.machine) {
            return other.synchronize();
        }
        if !Arc::ptr_eq(&self.queue, &other.queue) {
            self.queue.after(&self.machine, &other.queue);
        }
        Ok(())
    }
    fn host_workers(&self) -> &Workers {
        &self.workers
    }
    /// Poisons it: host bytes now, device bytes once the work queued so far is done with them.
    fn on_stale(&self, allocation: StaleAllocation<'_, Buffer>) {
        match allocation {
            StaleAllocation::Host(bytes) => poison(bytes),
            StaleAllocation::Device(buffer) => self.queue.poison(&self.machine, buffer.whole()),
        }
    }
}
