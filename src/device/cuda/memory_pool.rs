//! Stream-ordered pool of device memory: allocations and frees take effect in queue order.

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

/// Pool of device memory, which caches freed memory until [`release`](Self::release).
pub(super) struct MemoryPool {
    raw: CUmemoryPool,
    /// Largest allowed value of `in_use`, in bytes.
    limit: usize,
    /// Number of bytes that are allocated and not yet freed.
    in_use: AtomicUsize,
}

// SAFETY: any thread may pass a pool to the driver's functions.
unsafe impl Send for MemoryPool {}
// SAFETY: the driver's functions are thread-safe.
unsafe impl Sync for MemoryPool {}

impl MemoryPool {
    /// Creates a pool of at most `limit` bytes on GPU number `ordinal`.
    pub(super) fn new(ordinal: u32, limit: Option<usize>) -> Result<Self, CudaFailure> {
        let properties = CUmemPoolProps_st {
            allocType: CU_MEM_ALLOCATION_TYPE_PINNED,
            handleTypes: CU_MEM_HANDLE_TYPE_NONE,
            location: CUmemLocation_st { type_: CU_MEM_LOCATION_TYPE_DEVICE, id: ordinal as i32 },
            win32SecurityAttributes: ptr::null_mut(),
            reserved: [0; 64],
        };
        let mut raw = ptr::null_mut();
        // SAFETY: `raw` is valid for writes of a pool handle, and all fields of `properties` are
        // set.
        check_driver("cuMemPoolCreate", unsafe { cuMemPoolCreate(&mut raw, &properties) })?;
        let pool = Self { raw, limit: limit.unwrap_or(usize::MAX), in_use: AtomicUsize::new(0) };
        let mut bytes = u64::MAX;
        // SAFETY: the release threshold is a `u64`, which the driver reads during the call.
        let set = unsafe {
            cuMemPoolSetAttribute(raw, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, (&raw mut bytes).cast())
        };
        check_driver("cuMemPoolSetAttribute", set)?;
        Ok(pool)
    }

    /// Allocates `bytes` uninitialized bytes, for work that the caller queues on `stream` after the
    /// call.
    pub(super) fn take(&self, bytes: usize, stream: CUstream) -> Result<CUdeviceptr, CudaFailure> {
        let add = |in_use: usize| in_use.checked_add(bytes).filter(|sum| *sum <= self.limit);
        if self.in_use.fetch_update(Relaxed, Relaxed, add).is_err() {
            return check_driver("cuMemAllocFromPoolAsync", CUresult::CUDA_ERROR_OUT_OF_MEMORY)
                .map(|()| 0);
        }
        let mut address = 0;
        // SAFETY: pool and stream are live, and `address` is valid for writes of a device address.
        let result = unsafe { cuMemAllocFromPoolAsync(&mut address, bytes, self.raw, stream) };
        check_driver("cuMemAllocFromPoolAsync", result).inspect_err(|_| self.count_freed(bytes))?;
        Ok(address)
    }

    /// Frees `bytes` bytes at `address` when the work that is already queued on `stream` is done.
    /// No other work may use the freed bytes.
    pub(super) fn give(&self, address: CUdeviceptr, bytes: usize, stream: CUstream) {
        // SAFETY: `CudaBuffer::drop`, the only caller, passes memory from this pool, and no copy of
        // the address remains after the call. The caller has ordered `stream` after the other
        // queues that used the memory.
        let _ = unsafe { cuMemFreeAsync(address, stream) };
        self.count_freed(bytes);
    }

    fn count_freed(&self, bytes: usize) {
        self.in_use.fetch_sub(bytes, Relaxed);
    }

    /// Returns the pool's cached memory to the GPU.
    pub(super) fn release(&self) -> Result<(), CudaFailure> {
        // SAFETY: `raw` is live until `self` is dropped.
        check_driver("cuMemPoolTrimTo", unsafe { cuMemPoolTrimTo(self.raw, 0) })
    }
}

impl Drop for MemoryPool {
    fn drop(&mut self) {
        // SAFETY: `self` owns the pool. The driver defers the destruction of the pool until queued
        // frees are done.
        let _ = unsafe { cuMemPoolDestroy(self.raw) };
    }
}
