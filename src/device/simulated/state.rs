//! State that all handles of one simulated device share.

use super::{
    fault::{Fault, Faults},
    poison::poison,
};
use crate::{
    error::{Error, Result},
    memory::HostBytes,
    sync::{Mutex, MutexGuard},
};
use std::mem;

/// Largest number of bytes of freed memory that are cached for reuse.
const MAX_CACHED_BYTES: usize = 64 << 20;

/// Event counters of a [`SimulatedDevice`](super::SimulatedDevice) and its forks.
///
/// ```
/// use cortado::{SimulatedDevice, SyncedMemory, device::simulated::Counters};
///
/// let device = SimulatedDevice::new();
/// let mut memory = SyncedMemory::new(&device, 4);
/// memory.host_mut()?.fill(1);
/// memory.device()?;
/// let expected = Counters { allocations: 1, bytes: 4, uploads: 1, ..Counters::default() };
/// assert_eq!(device.counters(), expected);
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Number of allocations.
    pub allocations: u64,
    /// Number of bytes that are allocated and not yet freed.
    pub bytes: usize,
    /// Number of uploads that were queued.
    pub uploads: u64,
    /// Number of finished downloads.
    pub downloads: u64,
    /// Number of kernels that were queued.
    pub kernels: u64,
    /// Number of kernels and uploads that ran, including those that failed while running.
    pub executed: u64,
}

/// Pending faults, event counters and freed memory of a simulated device and its forks.
#[derive(Debug, Default)]
pub(super) struct DeviceState {
    pub(super) faults: Faults,
    counters: Mutex<Counters>,
    /// Locked while a thread runs queued work: the whole device runs one work item at a time.
    run_lock: Mutex<()>,
    /// Freed memory, which is poisoned; oldest first.
    freed_memory: Mutex<Vec<HostBytes>>,
}

impl DeviceState {
    pub(super) const NAME: &str = "simulated";

    /// Returns an [`Error::Device`] of the simulated device with the message `what`.
    pub(super) fn error(what: impl Into<String>) -> Error {
        Error::device(Self::NAME, what.into())
    }

    pub(super) fn counters(&self) -> Counters {
        *self.counters.lock()
    }

    pub(super) fn count(&self, change: impl FnOnce(&mut Counters)) {
        change(&mut self.counters.lock());
    }

    pub(super) fn lock_run(&self) -> MutexGuard<'_, ()> {
        self.run_lock.lock()
    }

    /// Returns zeroed memory, preferably freed memory of the same size.
    pub(super) fn allocate(&self, len: usize) -> Result<HostBytes> {
        let out_of_memory = |_| Error::OutOfMemory { device: Self::NAME.into(), bytes: len };
        if self.faults.occurs(Fault::Alloc) {
            return Err(out_of_memory(()));
        }
        let bytes = match self.reuse(len) {
            Some(bytes) => bytes,
            None => HostBytes::zeroed(len).map_err(|_| out_of_memory(()))?,
        };
        self.count(|counters| {
            counters.allocations += 1;
            counters.bytes += len;
        });
        Ok(bytes)
    }

    fn reuse(&self, len: usize) -> Option<HostBytes> {
        let mut freed_memory = self.freed_memory.lock();
        let index = freed_memory.iter().position(|bytes| bytes.len() == len)?;
        let mut bytes = freed_memory.remove(index);
        bytes.fill(0);
        Some(bytes)
    }

    /// Poisons `bytes` and caches the memory for a later allocation.
    pub(super) fn free(&self, bytes: &mut HostBytes) {
        self.count(|counters| counters.bytes -= bytes.len());
        poison(bytes);
        let Ok(empty_bytes) = HostBytes::zeroed(0) else { return };
        let mut freed_memory = self.freed_memory.lock();
        freed_memory.push(mem::replace(bytes, empty_bytes));
        let mut cached_bytes: usize = freed_memory.iter().map(|bytes| bytes.len()).sum();
        while cached_bytes > MAX_CACHED_BYTES {
            cached_bytes -= freed_memory.remove(0).len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::simulated::POISON;

    #[test]
    fn freed_memory_is_poisoned_and_its_cache_is_bounded() {
        let state = DeviceState::default();
        state.free(&mut state.allocate(4).unwrap());
        assert_eq!(state.freed_memory.lock()[0][..], [POISON, POISON].concat());
        let mut allocations = [0; 3].map(|_| state.allocate(MAX_CACHED_BYTES / 2).unwrap());
        allocations.iter_mut().for_each(|bytes| state.free(bytes));
        assert_eq!(state.freed_memory.lock().len(), 2);
    }
}
