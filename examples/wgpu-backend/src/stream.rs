//! Work recorded for the queue, in order.
//!
//! All streams of a device go to its one queue, and what a stream submits is in order with what
//! was submitted before: a stream is after another as soon as that is flushed.

use crate::device::WgpuDevice;
use parking_lot::Mutex;

/// Launches after which recorded work is handed to the device, to keep it busy meanwhile.
const BATCH: usize = 32;

pub(crate) struct Stream {
    recorded: Mutex<Recorded>,
    /// What this stream's kernels find wrong with values.
    pub complaints: wgpu::Buffer,
    /// Buffers for intermediate results, free for the next kernel that needs one.
    pub scratch: Mutex<Vec<wgpu::Buffer>>,
}

/// Work that was not handed to the queue yet.
#[derive(Default)]
struct Recorded {
    encoder: Option<wgpu::CommandEncoder>,
    pass: Option<wgpu::ComputePass<'static>>,
    launches: usize,
}

impl Stream {
    pub(crate) fn new(complaints: wgpu::Buffer) -> Self {
        Self { recorded: Mutex::default(), complaints, scratch: Mutex::default() }
    }
}

impl WgpuDevice {
    /// Adds one dispatch to the recorded work; `set` says which.
    pub(crate) fn record(&self, set: impl FnOnce(&mut wgpu::ComputePass<'static>)) {
        let recorded = &mut *self.stream.recorded.lock();
        let Recorded { encoder, pass, launches } = recorded;
        set(pass.get_or_insert_with(|| {
            let encoder = encoder.get_or_insert_with(|| self.encoder());
            encoder.begin_compute_pass(&Default::default()).forget_lifetime()
        }));
        *launches += 1;
        if *launches == BATCH {
            self.submit(recorded);
        }
    }

    /// Hands all recorded work to the queue, and then does `last` before any more is recorded.
    pub(crate) fn flush<R>(&self, last: impl FnOnce() -> R) -> R {
        let mut recorded = self.stream.recorded.lock();
        self.submit(&mut recorded);
        last()
    }

    fn submit(&self, recorded: &mut Recorded) {
        drop(recorded.pass.take());
        recorded.launches = 0;
        self.shared.queue.submit(recorded.encoder.take().map(wgpu::CommandEncoder::finish));
    }

    pub(crate) fn encoder(&self) -> wgpu::CommandEncoder {
        self.shared.device.create_command_encoder(&Default::default())
    }
}
