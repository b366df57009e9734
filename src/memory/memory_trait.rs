//! The [`Memory`] trait, which every device implements.

use super::{
    host_bytes::HostBytes,
    ledger::{context::fallback_event, kernel_call::KernelCall},
};
use crate::{error::Result, host::Workers};
use std::fmt::Debug;

/// The memory of a compute device: the only trait that a backend must implement.
///
/// A `Memory` value is a cheap handle: clones refer to the same device and the same in-order queue
/// of work. The device must keep a buffer's memory allocated until queued work that uses the buffer
/// is done, even if the buffer is dropped earlier.
///
/// The example copies bytes to and from the memory of any device:
///
/// ```
/// use cortado::prelude::*;
///
/// fn roundtrip<D: Memory>(device: &D) -> Result<[u8; 4]> {
///     let (mut buffer, mut bytes) = (device.alloc(4)?, [9; 4]);
///     device.upload(&[1, 2], &mut buffer, 1)?;
///     device.download(&buffer, 0, &mut bytes)?;
///     Ok(bytes)
/// }
///
/// assert_eq!(roundtrip(&SimulatedDevice::new())?, [0, 1, 2, 0]);
/// # Ok::<(), cortado::Error>(())
/// ```
pub trait Memory: Clone + Debug + Send + Sync + 'static {
    /// An owned allocation of bytes on the device, which `drop` frees.
    type Buffer: Send + Sync + 'static;

    /// Whether this crate compiles the kernels of this device for [`AnyDevice`](crate::AnyDevice),
    /// so that dependent crates do not compile the kernels again.
    #[doc(hidden)]
    const COMPILED_HERE: CompiledHere = CompiledHere(false);

    /// Returns a short, stable name such as `cpu` or `cuda:0`.
    fn name(&self) -> String;

    /// Allocates `bytes` zeroed bytes; `bytes` may be 0.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory) if the device has too little memory; the
    /// caller may free memory and retry.
    fn alloc(&self, bytes: usize) -> Result<Self::Buffer>;

    /// Copies `src` to `dst`, starting at byte `offset` of `dst`, after all work that is already
    /// queued. On return, the caller may reuse `src`. The caller has checked that the bytes fit in
    /// the buffer.
    fn upload(&self, src: &[u8], dst: &mut Self::Buffer, offset: usize) -> Result<()>;

    /// Copies bytes of `src`, starting at byte `offset`, to `dst`, after all work that is already
    /// queued. On return, `dst` contains all copied bytes. The caller has checked that the buffer
    /// contains the bytes.
    fn download(&self, src: &Self::Buffer, offset: usize, dst: &mut [u8]) -> Result<()>;

    /// Waits until all queued work is done. Does nothing by default, for devices without a queue.
    fn synchronize(&self) -> Result<()> {
        Ok(())
    }

    /// Returns a handle to the same memory with a separate queue, for copies that overlap with
    /// kernels. Only [`order_after`](Self::order_after) orders the two queues. By default, the
    /// returned handle has the same queue, and copies do not overlap with kernels.
    fn fork_queue(&self) -> Result<Self> {
        Ok(self.clone())
    }

    /// Orders this queue after `other`: work added to this queue after the call starts only when
    /// all work queued on `other` before the call is done.
    fn order_after(&self, other: &Self) -> Result<()> {
        other.synchronize()
    }

    /// Allocates host memory for data that is transferred often; a device may return pinned memory.
    fn alloc_host(&self, bytes: usize) -> Result<HostBytes> {
        HostBytes::zeroed(bytes)
    }

    /// Returns direct host access to device buffers if the device has unified memory. `None`, the
    /// default, means that host and device have separate memories.
    fn host_mapping(&self) -> Option<&dyn Mapping<Self::Buffer>> {
        None
    }

    /// Returns the threads that run fallbacks on the host.
    fn host_workers(&self) -> &Workers {
        Workers::global()
    }

    /// Returns names and values of device properties for display, such as the size of the device's
    /// memory. By default, the list of properties is empty.
    fn properties(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// Handles a fallback: a kernel that is about to run on the host, because this device has no
    /// override. By default, records the fallback in the [`ledger`](crate::memory::ledger).
    ///
    /// # Errors
    /// [`Error::Denied`](crate::Error::Denied) if a policy denies fallbacks; the kernel does not
    /// run.
    fn on_fallback(&self, kernel: &KernelCall) -> Result<()> {
        fallback_event(|| self.name(), kernel)
    }

    /// Handles an allocation whose contents are stale, because the allocation is kept for reuse or
    /// about to be overwritten. Does nothing by default. A test device can poison the contents, so
    /// that tests detect reads of stale data.
    fn on_stale(&self, allocation: StaleAllocation<'_, Self::Buffer>) {
        let _ = allocation;
    }
}

/// The value of [`Memory::COMPILED_HERE`]. Only this crate can create `CompiledHere(true)`.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub struct CompiledHere(bool);

impl CompiledHere {
    pub(crate) const YES: Self = Self(true);

    pub(crate) const fn get(self) -> bool {
        self.0
    }
}

/// An allocation whose contents are stale.
///
/// ```
/// use cortado::{Memory, SimulatedDevice, device::simulated::POISON};
/// use cortado::memory::{HostBytes, StaleAllocation};
///
/// let mut bytes = HostBytes::zeroed(2)?;
/// SimulatedDevice::new().on_stale(StaleAllocation::Host(&mut bytes));
/// assert_eq!(bytes[..], POISON);
/// # Ok::<(), cortado::Error>(())
/// ```
pub enum StaleAllocation<'a, B> {
    /// An allocation on the host.
    Host(&'a mut HostBytes),
    /// An allocation on the device.
    Device(&'a mut B),
}

/// Host access to device buffers in unified memory.
///
/// `map` and `map_mut` wait for queued work that uses the buffer.
///
/// ```
/// use cortado::prelude::*;
///
/// let device = CpuDevice::new();
/// let mut buffer = device.alloc(2)?;
/// let mapping = device.host_mapping().expect("the CPU has unified memory");
/// mapping.map_mut(&mut buffer)?.copy_from_slice(&[1, 2]);
/// assert_eq!(mapping.map(&buffer)?, [1, 2]);
/// assert!(SimulatedDevice::new().host_mapping().is_none());
/// # Ok::<(), cortado::Error>(())
/// ```
pub trait Mapping<B> {
    /// Returns the bytes of the buffer.
    fn map<'a>(&self, buffer: &'a B) -> Result<&'a [u8]>;
    /// Returns the bytes of the buffer, writable.
    fn map_mut<'a>(&self, buffer: &'a mut B) -> Result<&'a mut [u8]>;
    /// Adopts host bytes as a buffer without a copy. Returns the bytes as the error if the device
    /// cannot adopt them. The default adopts nothing and always returns the bytes.
    fn adopt(&self, bytes: HostBytes) -> Result<B, HostBytes> {
        Err(bytes)
    }
}
