//! Scratch buffers for the intermediate results of kernels.

use crate::device::{Driver, WgpuDevice};
use cortado::{
    Memory, Result,
    ledger::{self, EventKind},
    memory::PooledBuffer,
};
use std::ops::Deref;

/// A scratch buffer that returns to the device's pool of workspaces when the `Scratch` is dropped.
/// A `Scratch` may be dropped while queued work still uses its buffer, because the pool reuses
/// memory in queue order.
pub(super) struct Scratch<'d> {
    device: &'d WgpuDevice,
    buffer: PooledBuffer<Driver>,
}

impl<'d> Scratch<'d> {
    /// Returns a buffer for `len` elements of 4 bytes, with arbitrary values.
    pub(super) fn new(device: &'d WgpuDevice, len: usize) -> Result<Self> {
        let buffer = device.workspaces.alloc_workspace(4 * len.max(1))?;
        Ok(Self { device, buffer })
    }

    /// Downloads the first element of the buffer.
    #[track_caller]
    pub(super) fn first(&self) -> Result<f32> {
        let mut bytes = [0; 4];
        ledger::record_transfer(self.device, EventKind::Download, 4, || {
            self.device.download(&self.buffer, 0, &mut bytes)
        })?;
        Ok(f32::from_ne_bytes(bytes))
    }
}

impl Deref for Scratch<'_> {
    type Target = wgpu::Buffer;
    fn deref(&self) -> &wgpu::Buffer {
        &self.buffer
    }
}
