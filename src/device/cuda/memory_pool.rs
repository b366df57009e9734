//! Stream-ordered pool of device memory: allocations and frees take effect in queue order.

use super::error::{CudaFailure, check_driver};
use crate::memory::PoolUsage;
use cust::sys::{
    CUdeviceptr,
    CUmemAllocationHandleType_enum::CU_MEM_HANDLE_TYPE_NONE,
    CUmemAllocationType_enum::CU_MEM_ALLOCATION_TYPE_PINNED,
    CUmemLocation_st,
    CUmemLocationType_enum::CU_MEM_LOCATION_TYPE_DEVICE,
    CUmemPool_attribute_enum::{self as Attribute, *},
    CUmemPoolProps_st, CUmemoryPool, CUresult, CUstream, cuMemAlloc_v2, cuMemAllocFromPoolAsync,
    cuMemFree_v2, cuMemFreeAsync, cuMemPoolCreate, cuMemPoolDestroy, cuMemPoolGetAttribute,
    cuMemPoolSetAttribute, cuMemPoolTrimTo, cuStreamSynchronize,
};
use std::ptr;

/// Pool of device memory, which caches freed memory until [`release`](Self::release). On a GPU or
/// driver without memory pools, nothing is cached, and a free waits for queued work.
pub(super) struct MemoryPool {
    /// The driver's pool; `None` if the GPU or the driver has no memory pools.
    raw: Option<CUmemoryPool>,
}

// SAFETY: any thread may pass a pool to the driver's functions.
unsafe impl Send for MemoryPool {}
// SAFETY: the driver's functions are thread-safe.
unsafe impl Sync for MemoryPool {}

impl MemoryPool {
    /// Creates a pool on GPU number `ordinal`.
    pub(super) fn new(ordinal: u32) -> Result<Self, CudaFailure> {
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
        let pool = Self { raw: Some(raw) };
        let mut bytes = u64::MAX;
        // SAFETY: the release threshold is a `u64`, which the driver reads during the call.
        let set = unsafe {
            cuMemPoolSetAttribute(raw, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, (&raw mut bytes).cast())
        };
        check_driver("cuMemPoolSetAttribute", set)?;
        Ok(pool)
    }

    /// Returns an allocator for a GPU or a driver without memory pools.
    pub(super) fn unpooled() -> Self {
        Self { raw: None }
    }

    /// Returns whether the driver has memory pools, so that frees do not wait for queued work.
    pub(super) fn is_pooled(&self) -> bool {
        self.raw.is_some()
    }

    /// Allocates `bytes` uninitialized bytes, for work that the caller queues on `stream` after the
    /// call.
    pub(super) fn take(&self, bytes: usize, stream: CUstream) -> Result<CUdeviceptr, CudaFailure> {
        let mut address = 0;
        let (call, result) = match self.raw {
            // SAFETY: pool and stream are live, and `address` is valid for writes of a device
            // address.
            Some(raw) => ("cuMemAllocFromPoolAsync", unsafe {
                cuMemAllocFromPoolAsync(&mut address, bytes, raw, stream)
            }),
            // SAFETY: `address` is valid for writes of a device address.
            None => ("cuMemAlloc", unsafe { cuMemAlloc_v2(&mut address, bytes) }),
        };
        check_driver(call, result)?;
        Ok(address)
    }

    /// Frees memory when the work that is already queued on `stream` is done. Work that is queued
    /// later, or on another queue, must not use the freed memory.
    pub(super) fn give(&self, address: CUdeviceptr, stream: CUstream) {
        // SAFETY: the callers are destructors, which pass memory from this pool, and no copy of the
        // address remains after the call. The caller has ordered `stream` after the other
        // queues that used the memory.
        let _ = unsafe {
            match self.raw {
                Some(_) => cuMemFreeAsync(address, stream),
                None => {
                    let _ = cuStreamSynchronize(stream);
                    cuMemFree_v2(address)
                }
            }
        };
    }

    /// Returns the usage of the driver's pool, or `None` without a pool. Drivers before CUDA 11.3
    /// have pools but do not report their usage; for these drivers, too, `usage` returns `None`.
    pub(super) fn usage(&self) -> Result<Option<PoolUsage>, CudaFailure> {
        let Some(raw) = self.raw else { return Ok(None) };
        let bytes = |attribute: Attribute| {
            let mut bytes = 0u64;
            // SAFETY: the pool is live, and all four attributes are a `u64`.
            let result = unsafe { cuMemPoolGetAttribute(raw, attribute, (&raw mut bytes).cast()) };
            check_driver("cuMemPoolGetAttribute", result).map(|()| bytes as usize)
        };
        let used = match bytes(CU_MEMPOOL_ATTR_USED_MEM_CURRENT) {
            Err(failure) if failure.code == CUresult::CUDA_ERROR_INVALID_VALUE as u32 => {
                return Ok(None);
            }
            used => used?,
        };
        Ok(Some(PoolUsage {
            used,
            peak_used: bytes(CU_MEMPOOL_ATTR_USED_MEM_HIGH)?,
            reserved: bytes(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT)?,
            peak_reserved: bytes(CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH)?,
        }))
    }

    /// Returns the pool's cached memory to the GPU.
    pub(super) fn release(&self) -> Result<(), CudaFailure> {
        let Some(raw) = self.raw else { return Ok(()) };
        // SAFETY: `raw` is live until `self` is dropped.
        check_driver("cuMemPoolTrimTo", unsafe { cuMemPoolTrimTo(raw, 0) })
    }
}

impl Drop for MemoryPool {
    fn drop(&mut self) {
        if let Some(raw) = self.raw {
            // SAFETY: `self` owns the pool. The driver defers the destruction of the pool until
            // queued frees are done.
            let _ = unsafe { cuMemPoolDestroy(raw) };
        }
    }
}
