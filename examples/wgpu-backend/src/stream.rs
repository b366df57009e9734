//! In-order stream of recorded work for wgpu's queue.
//!
//! All streams of a device submit to one queue, which runs submissions in order, so work that one
//! stream has submitted runs before all work that any stream submits later.

use crate::device::Driver;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Number of recorded launches after which a stream submits its work, so that the device starts
/// while the host records more launches.
const BATCH: usize = 32;

pub(crate) struct Stream {
    work: Mutex<RecordedWork>,
    /// Error flags, by which the kernels of this stream report invalid values.
    pub kernel_errors: wgpu::Buffer,
}

/// Recorded work that has not been submitted to the queue yet.
#[derive(Default)]
struct RecordedWork {
    encoder: Option<wgpu::CommandEncoder>,
    pass: Option<wgpu::ComputePass<'static>>,
    launches: usize,
}

/// Locks `mutex`, even if a thread has panicked while it held the lock.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Stream {
    pub(crate) fn new(kernel_errors: wgpu::Buffer) -> Self {
        Self { work: Mutex::default(), kernel_errors }
    }
}

impl Driver {
    /// Records one kernel launch, which `dispatch` adds to the compute pass.
    pub(crate) fn record(&self, dispatch: impl FnOnce(&mut wgpu::ComputePass<'static>)) {
        let work = &mut *lock(&self.stream.work);
        let RecordedWork { encoder, pass, launches } = work;
        dispatch(pass.get_or_insert_with(|| {
            let encoder = encoder.get_or_insert_with(|| self.encoder());
            encoder.begin_compute_pass(&Default::default()).forget_lifetime()
        }));
        *launches += 1;
        if *launches == BATCH {
            self.submit(work);
        }
    }

    /// Submits all recorded work, then calls `then`; until `then` returns, no thread can record
    /// further work.
    pub(crate) fn flush<R>(&self, then: impl FnOnce() -> R) -> R {
        let mut work = lock(&self.stream.work);
        self.submit(&mut work);
        then()
    }

    fn submit(&self, work: &mut RecordedWork) {
        drop(work.pass.take());
        work.launches = 0;
        self.context.queue.submit(work.encoder.take().map(wgpu::CommandEncoder::finish));
    }

    pub(crate) fn encoder(&self) -> wgpu::CommandEncoder {
        self.context.device.create_command_encoder(&Default::default())
    }
}
