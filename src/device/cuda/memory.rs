//! Memory of NVIDIA GPUs: allocation, copies between host and GPU, and queues.

use super::{CudaBuffer, CudaDevice, pinned_bytes::PinnedBytes, stream::Stream};
use crate::{
    error::{Error, Result},
    host::Workers,
    memory::{CompiledHere, DeviceSpan, DeviceWork, HostBytes, Memory, MemoryUsage},
};
use cust::sys::{CUdeviceptr, cuMemcpyDtoHAsync_v2, cuMemcpyHtoDAsync_v2};
use std::sync::Arc;

impl Memory for CudaDevice {
    type Buffer = CudaBuffer;
    const COMPILED_HERE: CompiledHere = CompiledHere::YES;

    fn name(&self) -> String {
        self.context().name.clone()
    }

    fn alloc(&self, bytes: usize) -> Result<CudaBuffer> {
        CudaBuffer::zeroed(&self.stream, bytes)
    }

    fn upload(&self, src: &[u8], dst: &mut CudaBuffer, offset: usize) -> Result<()> {
        let Some(address) = self.copy_address(dst, offset, src.len())? else { return Ok(()) };
        let (start, bytes) = (src.as_ptr().cast(), src.len());
        // SAFETY: `copy_address` checked that `dst` holds `src.len()` bytes starting at `address`.
        // `wait` returns when the copy is done, and `src` stays borrowed until then, even if the
        // recording of the copy's span fails.
        let copy = || unsafe { cuMemcpyHtoDAsync_v2(address, start, bytes, self.stream.raw()) };
        let copy = || self.context().check("cuMemcpyHtoDAsync", copy());
        let queued = self.stream.enqueue(|| DeviceWork::Upload { bytes }, copy);
        queued.and(self.stream.wait())
    }

    fn download(&self, src: &CudaBuffer, offset: usize, dst: &mut [u8]) -> Result<()> {
        let Some(address) = self.copy_address(src, offset, dst.len())? else { return Ok(()) };
        let (start, bytes) = (dst.as_mut_ptr().cast(), dst.len());
        // SAFETY: `copy_address` checked that `src` holds `dst.len()` bytes starting at `address`.
        // `wait` returns when the copy is done, and `dst` stays borrowed until then, even if the
        // recording of the copy's span fails.
        let copy = || unsafe { cuMemcpyDtoHAsync_v2(start, address, bytes, self.stream.raw()) };
        let copy = || self.context().check("cuMemcpyDtoHAsync", copy());
        let queued = self.stream.enqueue(|| DeviceWork::Download { bytes }, copy);
        queued.and(self.stream.wait())
    }

    fn synchronize(&self) -> Result<()> {
        self.stream.wait()
    }

    fn queue_id(&self) -> Option<usize> {
        Some(Arc::as_ptr(&self.stream).addr())
    }

    fn fork_queue(&self) -> Result<Self> {
        let graphs = self.stream.uses_graphs();
        let stream = Stream::new(self.context(), &self.stream.budget, graphs)?;
        let gemm_library = self.gemm_library.fork(&stream);
        Ok(Self { stream, gemm_library, ..self.clone() })
    }

    fn order_after(&self, other: &Self) -> Result<()> {
        self.stream.order_after(&other.stream)
    }

    /// Allocates pinned host memory, or pageable host memory if the size is small or pinning fails.
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
        properties.extend(self.gemm_library.properties());
        properties
    }

    fn memory_usage(&self) -> Result<Option<MemoryUsage>> {
        self.context().memory_usage().map(Some)
    }

    fn record_spans(&self, on: bool) -> Result<bool> {
        self.stream.record_spans(on)?;
        Ok(true)
    }

    fn take_spans(&self) -> Result<Vec<DeviceSpan>> {
        self.stream.take_spans()
    }
}

impl CudaDevice {
    /// Returns the device address of byte `offset` of a buffer for a copy on this queue, and makes
    /// the context current. Returns `None` if `bytes` is 0.
    ///
    /// # Errors
    /// [`Error::Range`] if the buffer does not hold `bytes` bytes starting at `offset`.
    fn copy_address(
        &self,
        buffer: &CudaBuffer,
        offset: usize,
        bytes: usize,
    ) -> Result<Option<CUdeviceptr>> {
        let end = offset.checked_add(bytes).filter(|end| *end <= buffer.len());
        if end.is_none() {
            let (end, len) = (offset.saturating_add(bytes), buffer.len());
            return Err(Error::Range { what: "a buffer", start: offset, end, len });
        }
        if bytes == 0 {
            return Ok(None);
        }
        self.context().enter()?;
        Ok(Some(buffer.used_by(&self.stream) + offset as u64))
    }
}
