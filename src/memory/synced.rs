//! `SyncedMemory`, as in Caffe: bytes that are allocated and transferred between host and device on
//! first access.

use super::{
    coherent_bytes::{CoherentBytes, Head},
    host_bytes::HostBytes,
    memory_trait::Memory,
};
use crate::error::Result;
use std::{fmt, sync::Arc};

/// Bytes that are kept coherent between the host and device `D`.
///
/// The first access to a side, host or device, allocates that side and, if needed, copies the value
/// from the other side. Memory that has not been written reads as zero. Shared access (`&self`) may
/// copy but never makes a side stale; exclusive access (`&mut self`) leaves only the accessed side
/// valid. In unified memory ([`Memory::host_mapping`]), both sides share one allocation, which is
/// never copied.
///
/// If a method of `SyncedMemory` fails, the value is unchanged, except for bytes that the closure
/// of [`host_overwrite`](Self::host_overwrite) has already written in place. A method that succeeds
/// may leave work, such as a copy, in the queue of the device. If work in the queue fails later,
/// the next call that waits for the queue returns the error. The bytes that the failed work should
/// have written are then lost, although `SyncedMemory` regards these bytes as valid. The caller
/// must write the lost bytes again.
///
/// ```
/// use cortado::{SimulatedDevice, SyncedMemory, assert_transfers};
///
/// let mut memory = SyncedMemory::new(&SimulatedDevice::new(), 3);
/// memory.host_mut()?.copy_from_slice(&[1, 2, 3]);
/// assert_transfers!(uploads: 1, downloads: 0, {
///     memory.device()?;
///     memory.device()?; // copies nothing, because the device side is valid
/// });
/// assert_eq!(memory.host()?, [1, 2, 3]);
/// # Ok::<(), cortado::Error>(())
/// ```
pub struct SyncedMemory<D: Memory> {
    device: D,
    pub(super) value: CoherentBytes,
}

impl<D: Memory> SyncedMemory<D> {
    /// Creates a `SyncedMemory` of `bytes` bytes, which are allocated on the first access.
    pub fn new(device: &D, bytes: usize) -> Self {
        Self { device: device.clone(), value: CoherentBytes::new(Arc::new(device.clone()), bytes) }
    }

    /// Sets the name under which traces and diagnoses show this memory. By default, a memory has no
    /// name.
    ///
    /// ```
    /// use cortado::{SimulatedDevice, SyncedMemory, ledger};
    ///
    /// let mut memory = SyncedMemory::new(&SimulatedDevice::new(), 4);
    /// memory.set_name("weights");
    /// let ((), diagnosis) = ledger::diagnose(|| {
    ///     memory.host_mut()?.fill(1);
    ///     memory.device().map(drop)
    /// })?;
    /// assert_eq!(diagnosis.transfers()[0].memory.as_deref(), Some("weights"));
    /// # Ok::<(), cortado::Error>(())
    /// ```
    pub fn set_name(&self, name: impl Into<Arc<str>>) {
        self.value.set_name(name.into());
    }

    /// Returns the name that [`set_name`](Self::set_name) has set.
    pub fn name(&self) -> Option<Arc<str>> {
        self.value.name()
    }

    /// Returns the size of this memory in bytes.
    pub fn size(&self) -> usize {
        self.value.size()
    }

    /// Returns the number of bytes allocated on the host and on the device together, including
    /// stale allocations that are kept for reuse.
    pub fn allocated_bytes(&self) -> usize {
        self.value.allocated_bytes()
    }

    /// Returns the device of this memory.
    pub fn device_handle(&self) -> &D {
        &self.device
    }

    /// Returns which sides, host or device, are valid, that is, hold the current value.
    pub fn head(&self) -> Head {
        self.value.head()
    }

    /// Returns the bytes on the host. If the host copy is stale, first downloads the bytes from the
    /// device.
    ///
    /// # Errors
    /// Returns [`Error::OutOfMemory`](crate::Error::OutOfMemory) if an allocation fails. Propagates
    /// errors from the device.
    #[doc(alias = "cpu_data")]
    #[track_caller]
    pub fn host(&self) -> Result<&[u8]> {
        self.value.host()
    }

    /// Returns the bytes on the host as a mutable slice; the device copy becomes stale.
    ///
    /// # Errors
    /// Returns the same errors as [`host`](Self::host).
    #[doc(alias = "mutable_cpu_data")]
    #[track_caller]
    pub fn host_mut(&mut self) -> Result<&mut [u8]> {
        self.value.host_mut()
    }

    /// Like [`host_mut`](Self::host_mut), but downloads nothing, for callers that overwrite all
    /// bytes. The returned bytes are initialized, but their values are unspecified.
    ///
    /// # Errors
    /// Returns the same errors as [`host`](Self::host).
    #[track_caller]
    pub fn host_write_only(&mut self) -> Result<&mut [u8]> {
        self.value.host_write_only()
    }

    /// Calls `write` to overwrite all bytes on the host, without first downloading them; the device
    /// copy becomes stale. If `write` fails or panics, the value of the memory is unchanged, unless
    /// `write` has already written bytes in place. Bytes are written in place if only the host copy
    /// was valid or the device has unified memory.
    ///
    /// # Errors
    /// Returns the same errors as [`host`](Self::host). Propagates errors from `write`.
    #[track_caller]
    pub fn host_overwrite<R>(&mut self, write: impl FnOnce(&mut [u8]) -> Result<R>) -> Result<R> {
        let mut overwrite = self.value.begin_overwrite()?;
        let result = write(overwrite.bytes()?)?;
        overwrite.commit();
        Ok(result)
    }

    /// Returns the device buffer for reading. If the device copy is stale, first uploads the bytes
    /// from the host.
    ///
    /// # Errors
    /// Returns the same errors as [`host`](Self::host).
    #[doc(alias = "gpu_data")]
    #[track_caller]
    pub fn device(&self) -> Result<&D::Buffer> {
        self.value.device()
    }

    /// Returns the device buffer for writing; the host copy becomes stale.
    ///
    /// # Errors
    /// Returns the same errors as [`host`](Self::host).
    #[doc(alias = "mutable_gpu_data")]
    #[track_caller]
    pub fn device_mut(&mut self) -> Result<&mut D::Buffer> {
        self.value.device_mut()
    }

    /// Allocates the device side, unless it is allocated already. Copies nothing, and leaves the
    /// value and the valid sides unchanged. A later [`device_write_only`](Self::device_write_only)
    /// then needs no allocation, so it cannot run out of memory. A caller that overwrites several
    /// `SyncedMemory` values reserves device memory for all of them before it overwrites the first.
    ///
    /// ```
    /// use cortado::{Head, SimulatedDevice, SyncedMemory, device::simulated::Fault};
    ///
    /// let device = SimulatedDevice::new();
    /// let mut memories = [0, 1].map(|_| SyncedMemory::new(&device, 4));
    /// memories[0].host_mut()?.fill(1);
    /// device.inject_fault(Fault::Alloc, 2);
    /// assert!(memories.iter_mut().try_for_each(SyncedMemory::reserve_device).is_err());
    /// assert_eq!((memories[0].head(), memories[0].host()?), (Head::HeadAtHost, &[1; 4][..]));
    /// # Ok::<(), cortado::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`Error::OutOfMemory`](crate::Error::OutOfMemory) if the allocation fails.
    /// Propagates errors from the device.
    pub fn reserve_device(&mut self) -> Result<()> {
        self.value.reserve_device()
    }

    /// Like [`device_mut`](Self::device_mut), but uploads nothing, for kernels that overwrite all
    /// bytes. The bytes of the returned buffer are initialized, but their values are unspecified.
    ///
    /// # Errors
    /// Returns the same errors as [`host`](Self::host).
    #[track_caller]
    pub fn device_write_only(&mut self) -> Result<&mut D::Buffer> {
        self.value.device_write_only()
    }

    /// Uploads the value through `queue`, a forked queue of this memory's device, unless the device
    /// copy is already valid. `prefetch` waits until the upload is done. Data-loading threads call
    /// `prefetch`, so that the device's main queue never waits for an upload of data. The upload
    /// starts after all work that is already in the device's main queue, because that work may
    /// still use the recycled allocation.
    ///
    /// # Errors
    /// Returns the same errors as [`host`](Self::host).
    #[doc(alias = "async_gpu_push")]
    #[track_caller]
    pub fn prefetch(&self, queue: &D) -> Result<()> {
        self.value.prefetch(queue)
    }

    /// Replaces the value of this memory with `bytes`, and takes ownership of `bytes`. Copies
    /// `bytes` only if the device has unified memory and cannot adopt `bytes`.
    ///
    /// # Errors
    /// Returns [`Error::Length`](crate::Error::Length) unless `bytes` has the size of this memory.
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
