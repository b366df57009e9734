//! Caffe's `SyncedMemory`: allocates and copies on first access.

use super::{
    coherent_bytes::{CoherentBytes, Head},
    host_bytes::HostBytes,
    memory_trait::Memory,
};
use crate::error::Result;
use std::{fmt, sync::Arc};

/// Bytes that are kept coherent between the host and device `D`.
///
/// The first access to a side allocates it and copies the value there if needed. Unwritten memory
/// reads as zero. Shared access (`&self`) may copy but never makes a side stale; exclusive access
/// (`&mut self`) leaves one valid side. In unified memory ([`Memory::host_mapping`]), there is one
/// allocation and never a copy.
///
/// If an operation fails, the value is unchanged. A successful operation may leave work, such as a
/// copy, queued on the device. If that work fails later, the next call that waits returns its error.
/// The bytes that it should have written on the device are then lost, although this memory counts
/// them as valid; the caller must write them again.
pub struct SyncedMemory<D: Memory> {
    device: D,
    pub(super) value: CoherentBytes,
}

impl<D: Memory> SyncedMemory<D> {
    /// Creates a `SyncedMemory` of `bytes` bytes without allocating it.
    pub fn new(device: &D, bytes: usize) -> Self {
        Self { device: device.clone(), value: CoherentBytes::new(Arc::new(device.clone()), bytes) }
    }

    /// Returns the size in bytes.
    pub fn size(&self) -> usize {
        self.value.size()
    }

    /// Returns the bytes that are allocated on both sides, including stale allocations kept for
    /// reuse.
    pub fn allocated_bytes(&self) -> usize {
        self.value.allocated_bytes()
    }

    /// Returns the device of this memory.
    pub fn device_handle(&self) -> &D {
        &self.device
    }

    /// Returns which sides, host or device, hold the current value.
    pub fn head(&self) -> Head {
        self.value.head()
    }

    /// Returns the bytes on the host; copies them from the device if the host is stale.
    ///
    /// # Errors
    /// Errors of the device; [`Error::OutOfMemory`](crate::Error::OutOfMemory).
    #[doc(alias = "cpu_data")]
    #[track_caller]
    pub fn host(&self) -> Result<&[u8]> {
        self.value.host()
    }

    /// Returns the bytes on the host, writable; the device becomes stale.
    ///
    /// # Errors
    /// Like [`host`](Self::host).
    #[doc(alias = "mutable_cpu_data")]
    #[track_caller]
    pub fn host_mut(&mut self) -> Result<&mut [u8]> {
        self.value.host_mut()
    }

    /// Like [`host_mut`](Self::host_mut), but copies nothing, for writers that overwrite
    /// everything. The bytes are initialized, but their values are unspecified.
    ///
    /// # Errors
    /// Like [`host`](Self::host).
    #[track_caller]
    pub fn host_write_only(&mut self) -> Result<&mut [u8]> {
        self.value.host_write_only()
    }

    /// Calls `write` to overwrite all bytes on the host, without copying them first; the device
    /// becomes stale. If `write` fails or panics, the value is unchanged, unless `write` has
    /// written bytes and either only the host was valid or memory is unified.
    ///
    /// # Errors
    /// Like [`host`](Self::host); errors of `write`.
    pub fn host_overwrite<R>(&mut self, write: impl FnOnce(&mut [u8]) -> Result<R>) -> Result<R> {
        let mut overwrite = self.value.begin_overwrite()?;
        let result = write(overwrite.bytes()?)?;
        overwrite.commit();
        Ok(result)
    }

    /// Returns the bytes on the device; copies them from the host if the device is stale.
    ///
    /// # Errors
    /// Like [`host`](Self::host).
    #[doc(alias = "gpu_data")]
    #[track_caller]
    pub fn device(&self) -> Result<&D::Buffer> {
        self.value.device()
    }

    /// Returns the bytes on the device, writable; the host becomes stale.
    ///
    /// # Errors
    /// Like [`host`](Self::host).
    #[doc(alias = "mutable_gpu_data")]
    #[track_caller]
    pub fn device_mut(&mut self) -> Result<&mut D::Buffer> {
        self.value.device_mut()
    }

    /// Like [`device_mut`](Self::device_mut), but copies nothing, for kernels that overwrite
    /// everything. The bytes are initialized, but their values are unspecified.
    ///
    /// # Errors
    /// Like [`host`](Self::host).
    pub fn device_write_only(&mut self) -> Result<&mut D::Buffer> {
        self.value.device_write_only()
    }

    /// Makes the device valid through `queue`, a fork of this memory's device, and waits for the
    /// copy. Data-loading threads call this, so that the device's own queue never waits. The copy
    /// starts after all work queued on the device so far, which may still use a reused allocation.
    ///
    /// # Errors
    /// Like [`host`](Self::host).
    #[doc(alias = "async_gpu_push")]
    #[track_caller]
    pub fn prefetch(&self, queue: &D) -> Result<()> {
        self.value.prefetch(queue)
    }

    /// Replaces the value with `bytes`, which this memory then owns. Copies them only if the device
    /// has unified memory and cannot adopt them.
    ///
    /// # Errors
    /// [`Error::Length`](crate::Error::Length) unless `bytes` has this memory's size.
    #[doc(alias = "set_cpu_data")]
    #[track_caller]
    pub fn adopt(&mut self, bytes: HostBytes) -> Result<()> {
        self.value.adopt(bytes)
    }
}

impl<D: Memory> fmt::Debug for SyncedMemory<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}
