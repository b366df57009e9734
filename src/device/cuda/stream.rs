//! Queues (CUDA streams), and dependencies between queues.

use super::{
    context::Context, event::Event, kernel_errors::KernelErrorFlags, memory_budget::MemoryBudget,
    spans::Spans,
};
use crate::{
    error::Result,
    memory::{DeviceSpan, DeviceWork},
};
use cust::sys::{
    CUstream, CUstream_flags_enum::CU_STREAM_NON_BLOCKING, cuStreamCreateWithPriority,
    cuStreamDestroy_v2, cuStreamSynchronize, cuStreamWaitEvent,
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
    spans: Spans,
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
        Ok(Self { context, budget, raw, error_flags: OnceLock::new(), spans: Spans::default() })
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

    /// Calls `enqueue`, which queues `work()`. Records the work's span if the queue records. The
    /// context must be current.
    pub(super) fn enqueue(
        &self,
        work: impl FnOnce() -> DeviceWork,
        enqueue: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        if !self.spans.is_recording() {
            return enqueue();
        }
        let error = |failure| self.context.error(failure);
        self.spans.measure(self.raw, work, enqueue, error)
    }

    /// Starts or ends the recording of spans, after waiting for all queued work.
    pub(super) fn record_spans(&self, on: bool) -> Result<()> {
        self.wait()?;
        self.spans.record(self.raw, on).map_err(|failure| self.context.error(failure))?;
        self.wait()
    }

    /// Waits for all queued work, and returns the recorded spans.
    pub(super) fn take_spans(&self) -> Result<Vec<DeviceSpan>> {
        let result = self.wait();
        let spans = self.spans.take();
        result?;
        spans.map_err(|failure| self.context.error(failure))
    }

    /// Makes later work of this queue wait for all work that is already queued on `other`.
    pub(super) fn order_after(&self, other: &Self) -> Result<()> {
        if ptr::eq(self, other) {
            return Ok(());
        }
        other.context.enter()?;
        let event = Event::new().map_err(|failure| other.context.error(failure))?;
        event.record(other.raw).map_err(|failure| other.context.error(failure))?;
        self.context.enter()?;
        // SAFETY: stream and event are live. The driver keeps a destroyed event alive until no
        // stream waits for the event any more.
        self.context
            .check("cuStreamWaitEvent", unsafe { cuStreamWaitEvent(self.raw, event.raw(), 0) })
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if self.context.enter().is_ok() {
            // The flags free their memory on this stream, after kernels that write to the flags.
            drop(self.error_flags.take());
            // The events of a recording must be destroyed before the context.
            let _ = self.spans.record(self.raw, false);
            // SAFETY: `self` owns the stream. The driver finishes queued work before it frees the
            // stream.
            let _ = unsafe { cuStreamDestroy_v2(self.raw) };
        }
    }
}
