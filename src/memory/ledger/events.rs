//! Functions with which a device records transfers and fallbacks.

use super::{
    context::{fallback_event, transfer_event},
    kernel_call::KernelCall,
    record::EventKind,
};
use crate::{error::Result, memory::memory_trait::Memory};

/// Records that `kernel` runs on the host because `device` has no override, like the default of
/// [`Memory::on_fallback`].
///
/// # Errors
/// [`Error::Denied`](crate::Error::Denied) if the calling thread denies fallbacks.
pub fn record_fallback<D: Memory>(device: &D, kernel: &KernelCall) -> Result<()> {
    fallback_event(|| device.name(), kernel)
}

/// Runs `copy`, which transfers `bytes` bytes in the direction `kind`, and records the transfer if
/// `copy` succeeds. [`SyncedMemory`](crate::SyncedMemory) already records all its transfers. A
/// device calls this function for copies of a kernel's scalar result to the host.
///
/// # Errors
/// [`Error::Denied`](crate::Error::Denied) if the calling thread denies transfers; errors of
/// `copy`.
#[track_caller]
pub fn record_transfer<D: Memory>(
    device: &D,
    kind: EventKind,
    bytes: usize,
    copy: impl FnOnce() -> Result<()>,
) -> Result<()> {
    transfer_event(|| device.name(), kind, bytes, copy)
}
