//! The [`Memory`] trait, which every device implements.

use super::{
    host_bytes::HostBytes,
    ledger::{context::fallback_event, kernel_call::KernelCall},
};
use crate::{error::Result, host::Workers};
use std::fmt::Debug;

/// The memory of a compute device. `Memory` is the only trait that a backend must implement.
///
/// A `Memory` value is a handle that is cheap to clone: all clones refer to the same device and to
/// the same in-order queue of work. A device makes four promises, which the signatures of the
/// methods do not show:
///
/// - **Order.** Work of one queue takes effect in the order in which calls queued it. A copy happens
///   after all work that is already in the queue.
/// - **Lifetime.** The device keeps a buffer's memory allocated until queued work that uses the
///   buffer is done, even if the buffer is dropped earlier, and even if another queue holds the
///   work.
/// - **Out of memory.** An allocation for which the device has too little memory returns
///   [`Error::OutOfMemory`](crate::Error::OutOfMemory), and no other error. A failed allocation
///   changes nothing, and the device keeps working.
/// - **Late errors.** A call may return before the work that it queues is done. If the work fails
///   later, the device reports the failure as follows:
///   - The next call that waits for the work's queue returns the error: a
///     [`download`](Self::download), [`synchronize`](Self::synchronize), or a kernel that returns a
///     number, such as [`dot`](crate::kernel::Blas::dot). A device may return the error earlier,
///     from any call that uses the queue.
///   - The device returns the error once. If several kernels fail before a call waits, one of the
///     errors is enough. A queue that was ordered after the failed work may return the error too.
///   - The message names the failed kernel or the operand with the invalid value. A device that
///     cannot tell which kernel failed names the kernels that it has launched since the last wait.
///   - The outputs of the failed work hold unspecified values, although the device side counts as
///     valid. The caller must write the outputs again. All other memory keeps its values, and work
///     that was queued later still runs. Only the loss of the device makes all later calls fail.
///
/// The example copies bytes to and from the memory of a generic device:
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

    /// Whether this crate already compiles the kernels of this device for
    /// [`AnyDevice`](crate::AnyDevice), so that dependent crates need not compile these kernels.
    #[doc(hidden)]
    const COMPILED_HERE: CompiledHere = CompiledHere(false);

    /// Returns a short, stable name of the device, such as `cpu` or `cuda:0`. All handles to one
    /// device return the same name.
    fn name(&self) -> String;

    /// Allocates a device buffer of `bytes` zeroed bytes; `bytes` may be 0.
    ///
    /// The device may zero the bytes in the queue of this handle. Another queue may use the buffer
    /// after it has been ordered after this queue.
    ///
    /// # Errors
    /// Returns [`Error::OutOfMemory`](crate::Error::OutOfMemory) if the device has too little free
    /// memory, or if `bytes` exceeds the largest buffer of the device. The caller may free memory
    /// and retry.
    fn alloc(&self, bytes: usize) -> Result<Self::Buffer>;

    /// Copies `src` to `dst`, starting at byte `offset` of `dst`, after all work that is already in
    /// the queue. When `upload` returns, the caller may reuse `src`. The caller must have checked
    /// that the bytes fit in the buffer.
    fn upload(&self, src: &[u8], dst: &mut Self::Buffer, offset: usize) -> Result<()>;

    /// Fills `dst` with the bytes of `src` from byte `offset` on, after all work that is already in
    /// the queue. When `download` returns, the copy is complete. The caller must have checked that
    /// the buffer contains the requested bytes.
    fn download(&self, src: &Self::Buffer, offset: usize, dst: &mut [u8]) -> Result<()>;

    /// Waits until all work in the queue is done. The default implementation does nothing, for
    /// devices without a queue.
    ///
    /// # Errors
    /// Returns the error of queued work that has failed since the last wait, as the fourth promise
    /// of [`Memory`] describes.
    fn synchronize(&self) -> Result<()> {
        Ok(())
    }

    /// Returns a handle to the same device memory with a separate queue, for copies that overlap
    /// with kernels. The two queues are ordered only by [`order_after`](Self::order_after). The
    /// default implementation returns a handle with the same queue, so copies do not overlap with
    /// kernels.
    ///
    /// - The fork has the name of the device, and both handles may use each other's buffers.
    /// - A buffer is allocated and zeroed in the queue of the handle whose `alloc` was called, and
    ///   stays valid if that handle is dropped.
    /// - The device may discard queued work if the last clone of the handle is dropped. The caller
    ///   first waits for the queue, or orders another queue after it. Work that another queue was
    ///   ordered after still runs.
    fn fork_queue(&self) -> Result<Self> {
        Ok(self.clone())
    }

    /// Orders the queue of `self` after the queue of `other`. Work that is enqueued on `self` after
    /// this call starts only when all work enqueued on `other` before this call is done. Each call
    /// covers the work that `other` holds at that time, and orders are transitive. A call with two
    /// handles to the same queue has no effect.
    fn order_after(&self, other: &Self) -> Result<()> {
        other.synchronize()
    }

    /// Allocates host memory for data that is transferred often; a device may return pinned memory.
    fn alloc_host(&self, bytes: usize) -> Result<HostBytes> {
        HostBytes::zeroed(bytes)
    }

    /// Returns the mapping that gives the host direct access to device buffers, if the device has
    /// unified memory. The default, `None`, means that host and device have separate memories.
    fn host_mapping(&self) -> Option<&dyn Mapping<Self::Buffer>> {
        None
    }

    /// Returns the host threads that run fallbacks of this device.
    fn host_workers(&self) -> &Workers {
        Workers::global()
    }

    /// Returns names and values of device properties for display, such as the size of the device's
    /// memory. By default, the list of properties is empty.
    fn properties(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// Called before a fallback, that is, before `kernel` runs on the host because this device does
    /// not override it. The default implementation records the fallback in the
    /// [`ledger`](crate::memory::ledger).
    ///
    /// # Errors
    /// Returns [`Error::Denied`](crate::Error::Denied) if a policy denies fallbacks; in that case,
    /// the kernel does not run.
    fn on_fallback(&self, kernel: &KernelCall) -> Result<()> {
        fallback_event(|| self.name(), kernel)
    }

    /// Called with an allocation whose contents are stale, because the allocation is kept for reuse
    /// or is about to be overwritten. The default implementation does nothing. A test device can
    /// poison the contents of the allocation, so that tests detect reads of stale data.
    fn on_stale(&self, allocation: StaleAllocation<'_, Self::Buffer>) {
        let _ = allocation;
    }
}

/// The type of the constant [`Memory::COMPILED_HERE`]. Only this crate can create
/// `CompiledHere(true)`.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub struct CompiledHere(bool);

impl CompiledHere {
    pub(crate) const YES: Self = Self(true);

    pub(crate) const fn get(self) -> bool {
        self.0
    }
}

/// A host or device allocation whose contents are stale.
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
    /// A stale allocation of the host side.
    Host(&'a mut HostBytes),
    /// A stale allocation of the device side.
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
    /// Returns the bytes of the device buffer `buffer` as a host slice.
    fn map<'a>(&self, buffer: &'a B) -> Result<&'a [u8]>;
    /// Returns the bytes of the device buffer `buffer` as a mutable host slice.
    fn map_mut<'a>(&self, buffer: &'a mut B) -> Result<&'a mut [u8]>;
    /// Adopts host bytes as a device buffer without a copy. If the device cannot adopt the bytes,
    /// returns them as `Err(bytes)`. The default implementation adopts nothing and always returns
    /// `Err(bytes)`.
    fn adopt(&self, bytes: HostBytes) -> Result<B, HostBytes> {
        Err(bytes)
    }
}
