//! Memory of the device: buffers of whole words, and copies of any byte range of a buffer.

use crate::{
    device::{Driver, WgpuDevice, wgpu_error},
    kernel_errors,
};
use cortado::{Error, Memory, Result};
use pollster::block_on;
use std::{ops::Range, sync::Arc};
use wgpu::BufferUsages;

impl Memory for WgpuDevice {
    type Buffer = wgpu::Buffer;

    fn name(&self) -> String {
        self.driver.name()
    }
    fn alloc(&self, bytes: usize) -> Result<wgpu::Buffer> {
        self.driver.alloc(bytes)
    }
    fn upload(&self, src: &[u8], dst: &mut wgpu::Buffer, at: usize) -> Result<()> {
        self.driver.upload(src, dst, at)
    }
    fn download(&self, src: &wgpu::Buffer, at: usize, dst: &mut [u8]) -> Result<()> {
        self.driver.download(src, at, dst)
    }
    fn synchronize(&self) -> Result<()> {
        self.driver.synchronize()
    }
    fn fork_queue(&self) -> Result<Self> {
        Ok(self.with_driver(self.driver.fork_queue()?))
    }
    fn order_after(&self, other: &Self) -> Result<()> {
        self.driver.order_after(&other.driver)
    }
}

impl Memory for Driver {
    type Buffer = wgpu::Buffer;

    fn name(&self) -> String {
        "wgpu".into()
    }

    fn alloc(&self, bytes: usize) -> Result<wgpu::Buffer> {
        self.buffer(bytes, BufferUsages::STORAGE | BufferUsages::COPY_SRC)
    }

    fn upload(&self, src: &[u8], dst: &mut wgpu::Buffer, at: usize) -> Result<()> {
        let words = word_range(at, src.len());
        if words == (at..at + src.len()) {
            self.flush(|| self.context.queue.write_buffer(dst, at as u64, src));
            return Ok(());
        }
        let mut word_bytes = vec![0; words.len()];
        self.download(dst, words.start, &mut word_bytes)?;
        word_bytes[at - words.start..][..src.len()].copy_from_slice(src);
        self.upload(&word_bytes, dst, words.start)
    }

    fn download(&self, src: &wgpu::Buffer, at: usize, dst: &mut [u8]) -> Result<()> {
        if dst.is_empty() {
            return Ok(());
        }
        let words = word_range(at, dst.len());
        let bytes = self.wait_and_read(Some((src, words.clone())))?;
        dst.copy_from_slice(&bytes[at - words.start..][..dst.len()]);
        Ok(())
    }

    fn synchronize(&self) -> Result<()> {
        self.wait_and_read(None).map(|_| ())
    }

    fn fork_queue(&self) -> Result<Self> {
        Ok(self.with_new_stream())
    }

    /// Streams of one device share an in-order queue, so `order_after` only has to submit the work
    /// of `other`.
    fn order_after(&self, other: &Self) -> Result<()> {
        if !Arc::ptr_eq(&self.context, &other.context) {
            return other.synchronize();
        }
        other.flush(|| ());
        Ok(())
    }
}

impl Driver {
    /// Waits for all work, and returns the bytes in the word-aligned range of `src`, or no bytes if
    /// `src` is `None`. If a kernel has reported an invalid value, clears the stream's error flags
    /// and returns an error.
    fn wait_and_read(&self, src: Option<(&wgpu::Buffer, Range<usize>)>) -> Result<Vec<u8>> {
        let bytes = src.as_ref().map_or(0, |(_, words)| words.len());
        let flags = &self.stream.kernel_errors;
        let staging = self.buffer(bytes + flags.size() as usize, BufferUsages::MAP_READ)?;
        let mut encoder = self.encoder();
        if let Some((src, words)) = src {
            encoder.copy_buffer_to_buffer(src, words.start as u64, &staging, 0, bytes as u64);
        }
        encoder.copy_buffer_to_buffer(flags, 0, &staging, bytes as u64, flags.size());
        self.flush(|| self.context.queue.submit([encoder.finish()]));
        staging.map_async(wgpu::MapMode::Read, .., |_| ());
        self.wait()?;
        let mut contents = staging.get_mapped_range(..).map_err(wgpu_error)?.to_vec();
        if let Some(error) = kernel_errors::error(&contents[bytes..]) {
            self.flush(|| self.context.queue.write_buffer(flags, 0, &kernel_errors::CLEARED));
            return Err(error);
        }
        contents.truncate(bytes);
        Ok(contents)
    }

    /// Creates a zeroed buffer of at least `bytes` bytes, rounded up to whole words.
    pub(crate) fn buffer(&self, bytes: usize, usage: BufferUsages) -> Result<wgpu::Buffer> {
        let out_of_memory = || Error::OutOfMemory { device: self.name(), bytes };
        let size = (bytes as u64).max(4).checked_next_multiple_of(4).ok_or_else(out_of_memory)?;
        let limits = &self.context.limits;
        // Kernels cannot bind a buffer that is larger than `max_storage_buffer_binding_size`.
        if size > limits.max_buffer_size.min(limits.max_storage_buffer_binding_size) {
            return Err(out_of_memory());
        }
        let scope = self.context.device.push_error_scope(wgpu::ErrorFilter::OutOfMemory);
        let buffer = self.context.device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size,
            usage: usage | BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        block_on(scope.pop()).map_or(Ok(buffer), |_| Err(out_of_memory()))
    }
}

/// Returns the byte range of the words that contain `len` bytes from `at` on.
fn word_range(at: usize, len: usize) -> Range<usize> {
    at / 4 * 4..(at + len).next_multiple_of(4)
}
