//! Caffe's `SyncedMemory`: bytes that are allocated and transferred on first access.

use super::{
    coherent_bytes::{CoherentBytes, Head},
    host_bytes::HostBytes,
    memory_trait::Memory,
};
use crate::error::Result;
use std::{fmt, sync::Arc};

/// Bytes that are kept coherent between the host and device `D`.
///
/// The first access to a side allocates the side's bytes and copies the value to the side if
/// needed. Unwritten memory reads as zero. Shared access (`&self`) may copy but never makes a side
/// stale; exclusive access (`&mut self`) leaves one valid side. In unified memory
/// ([`Memory::host_mapping`]), both sides share one allocation, which is never copied.
///
/// If an operation fails, the value is unchanged. A successful operation may leave work, such as a
/// copy, queued on the device. If queued work fails later, the next call that waits for the queue
/// returns the error. The bytes that the failed work should have written are lost, although the
/// memory counts the bytes as valid. The caller must write the lost bytes again.
///
/// ```
/// use cortado::{SimulatedDevice, SyncedMemory, assert_transfers};
///
/// let mut memory = SyncedMemory::new(&SimulatedDevice::new(), 3);
/// memory.host_mut()?.copy_from_slice(&[1, 2, 3]);
/// assert_transfers!(uploads: 1, downloads: 0, {
///     memory.device()?;
///     memory.device()?; // copies nothing, because the device is valid
/// });
/// assert_eq!(memory.host()?, [1, 2, 3]);
/// # Ok::<(), cortado::Error>(())
/// ```
pub struct SyncedMemory<D: Memory> {
    device: D,
    pub(super) value: CoherentBytes,
}

impl<D: Memory> SyncedMemory<D> {
    /// Creates a `SyncedMemory` of `bytes` bytes, which the first access allocates.
    pub fn new(device: &D, bytes: usize) -> Self {
        Self { device: device.clone(), value: CoherentBytes::new(Arc::new(device.clone()), bytes) }
    }

    /// Returns the size in bytes.
    pub fn size(&self) -> usize {
        self.value.size()
    }

    /// Returns the number of bytes that are allocated on both sides, including stale allocations
    /// kept for reuse.
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
    /// Errors of [`host`](Self::host).
    #[doc(alias = "mutable_cpu_data")]
    #[track_caller]
    pub fn host_mut(&mut self) -> Result<&mut [u8]> {
        self.value.host_mut()
    }

    /// Like [`host_mut`](Self::host_mut), but copies nothing, for callers that overwrite all bytes.
    /// The bytes are initialized, but their values are unspecified.
    ///
    /// # Errors
    /// Errors of [`host`](Self::host).
    #[track_caller]
    pub fn host_write_only(&mut self) -> Result<&mut [u8]> {
        self.value.host_write_only()
    }

    /// Calls `write` to overwrite all bytes on the host, without copying them first; the device
    /// becomes stale. If `write` fails or panics, the value is unchanged, unless `write` has
    /// written bytes and either only the host was valid or memory is unified.
    ///
    /// # Errors
    /// Errors of [`host`](Self::host); errors of `write`.
    pub fn host_overwrite<R>(&mut self, write: impl FnOnce(&mut [u8]) -> Result<R>) -> Result<R> {
        let mut overwrite = self.value.begin_overwrite()?;
        let result = write(overwrite.bytes()?)?;
        overwrite.commit();
        Ok(result)
    }

    /// Returns the bytes on the device; copies them from the host if the device is stale.
    ///
    /// # Errors
    /// Errors of [`host`](Self::host).
    #[doc(alias = "gpu_data")]
    #[track_caller]
    pub fn device(&self) -> Result<&D::Buffer> {
        self.value.device()
    }

    /// Returns the bytes on the device, writable; the host becomes stale.
    ///
    /// # Errors
    /// Errors of [`host`](Self::host).
    #[doc(alias = "mutable_gpu_data")]
    #[track_caller]
    pub fn device_mut(&mut self) -> Result<&mut D::Buffer> {
        self.value.device_mut()
    }

    /// Like [`device_mut`](Self::device_mut), but copies nothing, for kernels that overwrite all
    /// bytes. The bytes are initialized, but their values are unspecified.
    ///
    /// # Errors
    /// Errors of [`host`](Self::host).
    pub fn device_write_only(&mut self) -> Result<&mut D::Buffer> {
        self.value.device_write_only()
    }

    /// Uploads the value through `queue`, a fork of this memory's device, unless the device is
    /// valid. Waits until the copy is done. Data-loading threads call this method, so that the
    /// device's main queue never waits for an upload. The copy starts after all work that is
    /// already queued on the device, because queued work may still use a recycled allocation.
    ///
    /// # Errors
    /// Errors of [`host`](Self::host).
    #[doc(alias = "async_gpu_push")]
    #[track_caller]
    pub fn prefetch(&self, queue: &D) -> Result<()> {
        self.value.prefetch(queue)
    }

    /// Replaces the value with `bytes` and takes ownership of `bytes`. Copies `bytes` only if the
    /// device has unified memory and cannot adopt `bytes`.
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
