//! Memory of a GPU, taken and given back in the order of a queue.

use super::error::{CudaFailure, check_driver};
use cust::sys::{
    CUdeviceptr, CUmemAllocationHandleType_enum::CU_MEM_HANDLE_TYPE_NONE,
    CUmemAllocationType_enum::CU_MEM_ALLOCATION_TYPE_PINNED, CUmemLocation_st,
    CUmemLocationType_enum::CU_MEM_LOCATION_TYPE_DEVICE,
    CUmemPool_attribute_enum::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, CUmemPoolProps_st, CUmemoryPool,
    CUresult, CUstream, cuMemAllocFromPoolAsync, cuMemFreeAsync, cuMemPoolCreate, cuMemPoolDestroy,
    cuMemPoolSetAttribute, cuMemPoolTrimTo,
};
use std::{
    ptr,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

/// A pool that keeps what was given back, until [`release`](Self::release).
pub(super) struct MemoryPool {
    raw: CUmemoryPool,
    limit: usize,
    /// Bytes taken and not given back yet.
    held: AtomicUsize,
}

// SAFETY: the driver's functions may be called from any thread with any pool.
unsafe impl Send for MemoryPool {}
// SAFETY: as above.
unsafe impl Sync for MemoryPool {}

impl MemoryPool {
    /// On the GPU of this number, of at most `limit` bytes.
    pub(super) fn new(ordinal: u32, limit: Option<usize>) -> Result<Self, CudaFailure> {
        let properties = CUmemPoolProps_st {
            allocType: CU_MEM_ALLOCATION_TYPE_PINNED,
            handleTypes: CU_MEM_HANDLE_TYPE_NONE,
            location: CUmemLocation_st { type_: CU_MEM_LOCATION_TYPE_DEVICE, id: ordinal as i32 },
            win32SecurityAttributes: ptr::null_mut(),
            reserved: [0; 64],
        };
        let mut raw = ptr::null_mut();
        // SAFETY: there is room for the pool, and the properties are filled.
        check_driver("cuMemPoolCreate", unsafe { cuMemPoolCreate(&mut raw, &properties) })?;
        let pool = Self { raw, limit: limit.unwrap_or(usize::MAX), held: AtomicUsize::new(0) };
        let mut keep = u64::MAX;
        // SAFETY: the attribute is a `u64`, which is read during the call.
        let set = unsafe {
            cuMemPoolSetAttribute(raw, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, (&raw mut keep).cast())
        };
        check_driver("cuMemPoolSetAttribute", set)?;
        Ok(pool)
    }

    /// `bytes` bytes of any content, for work on `stream` from now on.
    pub(super) fn take(&self, bytes: usize, stream: CUstream) -> Result<CUdeviceptr, CudaFailure> {
        let within = |held: usize| held.checked_add(bytes).filter(|held| *held <= self.limit);
        if self.held.fetch_update(Relaxed, Relaxed, within).is_err() {
            return check_driver("cuMemAllocFromPoolAsync", CUresult::CUDA_ERROR_OUT_OF_MEMORY)
                .map(|()| 0);
        }
        let mut address = 0;
        // SAFETY: pool and stream live, and there is room for the address.
        let taken = unsafe { cuMemAllocFromPoolAsync(&mut address, bytes, self.raw, stream) };
        check_driver("cuMemAllocFromPoolAsync", taken).inspect_err(|_| self.forget(bytes))?;
        Ok(address)
    }

    /// Gives `bytes` bytes back, which nothing but work that `stream` already has may use.
    pub(super) fn give(&self, address: CUdeviceptr, bytes: usize, stream: CUstream) {
        // SAFETY: the bytes were taken from this pool, and nobody has their address any more.
        let _ = unsafe { cuMemFreeAsync(address, stream) };
        self.forget(bytes);
    }

    fn forget(&self, bytes: usize) {
        self.held.fetch_sub(bytes, Relaxed);
    }

    /// Gives the GPU what the pool keeps and nobody uses.
    pub(super) fn release(&self) -> Result<(), CudaFailure> {
        // SAFETY: the pool lives.
        check_driver("cuMemPoolTrimTo", unsafe { cuMemPoolTrimTo(self.raw, 0) })
    }
}

impl Drop for MemoryPool {
    fn drop(&mut self) {
        // SAFETY: nobody else has the pool. What is still to be given back is waited for.
        let _ = unsafe { cuMemPoolDestroy(self.raw) };
    }
}
