//! Queues of work, and how they wait for each other.

use super::{
    context::Context,
    error::{CudaFailure, check_driver},
    kernel_errors::KernelErrorFlags,
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

/// A queue of a device's work. Dropped, it ends when its work is done.
pub(super) struct Stream {
    pub(super) context: Arc<Context>,
    raw: CUstream,
    /// Once there is a kernel that may complain.
    complaints: OnceLock<KernelErrorFlags>,
}

// SAFETY: the driver's functions may be called from any thread with any stream.
unsafe impl Send for Stream {}
// SAFETY: as above.
unsafe impl Sync for Stream {}

impl Stream {
    /// A queue that no other one waits for, the driver's default one included: those of `cust`
    /// always do.
    pub(super) fn new(context: &Arc<Context>) -> Result<Self> {
        context.enter()?;
        let mut raw = ptr::null_mut();
        // SAFETY: there is room for the stream, and a context is current.
        let made =
            unsafe { cuStreamCreateWithPriority(&mut raw, CU_STREAM_NON_BLOCKING as u32, 0) };
        context.check("cuStreamCreateWithPriority", made)?;
        Ok(Self { context: Arc::clone(context), raw, complaints: OnceLock::new() })
    }

    pub(super) fn raw(&self) -> CUstream {
        self.raw
    }

    /// Where kernels of this queue complain of values.
    pub(super) fn complaints(&self) -> Result<&KernelErrorFlags> {
        if let Some(known) = self.complaints.get() {
            return Ok(known);
        }
        self.context.enter()?;
        let new = KernelErrorFlags::new().map_err(|failure| self.context.error(failure))?;
        Ok(self.complaints.get_or_init(|| new))
    }

    /// Waits for all that was queued so far; what it complained of is an error.
    pub(super) fn wait(&self) -> Result<()> {
        self.context.enter()?;
        // SAFETY: the stream lives.
        let waited = unsafe { cuStreamSynchronize(self.raw) };
        self.context.check("cuStreamSynchronize", waited)?;
        self.context.launches.done(self.raw);
        self.complaints.get().and_then(KernelErrorFlags::take).map_or(Ok(()), Err)
    }

    /// Makes later work wait for what `other` has queued so far.
    pub(super) fn after(&self, other: &Self) -> Result<()> {
        if ptr::eq(self, other) {
            return Ok(());
        }
        other.context.enter()?;
        let event = Event::new().map_err(|failure| failure.on(&other.context.name))?;
        // SAFETY: event and stream are of the context that is current.
        other.context.check("cuEventRecord", unsafe { cuEventRecord(event.0, other.raw) })?;
        self.context.enter()?;
        // SAFETY: both live. The event may end before the wait does: the driver keeps it.
        self.context.check("cuStreamWaitEvent", unsafe { cuStreamWaitEvent(self.raw, event.0, 0) })
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if self.context.enter().is_ok() {
            if self.complaints.get().is_some() {
                // What may still complain needs where to.
                // SAFETY: the stream lives.
                let _ = unsafe { cuStreamSynchronize(self.raw) };
            }
            // SAFETY: nobody else has the stream. What is queued still runs.
            let _ = unsafe { cuStreamDestroy_v2(self.raw) };
        }
    }
}

/// A mark in a queue.
struct Event(CUevent);

impl Event {
    /// In the context that is current.
    fn new() -> Result<Self, CudaFailure> {
        let mut raw = ptr::null_mut();
        // SAFETY: there is room for the event.
        check_driver("cuEventCreate", unsafe {
            cuEventCreate(&mut raw, CU_EVENT_DISABLE_TIMING as u32)
        })?;
        Ok(Self(raw))
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: nobody else has the event.
        let _ = unsafe { cuEventDestroy_v2(self.0) };
    }
}
