//! Scratch buffers for the intermediate results of kernels.

use crate::{device::WgpuDevice, stream::lock};
use cortado::{
    Memory, Result,
    ledger::{self, EventKind},
};
use std::ops::Deref;
use wgpu::BufferUsages;

/// Largest number of scratch buffers that a stream caches.
const MAX_CACHED_BUFFERS: usize = 8;

/// A scratch buffer, which a stream caches for reuse when the `Scratch` is dropped. Queued work may
/// still use a dropped buffer: the stream runs work in order, so a kernel that reuses the buffer
/// runs later.
pub(super) struct Scratch<'d> {
    device: &'d WgpuDevice,
    buffer: wgpu::Buffer,
}

impl<'d> Scratch<'d> {
    /// Returns a buffer for `len` elements of 4 bytes, with arbitrary values.
    pub(super) fn new(device: &'d WgpuDevice, len: usize) -> Result<Self> {
        let bytes = 4 * len.max(1).next_power_of_two();
        let cached = &mut lock(&device.stream.scratch);
        let fit = cached.iter().position(|buffer| buffer.size() >= bytes as u64);
        let buffer = match fit {
            Some(at) => cached.swap_remove(at),
            None => device.buffer(bytes, BufferUsages::STORAGE | BufferUsages::COPY_SRC)?,
        };
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

impl Drop for Scratch<'_> {
    fn drop(&mut self) {
        let cached = &mut lock(&self.device.stream.scratch);
        if cached.len() == MAX_CACHED_BUFFERS {
            cached.remove(0);
        }
        cached.push(self.buffer.clone());
    }
}
