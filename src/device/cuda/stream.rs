//! Queues (CUDA streams), and dependencies between queues.

use super::{
    context::Context,
    error::{CudaFailure, check_driver},
    kernel_errors::KernelErrorFlags,
    memory_budget::MemoryBudget,
};
use crate::error::Result;
use cust::sys::{
    CUevent, CUevent_flags_enum::CU_EVENT_DISABLE_TIMING, CUstream,
    CUstream_flags_enum::CU_STREAM_NON_BLOCKING, cuEventCreate, cuEventDestroy_v2, cuEventRecord,
    cuStreamCreateWithPriority, cuStreamDestroy_v2, cuStreamSynchronize, cuStreamWaitEvent,
};
use std::{
    ptr,
    sync::{Arc, OnceLock},
};

/// A queue (CUDA stream) of a GPU. Dropping a `Stream` does not cancel queued work.
pub(super) struct Stream {
    pub(super) context: Arc<Context>,
    /// Memory limit that all queues of the opened device share.
    pub(super) budget: Arc<MemoryBudget>,
    raw: CUstream,
    /// Flags in which kernels report invalid values, created for the first kernel that needs the
    /// flags.
    error_flags: OnceLock<KernelErrorFlags>,
}

// SAFETY: any thread may pass a stream to the driver's functions.
unsafe impl Send for Stream {}
// SAFETY: the driver's functions are thread-safe.
unsafe impl Sync for Stream {}

impl Stream {
    /// Creates a queue that, unlike the streams of `cust`, does not wait for the driver's default
    /// stream.
    pub(super) fn new(context: &Arc<Context>, budget: &Arc<MemoryBudget>) -> Result<Self> {
        context.enter()?;
        let mut raw = ptr::null_mut();
        // SAFETY: `raw` is valid for writes of a stream handle, and a context is current.
        let result =
            unsafe { cuStreamCreateWithPriority(&mut raw, CU_STREAM_NON_BLOCKING as u32, 0) };
        context.check("cuStreamCreateWithPriority", result)?;
        let (context, budget) = (Arc::clone(context), Arc::clone(budget));
        Ok(Self { context, budget, raw, error_flags: OnceLock::new() })
    }

    pub(super) fn raw(&self) -> CUstream {
        self.raw
    }

    /// Returns the flags in which kernels of this queue report invalid values.
    pub(super) fn error_flags(&self) -> Result<&KernelErrorFlags> {
        if let Some(known) = self.error_flags.get() {
            return Ok(known);
        }
        self.context.enter()?;
        let new_flags = KernelErrorFlags::new(&self.context, self.raw)?;
        Ok(self.error_flags.get_or_init(|| new_flags))
    }

    /// Waits for all queued work. Fails if a kernel of this queue has reported an invalid value.
    pub(super) fn wait(&self) -> Result<()> {
        self.context.enter()?;
        match self.error_flags.get() {
            Some(flags) => flags.wait(|| self.synchronize()),
            None => self.synchronize(),
        }
    }

    /// Waits for all queued work. The context must be current.
    fn synchronize(&self) -> Result<()> {
        // SAFETY: `raw` is a live stream of the current context.
        let result = unsafe { cuStreamSynchronize(self.raw) };
        self.context.check("cuStreamSynchronize", result)?;
        self.context.launches.clear(self.raw);
        Ok(())
    }

    /// Makes later work of this queue wait for all work that is already queued on `other`.
    pub(super) fn order_after(&self, other: &Self) -> Result<()> {
        if ptr::eq(self, other) {
            return Ok(());
        }
        other.context.enter()?;
        let event = Event::new().map_err(|failure| other.context.error(failure))?;
        // SAFETY: the event and the stream belong to the current context.
        other.context.check("cuEventRecord", unsafe { cuEventRecord(event.0, other.raw) })?;
        self.context.enter()?;
        // SAFETY: stream and event are live. The driver keeps a destroyed event alive until no
        // stream waits for the event any more.
        self.context.check("cuStreamWaitEvent", unsafe { cuStreamWaitEvent(self.raw, event.0, 0) })
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if self.context.enter().is_ok() {
            // The flags free their memory on this stream, after kernels that write to the flags.
            drop(self.error_flags.take());
            // SAFETY: `self` owns the stream. The driver finishes queued work before it frees the
            // stream.
            let _ = unsafe { cuStreamDestroy_v2(self.raw) };
        }
    }
}

/// A CUDA event, which marks a position in a queue.
struct Event(CUevent);

impl Event {
    /// Creates an event in the current context.
    fn new() -> Result<Self, CudaFailure> {
        let mut raw = ptr::null_mut();
        // SAFETY: `raw` is valid for writes of an event handle.
        check_driver("cuEventCreate", unsafe {
            cuEventCreate(&mut raw, CU_EVENT_DISABLE_TIMING as u32)
        })?;
        Ok(Self(raw))
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: `self` owns the event.
        let _ = unsafe { cuEventDestroy_v2(self.0) };
    }
}
