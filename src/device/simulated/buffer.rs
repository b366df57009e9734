//! Memory of the mirror device.

use super::state::DeviceState;
use crate::{
    element::Storable,
    error::{Error, Result},
    memory::HostBytes,
};
use parking_lot::{
    MappedRwLockReadGuard, MappedRwLockWriteGuard, RwLock, RwLockReadGuard, RwLockWriteGuard,
};
use std::{fmt, ops::Range, sync::Arc};

/// What memory without a value holds, over and over: NaN in every element type, an index out of
/// every range.
pub const POISON: [u8; 2] = [0xfd, 0x7f];

/// Overwrites `bytes` by [`POISON`].
pub(super) fn poison(bytes: &mut [u8]) {
    const BLOCK: &[u8] = [POISON; 512].as_flattened();
    for part in bytes.chunks_mut(BLOCK.len()) {
        part.copy_from_slice(&BLOCK[..part.len()]);
    }
}

/// A run of bytes on a [`MirrorDevice`](super::MirrorDevice).
pub struct Buffer(Arc<Allocation>);

/// Bytes that live as long as a buffer, or queued work, refers to them.
struct Allocation {
    len: usize,
    bytes: RwLock<HostBytes>,
    machine: Arc<DeviceState>,
}

impl Buffer {
    /// `len` zeroed bytes.
    pub(super) fn zeroed(machine: &Arc<DeviceState>, len: usize) -> Result<Self> {
        let bytes = RwLock::new(machine.allocate(len)?);
        Ok(Self(Arc::new(Allocation { len, bytes, machine: Arc::clone(machine) })))
    }

    /// Size in bytes.
    pub fn bytes(&self) -> usize {
        self.0.len
    }

    /// What the memory holds at this moment, whatever work is still queued.
    pub fn snapshot(&self) -> Vec<u8> {
        self.0.bytes.read().to_vec()
    }

    /// All of it.
    pub(super) fn whole(&self) -> Region {
        Region { memory: Arc::clone(&self.0), range: 0..self.0.len }
    }

    /// The part of `len` bytes from `at`.
    pub(super) fn region(&self, at: usize, len: usize) -> Result<Region> {
        let (end, held) = (at.saturating_add(len), self.bytes());
        if end > held {
            return Err(Error::Range { what: "a buffer", start: at, end, len: held });
        }
        Ok(Region { memory: Arc::clone(&self.0), range: at..end })
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({} bytes)", self.bytes())
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        self.machine.free(self.bytes.get_mut());
    }
}

/// A part of a buffer's memory, which it keeps alive.
#[derive(Clone)]
pub(super) struct Region {
    memory: Arc<Allocation>,
    range: Range<usize>,
}

impl Region {
    /// The elements, to be read. The part was taken of a view of `T`, so it is aligned.
    pub(super) fn read<T: Storable>(&self) -> MappedRwLockReadGuard<'_, [T]> {
        RwLockReadGuard::map(self.memory.bytes.read(), |bytes| {
            bytemuck::cast_slice(&bytes[self.range.clone()])
        })
    }

    /// The elements, to be written.
    pub(super) fn write<T: Storable>(&self) -> MappedRwLockWriteGuard<'_, [T]> {
        RwLockWriteGuard::map(self.memory.bytes.write(), |bytes| {
            bytemuck::cast_slice_mut(&mut bytes[self.range.clone()])
        })
    }

    /// Overwrites the part by [`POISON`].
    pub(super) fn poison(&self) {
        poison(&mut self.write::<u8>());
    }
}
