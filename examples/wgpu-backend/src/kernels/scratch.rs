//! Buffers for intermediate results.

use crate::device::WgpuDevice;
use cortado::{
    Memory, Result,
    ledger::{self, Kind},
};
use std::ops::Deref;
use wgpu::BufferUsages;

/// Buffers kept at most.
const KEPT: usize = 8;

/// A buffer that goes back to its stream when dropped. Work that uses it may still be queued: the
/// stream is in order, so whoever gets it next does not disturb that.
pub(super) struct Scratch<'d> {
    device: &'d WgpuDevice,
    buffer: wgpu::Buffer,
}

impl<'d> Scratch<'d> {
    /// Room for `len` elements of 4 bytes, of any values.
    pub(super) fn new(device: &'d WgpuDevice, len: usize) -> Result<Self> {
        let bytes = 4 * len.max(1).next_power_of_two();
        let kept = &mut device.stream.scratch.lock();
        let fits = kept.iter().position(|buffer| buffer.size() >= bytes as u64);
        let buffer = match fits {
            Some(at) => kept.swap_remove(at),
            None => device.buffer(bytes, BufferUsages::STORAGE | BufferUsages::COPY_SRC)?,
        };
        Ok(Self { device, buffer })
    }

    /// Its first element, on the host.
    #[track_caller]
    pub(super) fn first(&self) -> Result<f32> {
        let mut bytes = [0; 4];
        ledger::transfer(self.device, Kind::Download, 4, || {
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
        let kept = &mut self.device.stream.scratch.lock();
        if kept.len() == KEPT {
            kept.remove(0);
        }
        kept.push(self.buffer.clone());
    }
}
