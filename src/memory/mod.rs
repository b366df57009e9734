//! Bytes on a device, kept coherent with the host, and typed views of them.
//!
//! Decisions:
//! - [`Memory`] is all that a backend author must write: four methods move bytes, the rest have
//!   defaults. A value of it is a handle on a device *and* on one in-order queue of its work.
//! - [`SyncedMemory`] holds the set of sides (host, device) that are current. Reading a side
//!   adds it to the set, by a copy if need be; writing a side leaves only it. Only `&mut` can
//!   make a side stale, so a stale side has no live borrow, and no `unsafe` is needed.
//! - [`View`] says which elements; whoever runs a kernel says where it needs them.

mod host_bytes;
pub mod ledger;
mod synced;
mod view;

pub use host_bytes::{HostBytes, HostStorage};
pub use ledger::KernelCall;
pub use synced::{Head, SyncedMemory};
pub use view::{DeviceSlice, DeviceSliceMut, Src, View, ViewMut};

use crate::{error::Result, host::Workers};
use std::fmt::Debug;

/// The memory of a compute device: the only part a backend author must write.
///
/// A value of this type is a cheap handle: clones refer to the same device and the same in-order
/// queue of work. Memory that queued work still uses must stay allocated until that work is done,
/// even if its buffer is dropped meanwhile.
pub trait Memory: Clone + Debug + Send + Sync + 'static {
    /// An owned run of bytes on the device. Dropping it frees it.
    type Buffer: Send + Sync;

    /// Short, stable name such as `cpu` or `cuda:0`.
    fn name(&self) -> String;

    /// Allocates `bytes` bytes, all zero. `bytes` may be 0.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory) if there is too little memory: a caller
    /// may free some and try again.
    fn alloc(&self, bytes: usize) -> Result<Self::Buffer>;

    /// Copies `src` to the buffer's bytes from `at`, after all work queued so far. On return
    /// `src` may be reused. The caller has checked that the range is inside the buffer.
    fn upload(&self, src: &[u8], dst: &mut Self::Buffer, at: usize) -> Result<()>;

    /// Copies the buffer's bytes from `at` to `dst`, after all work queued so far. On return
    /// `dst` is complete. The caller has checked that the range is inside the buffer.
    fn download(&self, src: &Self::Buffer, at: usize, dst: &mut [u8]) -> Result<()>;

    /// Waits until all queued work is done. The default suits devices that queue nothing.
    fn synchronize(&self) -> Result<()> {
        Ok(())
    }

    /// A handle on the same memory with a queue of its own, for copies that overlap with
    /// computing. Nothing orders the two queues but [`after`](Self::after). The default, the
    /// same queue, overlaps nothing.
    fn fork_queue(&self) -> Result<Self> {
        Ok(self.clone())
    }

    /// Makes later work on this queue start after the work now on `other`'s.
    fn order_after(&self, other: &Self) -> Result<()> {
        other.synchronize()
    }

    /// Host memory for data that often crosses: a device may return pinned memory.
    fn alloc_host(&self, bytes: usize) -> Result<HostBytes> {
        HostBytes::zeroed(bytes)
    }

    /// Direct host access, if host and device share memory: then nothing is ever copied. `None`
    /// (the default) means that the memories are discrete.
    fn host_mapping(&self) -> Option<&dyn Mapping<Self::Buffer>> {
        None
    }

    /// The threads on which kernels run that this device leaves to the host.
    fn host_workers(&self) -> &Workers {
        Workers::global()
    }

    /// What a person may want to know of the device, such as the size of its memory: names and
    /// values. The default tells nothing.
    fn properties(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// Told before a kernel of this device runs on the host for want of one of its own. The
    /// default tells the [`ledger`].
    ///
    /// # Errors
    /// [`Error::Denied`](crate::Error::Denied): then the kernel does not run.
    fn on_fallback(&self, kernel: &KernelCall) -> Result<()> {
        ledger::record_fallback(self, kernel)
    }

    /// Told of an allocation whose content is not current: one kept for reuse, or a new one that
    /// is about to be overwritten. The default does nothing; a device for tests overwrites the
    /// content, so that nobody lives on it unnoticed.
    fn on_stale(&self, allocation: StaleAllocation<'_, Self::Buffer>) {
        let _ = allocation;
    }
}

/// An allocation whose content nobody may read any more.
pub enum StaleAllocation<'a, B> {
    /// On the host.
    Host(&'a mut HostBytes),
    /// On the device.
    Device(&'a mut B),
}

/// Host access to device buffers in place, on devices that share the host's memory.
///
/// Both ways of access wait for queued work that uses the buffer.
pub trait Mapping<B> {
    /// The buffer's bytes.
    fn map<'a>(&self, buffer: &'a B) -> Result<&'a [u8]>;
    /// The buffer's bytes, writable.
    fn map_mut<'a>(&self, buffer: &'a mut B) -> Result<&'a mut [u8]>;
    /// Takes host bytes as a buffer without copying them, where the device can; hands them back
    /// where it cannot.
    fn adopt(&self, bytes: HostBytes) -> Result<B, HostBytes> {
        Err(bytes)
    }
}
