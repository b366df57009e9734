//! The [`Memory`] trait, which every device implements.

use super::{
    device_span::DeviceSpan,
    failure_kind::FailureKind,
    host_bytes::HostBytes,
    ledger::{context::fallback_event, kernel_call::KernelCall},
    memory_usage::MemoryUsage,
};
use crate::{error::Result, host::Workers};
use std::fmt::Debug;

/// The memory of a compute device. `Memory` is the only trait that a backend must implement.
///
/// A `Memory` value is a handle that is cheap to clone: all clones refer to the same device and to
/// the same in-order queue of work.
///
/// # Guarantees of a device
/// The conformance kit checks that a device gives the following guarantees:
///
/// - **Order.** Work in one queue runs in the order in which it was queued. Two queues of a device
///   are ordered only by [`order_after`](Self::order_after).
/// - **Lifetime.** The device keeps a buffer's memory allocated until all queued work that uses the
///   buffer is done, even if the buffer is dropped earlier. The buffer must outlive queued kernels
///   and queued uploads, on the queue that allocated the buffer and on every other queue.
/// - **Out of memory.** An allocation that the device cannot make returns
///   [`Error::OutOfMemory`](crate::Error::OutOfMemory) with the requested number of bytes, and no
///   other error. The device remains usable.
/// - **Failures.** A call that returns an error has queued nothing, and has changed no value that
///   it reads or updates. If queued work fails later, the next call that waits for the same queue
///   returns the error; further waits for this queue do not. The calls that wait are
///   [`synchronize`](Self::synchronize), [`download`](Self::download), and kernels that return a
///   number. A wait for a queue that was ordered after the failed work may return the error too; a
///   wait for any other queue must not. If all handles of the queue with the failed work are
///   dropped, the next wait for a queue that was ordered after the failed work must return the
///   error. The error contains the name under which the [`ledger`](crate::memory::ledger) records
///   the failed kernel, or lists the kernels that may have failed. The contents of the memory that
///   the failed work writes are unspecified until that memory is written again; all other memory
///   keeps its value. All queues of the device remain usable. The conformance kit checks the
///   guarantees about failures only on devices that implement
///   [`inject_failure`](Self::inject_failure).
///   - If several kernels fail before a call waits, the call may return any one of the errors.
///   - The error for a queued upload need not name a kernel.
///   - The error for an invalid element, such as a label, may name the operand instead of the
///     kernel.
///   - The error for an invalid element may be lost if all handles of the queue are dropped.
///   - Work that was queued after the failed work still runs.
///   - Handles that share a queue, such as those that the default `fork_queue` returns, count as
///     one queue.
///   - If a failure makes the device unusable, every call may return the error.
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
    /// An owned allocation of device memory, freed on drop.
    type Buffer: Send + Sync + 'static;

    /// Whether this crate already compiles the kernels of this device for
    /// [`AnyDevice`](crate::AnyDevice), so that dependent crates need not compile these kernels.
    #[doc(hidden)]
    const COMPILED_HERE: CompiledHere = CompiledHere(false);

    /// Returns a short, stable name of the device, such as `cpu` or `cuda:0`. All handles to one
    /// device return the same name.
    fn name(&self) -> String;

    /// Allocates a device buffer of `bytes` zeroed bytes; `bytes` may be 0. The device also zeroes
    /// memory that it reuses, whatever its size and whichever queue used or freed the memory. The
    /// buffer is zeroed in the queue of this handle. The caller must order the queue of another
    /// handle after this queue before work on the other queue uses the buffer.
    ///
    /// # Errors
    /// Returns [`Error::OutOfMemory`](crate::Error::OutOfMemory) if the device has too little free
    /// memory, or if `bytes` exceeds the largest allocation of the device. After this error, the
    /// caller may free memory and call `alloc` again.
    fn alloc(&self, bytes: usize) -> Result<Self::Buffer>;

    /// Copies `src` to `dst`, starting at byte `offset` of `dst`, after all work that is already in
    /// the queue. When `upload` returns, the caller may reuse `src`. The caller must have checked
    /// that the bytes fit in the buffer.
    ///
    /// # Errors
    /// If `upload` returns an error, the bytes of `dst` are unchanged. If an upload that was queued
    /// fails later, the next call that waits for the queue returns the error.
    fn upload(&self, src: &[u8], dst: &mut Self::Buffer, offset: usize) -> Result<()>;

    /// Fills `dst` with the bytes of `src` from byte `offset` on, after all work that is already in
    /// the queue. When `download` returns, the copy is complete. The caller must have checked that
    /// the buffer contains the requested bytes.
    ///
    /// # Errors
    /// Returns the error of failed work in the queue, if no call has returned that error yet. After
    /// an error, the bytes of `dst` are unspecified.
    fn download(&self, src: &Self::Buffer, offset: usize, dst: &mut [u8]) -> Result<()>;

    /// Waits until all work in the queue is done. The default implementation does nothing, for
    /// devices without a queue.
    ///
    /// # Errors
    /// Returns the error of failed work in the queue, if no call has returned that error yet.
    fn synchronize(&self) -> Result<()> {
        Ok(())
    }

    /// Returns a number that identifies the queue: all handles to it return this number, and no
    /// other queue of the process does. Diagnoses use the number to find needless waits. By
    /// default, `queue_id` returns `None`, for devices without a queue.
    fn queue_id(&self) -> Option<usize> {
        None
    }

    /// Returns a handle to the same device memory with a separate queue, for copies that overlap
    /// with kernels. Only [`order_after`](Self::order_after) orders the queue of the returned
    /// handle and the queue of `self`. The returned handle can do everything that `self` can:
    /// allocate, copy, run kernels, and fork again. The default implementation returns a handle
    /// with the same queue, so copies do not overlap with kernels.
    ///
    /// - The fork has the name of the device, and both handles may use each other's buffers.
    /// - A buffer is allocated and zeroed in the queue of the handle whose `alloc` was called, and
    ///   stays valid if that handle is dropped.
    /// - If all clones of a handle are dropped, its queued work still runs, provided that another
    ///   queue was ordered after this work. Otherwise, the result of the queued work is
    ///   unspecified. A caller should wait for a queue before dropping the last clone of its
    ///   handle.
    fn fork_queue(&self) -> Result<Self> {
        Ok(self.clone())
    }

    /// Orders the queue of `self` after the queue of `other`. Work that is enqueued on `self` after
    /// this call starts only when all work enqueued on `other` before this call is done. If `other`
    /// is itself ordered after a third queue, the work of `self` also waits for that queue, even if
    /// `other` has no work of its own. If all handles of `other` are dropped and its work has
    /// failed, the next wait for `self` returns the error. `order_after` may be called any number
    /// of times, for any two handles of the device; earlier orders stay in force. A queue that is
    /// ordered after itself waits for nothing.
    fn order_after(&self, other: &Self) -> Result<()> {
        other.synchronize()
    }

    /// Allocates host memory for data that is transferred often; a device may return pinned memory.
    fn alloc_host(&self, bytes: usize) -> Result<HostBytes> {
        HostBytes::zeroed(bytes)
    }

    /// Returns the mapping that gives the host direct access to device buffers, if the device has
    /// unified memory. By default, `host_mapping` returns `None`: host and device have separate
    /// memories.
    fn host_mapping(&self) -> Option<&dyn Mapping<Self::Buffer>> {
        None
    }

    /// Returns the host threads that run fallbacks of this device.
    fn host_workers(&self) -> &Workers {
        Workers::global()
    }

    /// Returns names and values of device properties for display, such as the size of the device's
    /// memory. By default, `properties` returns an empty list.
    fn properties(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// Returns the sizes of the device's total and free memory, and of the device's memory pool. By
    /// default, `memory_usage` returns `None`, for devices that do not report their usage.
    ///
    /// # Errors
    /// Returns the error of a device that cannot be used.
    fn memory_usage(&self) -> Result<Option<MemoryUsage>> {
        Ok(None)
    }

    /// Starts to record the times at which the device executes the kernels and transfers of this
    /// queue if `on` is true, and otherwise ends the recording. Returns whether the device can
    /// measure the times of its kernels and transfers. By default, `record_spans` does nothing and
    /// returns `false`.
    ///
    /// The recording starts after all work that is already in the queue. The call waits for all
    /// work that was already queued, so that the caller can relate the start of the recording to
    /// the host's clock. If the queue is already recording, the recording restarts. Forked queues
    /// do not record. Recording slows the queue down, and the spans occupy memory until
    /// [`take_spans`](Self::take_spans) is called.
    ///
    /// # Errors
    /// Returns the error of failed work in the queue, if no call has returned that error yet.
    fn record_spans(&self, on: bool) -> Result<bool> {
        let _ = on;
        Ok(false)
    }

    /// Waits for the queue, and returns the recorded spans since the start of the recording or the
    /// last call of `take_spans`, in the order of execution. Returns an empty list if the queue does
    /// not record.
    ///
    /// # Errors
    /// Returns the error of failed work in the queue, if no call has returned that error yet. After
    /// an error, the recorded spans are lost.
    fn take_spans(&self) -> Result<Vec<DeviceSpan>> {
        self.synchronize()?;
        Ok(Vec::new())
    }

    /// Called before a fallback, that is, before `kernel` runs on the host because this device does
    /// not override it. By default, `on_fallback` records the fallback in the
    /// [`ledger`](crate::memory::ledger).
    ///
    /// # Errors
    /// Returns [`Error::Denied`](crate::Error::Denied) if a policy denies fallbacks; in that case,
    /// the kernel does not run.
    fn on_fallback(&self, kernel: &KernelCall) -> Result<()> {
        fallback_event(|| self.name(), kernel)
    }

    /// Injects one failure for tests: the next operation of kind `failure` on this handle fails.
    /// Returns whether the device can inject a failure of this kind. The default implementation
    /// returns `false`, and the conformance kit then skips the checks that need an injected
    /// failure.
    ///
    /// The caller waits for all queues of the device before it calls `inject_failure`, and starts
    /// no other operation before the one that is to fail. Instead of queuing the kernel or upload
    /// that is to fail, the device may run it immediately. The device must remain usable after the
    /// failure; otherwise `inject_failure` returns `false`.
    fn inject_failure(&self, failure: FailureKind) -> bool {
        let _ = failure;
        false
    }

    /// Called with an allocation whose contents are stale. The memory either keeps the stale
    /// allocation for reuse, or is about to overwrite the allocation. By default, `on_stale` does
    /// nothing. A test device can poison the contents of the allocation, so that tests detect reads
    /// of stale data.
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
    /// returns them as `Err(bytes)`. By default, `adopt` adopts nothing and always returns
    /// `Err(bytes)`.
    fn adopt(&self, bytes: HostBytes) -> Result<B, HostBytes> {
        Err(bytes)
    }
}
