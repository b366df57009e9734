//! CUDA events, which mark positions in a queue.

use super::error::{CudaFailure, check_driver};
use cust::sys::{
    CUevent,
    CUevent_flags_enum::{self as Flags, CU_EVENT_DEFAULT, CU_EVENT_DISABLE_TIMING},
    CUstream, cuEventCreate, cuEventDestroy_v2, cuEventElapsedTime, cuEventRecord,
};
use std::{ptr, time::Duration};

/// A CUDA event.
pub(super) struct Event(CUevent);

// SAFETY: any thread may pass an event to the driver's functions.
unsafe impl Send for Event {}

impl Event {
    /// Creates an event without a time in the current context.
    pub(super) fn new() -> Result<Self, CudaFailure> {
        Self::with_flags(CU_EVENT_DISABLE_TIMING)
    }

    /// Creates an event in the current context. The event stores the time at which it occurs.
    pub(super) fn timed() -> Result<Self, CudaFailure> {
        Self::with_flags(CU_EVENT_DEFAULT)
    }

    fn with_flags(flags: Flags) -> Result<Self, CudaFailure> {
        let mut raw = ptr::null_mut();
        // SAFETY: `raw` is valid for writes of an event handle.
        check_driver("cuEventCreate", unsafe { cuEventCreate(&mut raw, flags as u32) })?;
        Ok(Self(raw))
    }

    pub(super) fn raw(&self) -> CUevent {
        self.0
    }

    /// Records the event in a stream: the event occurs when the work that is already in the stream
    /// is done. Stream and event must belong to the current context.
    pub(super) fn record(&self, stream: CUstream) -> Result<(), CudaFailure> {
        // SAFETY: `self` owns the event, and the caller owns the stream.
        check_driver("cuEventRecord", unsafe { cuEventRecord(self.0, stream) })
    }

    /// Returns the time from this timed event to the timed event `end`. This event and `end` must
    /// have occurred.
    pub(super) fn elapsed_until(&self, end: &Self) -> Result<Duration, CudaFailure> {
        let mut milliseconds = 0.0;
        // SAFETY: both events are live, and `milliseconds` is valid for writes.
        let result = unsafe { cuEventElapsedTime(&mut milliseconds, self.0, end.0) };
        check_driver("cuEventElapsedTime", result)?;
        Ok(Duration::from_secs_f64(f64::from(milliseconds.max(0.0)) / 1e3))
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: `self` owns the event.
        let _ = unsafe { cuEventDestroy_v2(self.0) };
    }
}
