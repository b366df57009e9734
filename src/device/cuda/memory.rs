//! Copies and queues.

use super::{CudaBuffer, CudaDevice, pinned_bytes::PinnedBytes, stream::Stream};
use crate::{
    error::{Error, Result},
    host::Workers,
    memory::{HostBytes, Memory},
};
use cust::sys::{CUdeviceptr, cuMemcpyDtoHAsync_v2, cuMemcpyHtoDAsync_v2};
use std::sync::Arc;

impl Memory for CudaDevice {
    type Buffer = CudaBuffer;

    fn name(&self) -> String {
        self.context().name.clone()
    }

    fn alloc(&self, bytes: usize) -> Result<CudaBuffer> {
        CudaBuffer::zeroed(&self.stream, bytes)
    }

    fn upload(&self, src: &[u8], dst: &mut CudaBuffer, at: usize) -> Result<()> {
        let Some(address) = self.part(dst, at, src.len())? else { return Ok(()) };
        // SAFETY: both are of `src.len()` bytes, and `src` is borrowed until the copy is done.
        let copied = unsafe {
            cuMemcpyHtoDAsync_v2(address, src.as_ptr().cast(), src.len(), self.stream.raw())
        };
        self.context().check("cuMemcpyHtoDAsync", copied)?;
        self.stream.wait()
    }

    fn download(&self, src: &CudaBuffer, at: usize, dst: &mut [u8]) -> Result<()> {
        let Some(address) = self.part(src, at, dst.len())? else { return Ok(()) };
        // SAFETY: both are of `dst.len()` bytes, and `dst` is borrowed until the copy is done.
        let copied = unsafe {
            cuMemcpyDtoHAsync_v2(dst.as_mut_ptr().cast(), address, dst.len(), self.stream.raw())
        };
        self.context().check("cuMemcpyDtoHAsync", copied)?;
        self.stream.wait()
    }

    fn synchronize(&self) -> Result<()> {
        self.stream.wait()
    }

    fn fork_queue(&self) -> Result<Self> {
        let stream = Arc::new(Stream::new(self.context())?);
        let cublas = self.cublas.as_ref().map(|cublas| Arc::new(cublas.fork(&stream)));
        Ok(Self { stream, workers: self.workers.clone(), cublas, tf32: self.tf32 })
    }

    fn order_after(&self, other: &Self) -> Result<()> {
        self.stream.after(&other.stream)
    }

    /// Pinned where that pays.
    fn alloc_host(&self, bytes: usize) -> Result<HostBytes> {
        match PinnedBytes::zeroed(self.context(), bytes) {
            Some(pinned) => Ok(HostBytes::adopt(pinned)),
            None => HostBytes::zeroed(bytes),
        }
    }

    fn host_workers(&self) -> &Workers {
        &self.workers
    }

    fn properties(&self) -> Vec<(&'static str, String)> {
        let mut properties = self.context().properties();
        let cublas = self.cublas.as_ref().and_then(|cublas| cublas.version());
        properties.extend(cublas.map(|version| ("cuBLAS", version)));
        properties
    }
}

impl CudaDevice {
    /// The address of `bytes` bytes of a buffer from `at` for a copy on this queue, which is
    /// entered; nothing if there are none.
    fn part(&self, buffer: &CudaBuffer, at: usize, bytes: usize) -> Result<Option<CUdeviceptr>> {
        let end = at.checked_add(bytes).filter(|end| *end <= buffer.len());
        if end.is_none() {
            let (end, len) = (at.saturating_add(bytes), buffer.len());
            return Err(Error::Range { what: "a buffer", start: at, end, len });
        }
        if bytes == 0 {
            return Ok(None);
        }
        self.context().enter()?;
        Ok(Some(buffer.used_by(&self.stream) + at as u64))
    }
}
