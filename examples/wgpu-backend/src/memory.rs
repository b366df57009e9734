//! Memory: buffers of whole words, and copies of any bytes of them.

use crate::{
    complaints,
    device::{WgpuDevice, failed},
};
use cortado::{Error, Memory, Result};
use pollster::block_on;
use std::{ops::Range, sync::Arc};
use wgpu::BufferUsages;

impl Memory for WgpuDevice {
    type Buffer = wgpu::Buffer;

    fn name(&self) -> String {
        "wgpu".into()
    }

    fn alloc(&self, bytes: usize) -> Result<wgpu::Buffer> {
        self.buffer(bytes, BufferUsages::STORAGE | BufferUsages::COPY_SRC)
    }

    fn upload(&self, src: &[u8], dst: &mut wgpu::Buffer, at: usize) -> Result<()> {
        let words = words(at, src.len());
        if words == (at..at + src.len()) {
            self.flush(|| self.shared.queue.write_buffer(dst, at as u64, src));
            return Ok(());
        }
        let mut whole = vec![0; words.len()];
        self.download(dst, words.start, &mut whole)?;
        whole[at - words.start..][..src.len()].copy_from_slice(src);
        self.upload(&whole, dst, words.start)
    }

    fn download(&self, src: &wgpu::Buffer, at: usize, dst: &mut [u8]) -> Result<()> {
        if dst.is_empty() {
            return Ok(());
        }
        let words = words(at, dst.len());
        let mapped = self.settle(Some((src, words.clone())))?;
        dst.copy_from_slice(&mapped[at - words.start..][..dst.len()]);
        Ok(())
    }

    fn synchronize(&self) -> Result<()> {
        self.settle(None).map(|_| ())
    }

    fn fork(&self) -> Result<Self> {
        Ok(self.forked())
    }

    /// Streams of one device share its queue, which is in order by itself.
    fn after(&self, other: &Self) -> Result<()> {
        if !Arc::ptr_eq(&self.shared, &other.shared) {
            return other.synchronize();
        }
        other.flush(|| ());
        Ok(())
    }
}

impl WgpuDevice {
    /// Waits for all work, and fetches whole words of a buffer. What was wrong with values that
    /// kernels met is an error here, and then forgotten.
    fn settle(&self, src: Option<(&wgpu::Buffer, Range<usize>)>) -> Result<Vec<u8>> {
        let bytes = src.as_ref().map_or(0, |(_, words)| words.len());
        let complaints = &self.stream.complaints;
        let near = self.buffer(bytes + complaints.size() as usize, BufferUsages::MAP_READ)?;
        let mut encoder = self.encoder();
        if let Some((src, words)) = src {
            encoder.copy_buffer_to_buffer(src, words.start as u64, &near, 0, bytes as u64);
        }
        encoder.copy_buffer_to_buffer(complaints, 0, &near, bytes as u64, complaints.size());
        self.flush(|| self.shared.queue.submit([encoder.finish()]));
        near.map_async(wgpu::MapMode::Read, .., |_| ());
        self.wait()?;
        let mut mapped = near.get_mapped_range(..).map_err(failed)?.to_vec();
        if let Some(error) = complaints::error(&mapped[bytes..]) {
            self.flush(|| self.shared.queue.write_buffer(complaints, 0, &complaints::NONE));
            return Err(error);
        }
        mapped.truncate(bytes);
        Ok(mapped)
    }

    /// A buffer of whole words that hold `bytes`. wgpu zeroes what nobody wrote.
    pub(crate) fn buffer(&self, bytes: usize, usage: BufferUsages) -> Result<wgpu::Buffer> {
        let too_large = || Error::OutOfMemory { device: self.name(), bytes };
        let size = (bytes as u64).max(4).checked_next_multiple_of(4).ok_or_else(too_large)?;
        let limits = &self.shared.limits;
        // What cannot be bound is of no use to kernels.
        if size > limits.max_buffer_size.min(limits.max_storage_buffer_binding_size) {
            return Err(too_large());
        }
        let scope = self.shared.device.push_error_scope(wgpu::ErrorFilter::OutOfMemory);
        let buffer = self.shared.device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size,
            usage: usage | BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        block_on(scope.pop()).map_or(Ok(buffer), |_| Err(too_large()))
    }
}

/// The whole words about `len` bytes from `at` on, in bytes.
fn words(at: usize, len: usize) -> Range<usize> {
    at / 4 * 4..(at + len).next_multiple_of(4)
}
