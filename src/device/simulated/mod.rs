//! A simulated discrete device in host memory, which finds coherence bugs without a GPU.
//!
//! Decisions:
//! - The device has separate memory: host and device see each other's values only after a copy.
//! - The device delays queued work until a caller waits for the queue, so that a missing wait, or a
//!   missing dependency between two queues, shows up in the first run of a test.
//! - Memory without a value (stale, freed, or written by work that failed) holds [`POISON`].
//! - Every kernel is native: a call checks the operands and queues the host kernel. Results are
//!   bit-identical to the host's.
//! - A test can make allocations, copies, launches and queued work fail ([`Fault`]).

mod buffer;
mod fault;
mod kernels;
mod launch;
mod poison;
mod queue;
mod spans;
mod state;

pub use fault::Fault;
pub use state::Counters;
pub use {buffer::Buffer, poison::POISON};

use crate::{
    error::Result,
    host::Workers,
    memory::{CompiledHere, DeviceSpan, DeviceWork, FailureKind, Memory, StaleAllocation},
};
use poison::poison;
use queue::{Job, Queue};
use state::DeviceState;
use std::{fmt, sync::Arc};

/// A simulated device in host memory, which delays queued work as long as the contract of
/// [`Memory`] allows. The [module documentation](self) lists the design decisions.
///
/// ```
/// use cortado::prelude::*;
///
/// let device = SimulatedDevice::new();
/// let y = Blob::from_slice(&device, &[2], &[1.0f32, 2.0])?.scale(3.0)?;
/// assert_eq!((device.counters().kernels, device.counters().executed), (1, 0)); // queued
/// assert_eq!(y.to_vec()?, [3.0, 6.0]);
/// assert_eq!(device.counters().executed, 2); // the upload and the kernel
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone)]
pub struct SimulatedDevice {
    state: Arc<DeviceState>,
    queue: Arc<Queue>,
    workers: Workers,
}

impl SimulatedDevice {
    /// Creates a device that runs kernels on the process-wide thread pool.
    pub fn new() -> Self {
        Self::with_workers(Workers::global().clone())
    }

    /// Creates a device with a separate pool of `threads` threads. With one thread, kernels run on
    /// the thread that waits for the queue. If `threads` is 0, behaves like [`new`](Self::new).
    ///
    /// # Errors
    /// [`Error::InvalidInput`](crate::Error::InvalidInput) if the threads cannot be started.
    pub fn with_threads(threads: usize) -> Result<Self> {
        match threads {
            0 => Ok(Self::new()),
            _ => Ok(Self::with_workers(Workers::new(threads)?)),
        }
    }

    fn with_workers(workers: Workers) -> Self {
        Self { state: Arc::default(), queue: Arc::default(), workers }
    }

    /// Injects a fault into the `nth` event of kind `fault` after this call, counted over the
    /// device and all its forks.
    pub fn inject_fault(&self, fault: Fault, nth: u64) {
        self.state.faults.inject(fault, nth);
    }

    /// Returns the event counters of the device and its forks.
    pub fn counters(&self) -> Counters {
        self.state.counters()
    }

    /// Returns the number of pending work items in this handle's queue.
    pub fn pending(&self) -> usize {
        self.queue.len()
    }

    /// Counts a copy, and fails if an injected [`Fault::Copy`] occurs.
    fn check_copy_fault(&self, direction: &str, bytes: usize) -> Result<()> {
        if self.state.faults.occurs(Fault::Copy) {
            let what = format!("{direction} of {bytes} bytes: injected fault");
            return Err(DeviceState::error(what));
        }
        Ok(())
    }
}

impl Default for SimulatedDevice {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for SimulatedDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimulatedDevice").field("pending", &self.pending()).finish_non_exhaustive()
    }
}

impl Memory for SimulatedDevice {
    type Buffer = Buffer;
    const COMPILED_HERE: CompiledHere = CompiledHere::YES;

    fn name(&self) -> String {
        DeviceState::NAME.into()
    }
    fn alloc(&self, bytes: usize) -> Result<Buffer> {
        Buffer::zeroed(&self.state, bytes)
    }
    fn upload(&self, src: &[u8], dst: &mut Buffer, at: usize) -> Result<()> {
        let region = dst.region(at, src.len())?;
        self.check_copy_fault("upload", src.len())?;
        self.state.count(|counters| counters.uploads += 1);
        let (staged_copy, target) = (src.to_vec(), region.clone());
        let job = Job {
            work: DeviceWork::Upload { bytes: src.len() },
            outputs: vec![region],
            staged_bytes: staged_copy.len(),
            body: Box::new(move || {
                target.write::<u8>().copy_from_slice(&staged_copy);
                Ok(())
            }),
        };
        self.queue.push_job(&self.state, job);
        Ok(())
    }
    fn download(&self, src: &Buffer, at: usize, dst: &mut [u8]) -> Result<()> {
        let region = src.region(at, dst.len())?;
        self.check_copy_fault("download", dst.len())?;
        self.queue.wait(&self.state)?;
        self.state.count(|counters| counters.downloads += 1);
        self.queue.spans.measure(DeviceWork::Download { bytes: dst.len() }, || {
            dst.copy_from_slice(&region.read::<u8>());
        });
        Ok(())
    }
    fn synchronize(&self) -> Result<()> {
        self.queue.wait(&self.state)
    }
    fn queue_id(&self) -> Option<usize> {
        Some(Arc::as_ptr(&self.queue).addr())
    }
    fn fork_queue(&self) -> Result<Self> {
        Ok(Self { queue: Arc::default(), ..self.clone() })
    }
    fn order_after(&self, other: &Self) -> Result<()> {
        if !Arc::ptr_eq(&self.state, &other.state) {
            return other.synchronize();
        }
        if !Arc::ptr_eq(&self.queue, &other.queue) {
            self.queue.order_after(&self.state, &other.queue);
        }
        Ok(())
    }
    fn host_workers(&self) -> &Workers {
        &self.workers
    }
    fn record_spans(&self, on: bool) -> Result<bool> {
        self.queue.wait(&self.state)?;
        self.queue.spans.record(on);
        Ok(true)
    }
    fn take_spans(&self) -> Result<Vec<DeviceSpan>> {
        let result = self.queue.wait(&self.state);
        let spans = self.queue.spans.take();
        result.map(|()| spans)
    }
    fn inject_failure(&self, failure: FailureKind) -> bool {
        let fault = match failure {
            FailureKind::Alloc => Fault::Alloc,
            FailureKind::Upload | FailureKind::Download => Fault::Copy,
            FailureKind::Launch => Fault::Launch,
            FailureKind::QueuedKernel | FailureKind::QueuedUpload => Fault::InFlight,
        };
        self.inject_fault(fault, 1);
        true
    }
    /// Poisons the allocation: host bytes immediately, device bytes after the work that is already
    /// queued.
    fn on_stale(&self, allocation: StaleAllocation<'_, Buffer>) {
        match allocation {
            StaleAllocation::Host(bytes) => poison(bytes),
            StaleAllocation::Device(buffer) => {
                self.queue.push_poison(&self.state, buffer.whole());
            }
        }
    }
}
