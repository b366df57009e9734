//! Functions with which a device records transfers and fallbacks.

use super::{
    context::{fallback_event, transfer_event},
    kernel_call::KernelCall,
    memory_notes::{copy_start, result_copied},
    record::EventKind,
};
use crate::{error::Result, memory::memory_trait::Memory};

/// Records that `kernel` runs on the host because `device` does not override it. An override of
/// [`Memory::on_fallback`] can call `record_fallback` to keep the default behaviour.
///
/// # Errors
/// Returns [`Error::Denied`](crate::Error::Denied) if the calling thread's policy denies fallbacks.
pub fn record_fallback<D: Memory>(device: &D, kernel: &KernelCall) -> Result<()> {
    fallback_event(|| device.name(), kernel)
}

/// Runs `copy`, which transfers `bytes` bytes in the direction `kind`, and records the transfer if
/// `copy` succeeds. [`SyncedMemory`](crate::SyncedMemory) already records all its transfers. A
/// device calls `record_transfer` only for copies that `SyncedMemory` does not make, such as the
/// copy of a kernel's scalar result to the host.
///
/// # Errors
/// Returns [`Error::Denied`](crate::Error::Denied) if the calling thread's policy denies transfers.
/// Propagates errors from `copy`.
#[track_caller]
pub fn record_transfer<D: Memory>(
    device: &D,
    kind: EventKind,
    bytes: usize,
    copy: impl FnOnce() -> Result<()>,
) -> Result<()> {
    let start = copy_start();
    transfer_event((|| device.name(), || None), kind, bytes, copy)?;
    if let Some(start) = start {
        result_copied(&device.name(), device.queue_id(), kind, bytes, start.elapsed());
    }
    Ok(())
}
