//! Queues (CUDA streams), and dependencies between queues.

use super::{
    context::{Context, Flush},
    deferred::Deferred,
    event::Event,
    kernel_errors::KernelErrorFlags,
    kernel_launch::KernelLaunch,
    launch_counts::LaunchCounts,
    memory_budget::MemoryBudget,
    spans::Spans,
};
use crate::{
    error::Result,
    memory::{DeviceSpan, DeviceWork},
    sync::Mutex,
};
use cust::sys::{
    CUdeviceptr, CUstream, CUstream_flags_enum::CU_STREAM_NON_BLOCKING, cuStreamCreateWithPriority,
    cuStreamDestroy_v2, cuStreamSynchronize, cuStreamWaitEvent,
};
use std::{
    ptr,
    sync::{Arc, OnceLock, Weak},
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
    /// The deferred launches; `None` if the queue launches each kernel at once.
    deferred: Option<Mutex<Deferred>>,
    counts: Mutex<LaunchCounts>,
}

// SAFETY: any thread may pass a stream to the driver's functions.
unsafe impl Send for Stream {}
// SAFETY: the driver's functions are thread-safe.
unsafe impl Sync for Stream {}

impl Stream {
    /// Creates a queue that, unlike the streams of `cust`, does not wait for the driver's default
    /// stream. If `graphs` is true, the queue launches kernels by CUDA graphs.
    pub(super) fn new(
        context: &Arc<Context>,
        budget: &Arc<MemoryBudget>,
        graphs: bool,
    ) -> Result<Arc<Self>> {
        context.enter()?;
        let mut raw = ptr::null_mut();
        // SAFETY: `raw` is valid for writes of a stream handle, and a context is current.
        let result =
            unsafe { cuStreamCreateWithPriority(&mut raw, CU_STREAM_NON_BLOCKING as u32, 0) };
        context.check("cuStreamCreateWithPriority", result)?;
        let stream = Arc::new(Self {
            context: Arc::clone(context),
            budget: Arc::clone(budget),
            raw,
            error_flags: OnceLock::new(),
            spans: Spans::default(),
            deferred: graphs.then(Mutex::default),
            counts: Mutex::default(),
        });
        if graphs {
            let queue: Weak<Self> = Arc::downgrade(&stream);
            context.register(queue);
        }
        Ok(stream)
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
        self.flush();
        let launched = self.deferred.as_ref().map_or(Ok(()), |queue| queue.lock().start_wait());
        let waited = match self.error_flags.get() {
            Some(flags) => flags.wait(|| self.synchronize()),
            None => self.synchronize(),
        };
        launched.and(waited)
    }

    /// Returns whether the queue launches kernels by CUDA graphs.
    pub(super) fn uses_graphs(&self) -> bool {
        self.deferred.is_some()
    }

    /// Returns the counts of the launches so far. Deferred launches are not counted yet.
    pub(super) fn launch_counts(&self) -> LaunchCounts {
        *self.counts.lock()
    }

    /// Launches a kernel, or defers the launch if the queue launches kernels by CUDA graphs. While
    /// the queue records, each kernel is launched at once, because an event before and after the
    /// kernel measures the kernel's time.
    pub(super) fn launch(&self, mut launch: KernelLaunch) -> Result<()> {
        if let Some(deferred) = &self.deferred
            && !self.spans.is_recording()
        {
            let is_full = deferred.lock().push(launch);
            if is_full {
                self.flush();
            }
            return Ok(());
        }
        self.context.enter()?;
        let work = launch.work;
        self.enqueue(|| work, || launch.enqueue(&self.context, self.raw))?;
        self.counts.lock().kernels += 1;
        if launch.reports_values {
            self.report_values();
        }
        Ok(())
    }

    /// Records that a kernel that can report invalid values was launched.
    fn report_values(&self) {
        if let Some(flags) = self.error_flags.get() {
            flags.kernel_was_launched();
        }
    }

    /// Frees memory after all queued and deferred work. No other work may use the memory. The
    /// context must be current.
    pub(super) fn free(&self, address: CUdeviceptr) {
        match &self.deferred {
            Some(deferred) => deferred.lock().free(address, &self.context, self.raw),
            None => self.context.pool.give(address, self.raw),
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

    /// Calls `enqueue`, which queues `work()` after the deferred launches. Records the work's span if the queue records. The
    /// context must be current.
    pub(super) fn enqueue(
        &self,
        work: impl FnOnce() -> DeviceWork,
        enqueue: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        self.flush();
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
        other.flush();
        let event = Event::new().map_err(|failure| other.context.error(failure))?;
        event.record(other.raw).map_err(|failure| other.context.error(failure))?;
        self.context.enter()?;
        self.flush();
        // SAFETY: stream and event are live. The driver keeps a destroyed event alive until no
        // stream waits for the event any more.
        self.context
            .check("cuStreamWaitEvent", unsafe { cuStreamWaitEvent(self.raw, event.raw(), 0) })
    }
}

impl Flush for Stream {
    /// Queues the deferred launches and frees. The next wait returns an error of a launch.
    fn flush(&self) {
        let Some(deferred) = &self.deferred else { return };
        let mut deferred = deferred.lock();
        if deferred.is_empty() || self.context.enter().is_err() {
            return;
        }
        if deferred.flush(&self.context, self.raw, &mut self.counts.lock()) {
            self.report_values();
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if self.context.enter().is_ok() {
            self.flush();
            if let Some(deferred) = &self.deferred {
                deferred.lock().clear(self.raw);
            }
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
