//! What all handles of one mirror device share.

use super::{
    buffer::poison,
    fault::{Fault, Faults},
};
use crate::{
    error::{Error, Result},
    memory::HostBytes,
};
use parking_lot::{Mutex, MutexGuard};
use std::mem;

/// Bytes of freed memory that are kept.
const MAX_CACHED_BYTES: usize = 64 << 20;

/// What a [`MirrorDevice`](super::MirrorDevice) and its forks did so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Allocations.
    pub allocations: u64,
    /// Bytes allocated and not yet freed.
    pub bytes: usize,
    /// Uploads queued.
    pub uploads: u64,
    /// Downloads done.
    pub downloads: u64,
    /// Kernels queued.
    pub kernels: u64,
    /// Kernels and uploads that ran, or failed in flight.
    pub ran: u64,
}

/// The device itself.
#[derive(Debug, Default)]
pub(super) struct DeviceState {
    pub(super) faults: Faults,
    counters: Mutex<Counters>,
    /// Held by whoever runs queued work: one piece runs at a time on the whole device.
    turn: Mutex<()>,
    /// Freed memory, poisoned, oldest first.
    freed: Mutex<Vec<HostBytes>>,
}

impl DeviceState {
    pub(super) const NAME: &str = "mirror";

    /// A failure of `what`.
    pub(super) fn failed(what: impl Into<String>) -> Error {
        Error::device(Self::NAME, what.into())
    }

    pub(super) fn counters(&self) -> Counters {
        *self.counters.lock()
    }

    pub(super) fn count(&self, change: impl FnOnce(&mut Counters)) {
        change(&mut self.counters.lock());
    }

    pub(super) fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock()
    }

    /// Zeroed memory, by preference memory that was in use before.
    pub(super) fn allocate(&self, len: usize) -> Result<HostBytes> {
        let full = |_| Error::OutOfMemory { device: Self::NAME.into(), bytes: len };
        if self.faults.strikes(Fault::Alloc) {
            return Err(full(()));
        }
        let bytes = match self.reuse(len) {
            Some(bytes) => bytes,
            None => HostBytes::zeroed(len).map_err(|_| full(()))?,
        };
        self.count(|counters| {
            counters.allocations += 1;
            counters.bytes += len;
        });
        Ok(bytes)
    }

    fn reuse(&self, len: usize) -> Option<HostBytes> {
        let mut freed = self.freed.lock();
        let fits = freed.iter().position(|bytes| bytes.len() == len)?;
        let mut bytes = freed.remove(fits);
        bytes.fill(0);
        Some(bytes)
    }

    /// Poisons `bytes` and keeps them for a later allocation.
    pub(super) fn free(&self, bytes: &mut HostBytes) {
        self.count(|counters| counters.bytes -= bytes.len());
        poison(bytes);
        let Ok(nothing) = HostBytes::zeroed(0) else { return };
        let mut freed = self.freed.lock();
        freed.push(mem::replace(bytes, nothing));
        let mut held: usize = freed.iter().map(|bytes| bytes.len()).sum();
        while held > MAX_CACHED_BYTES {
            held -= freed.remove(0).len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::simulated::POISON;

    #[test]
    fn freed_memory_is_poisoned_and_what_is_kept_of_it_bounded() {
        let machine = DeviceState::default();
        machine.free(&mut machine.allocate(4).unwrap());
        assert_eq!(machine.freed.lock()[0][..], [POISON, POISON].concat());
        let mut large = [0; 3].map(|_| machine.allocate(MAX_CACHED_BYTES / 2).unwrap());
        large.iter_mut().for_each(|bytes| machine.free(bytes));
        assert_eq!(machine.freed.lock().len(), 2);
    }
}
