//! Records transfers and fallbacks of a device.

use super::{
    context::{fallback_event, transfer_event},
    kernel_call::KernelCall,
    record::EventKind,
};
use crate::{error::Result, memory::memory_trait::Memory};

/// Records that `kernel` runs on the host because `device` has no override. This is the default of
/// [`Memory::on_fallback`].
///
/// # Errors
/// [`Error::Denied`](crate::Error::Denied) if the calling thread denies fallbacks.
pub fn record_fallback<D: Memory>(device: &D, kernel: &KernelCall) -> Result<()> {
    fallback_event(|| device.name(), kernel)
}

/// Runs `copy`, which transfers `bytes` bytes in the direction `kind`, and records it if it
/// succeeds. [`SyncedMemory`](crate::SyncedMemory) copies through this function; a device that
/// copies a kernel's scalar result to the host should use it too.
///
/// # Errors
/// [`Error::Denied`](crate::Error::Denied) if the calling thread denies transfers; errors of `copy`.
#[track_caller]
pub fn record_transfer<D: Memory>(
    device: &D,
    kind: EventKind,
    bytes: usize,
    copy: impl FnOnce() -> Result<()>,
) -> Result<()> {
    transfer_event(|| device.name(), kind, bytes, copy)
}
