//! Memory of the simulated device.

use super::{poison::poison, state::DeviceState};
use crate::{
    element::Storable,
    error::{Error, Result},
    memory::HostBytes,
    sync::{RwLock, RwLockReadGuard, RwLockWriteGuard},
};
use std::{
    fmt,
    marker::PhantomData,
    ops::{Deref, DerefMut, Range},
    sync::Arc,
};

/// Allocation on a [`SimulatedDevice`](super::SimulatedDevice).
///
/// ```
/// use cortado::prelude::*;
///
/// let device = SimulatedDevice::new();
/// let mut buffer = device.alloc(2)?;
/// device.upload(&[1, 2], &mut buffer, 0)?;
/// assert_eq!(buffer.snapshot(), [0, 0]); // the upload is queued
/// device.synchronize()?;
/// assert_eq!(buffer.snapshot(), [1, 2]);
/// # Ok::<(), cortado::Error>(())
/// ```
pub struct Buffer(Arc<Allocation>);

/// Memory of one allocation, which is freed when no buffer and no queued work refers to it any
/// more.
struct Allocation {
    len: usize,
    bytes: RwLock<HostBytes>,
    state: Arc<DeviceState>,
}

impl Buffer {
    /// Allocates `len` zeroed bytes.
    pub(super) fn zeroed(state: &Arc<DeviceState>, len: usize) -> Result<Self> {
        let bytes = RwLock::new(state.allocate(len)?);
        Ok(Self(Arc::new(Allocation { len, bytes, state: Arc::clone(state) })))
    }

    /// Returns the size of the buffer in bytes.
    pub fn bytes(&self) -> usize {
        self.0.len
    }

    /// Returns the current contents of the buffer, without waiting for queued work.
    pub fn snapshot(&self) -> Vec<u8> {
        self.0.bytes.read().to_vec()
    }

    /// Returns the region that covers the whole buffer.
    pub(super) fn whole(&self) -> Region {
        Region { allocation: Arc::clone(&self.0), range: 0..self.0.len }
    }

    /// Returns the region of `len` bytes that starts at byte `start`.
    pub(super) fn region(&self, start: usize, len: usize) -> Result<Region> {
        let (end, size) = (start.saturating_add(len), self.bytes());
        if end > size {
            return Err(Error::Range { what: "a buffer", start, end, len: size });
        }
        Ok(Region { allocation: Arc::clone(&self.0), range: start..end })
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({} bytes)", self.bytes())
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        self.state.free(self.bytes.get_mut());
    }
}

/// Range of bytes in an allocation; the region keeps the allocation alive.
#[derive(Clone)]
pub(super) struct Region {
    allocation: Arc<Allocation>,
    range: Range<usize>,
}

impl Region {
    /// Locks the region's elements for reading. The region belongs to a view of `T`, so the region
    /// is aligned for `T`.
    pub(super) fn read<T: Storable>(&self) -> ReadElements<'_, T> {
        Elements::new(self.allocation.bytes.read(), &self.range)
    }

    /// Locks the region's elements for writing.
    pub(super) fn write<T: Storable>(&self) -> WriteElements<'_, T> {
        Elements::new(self.allocation.bytes.write(), &self.range)
    }

    /// Overwrites the region with [`POISON`](super::POISON).
    pub(super) fn poison(&self) {
        poison(&mut self.write::<u8>());
    }
}

/// Elements of a region that are locked for reading.
pub(super) type ReadElements<'a, T> = Elements<RwLockReadGuard<'a, HostBytes>, T>;

/// Elements of a region that are locked for writing.
pub(super) type WriteElements<'a, T> = Elements<RwLockWriteGuard<'a, HostBytes>, T>;

/// Elements of a region, with a lock guard for the whole allocation.
pub(super) struct Elements<G, T> {
    guard: G,
    range: Range<usize>,
    elements: PhantomData<fn() -> T>,
}

impl<G, T> Elements<G, T> {
    fn new(guard: G, range: &Range<usize>) -> Self {
        Self { guard, range: range.clone(), elements: PhantomData }
    }
}

impl<G: Deref<Target = HostBytes>, T: Storable> Deref for Elements<G, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        crate::cast::cast_slice(&self.guard[self.range.clone()])
    }
}

impl<G: DerefMut<Target = HostBytes>, T: Storable> DerefMut for Elements<G, T> {
    fn deref_mut(&mut self) -> &mut [T] {
        crate::cast::cast_slice_mut(&mut self.guard[self.range.clone()])
    }
}
