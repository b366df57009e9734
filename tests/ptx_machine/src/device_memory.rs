//! Device memory: the live allocations of the driver, and which of their bytes were written.
//!
//! The kernels address device memory by the addresses of the driver's allocations in this process.
//! Only this module accesses memory at the addresses that the kernels use.
#![allow(unsafe_code)]

use std::{cell::Cell, ptr};

/// A live allocation.
struct Allocation {
    start: u64,
    bytes: u64,
    /// GPU that may access the allocation; `None` for pinned host memory.
    card: Option<u32>,
    /// For each byte, 1 if it was written, else 0. Empty for pinned host memory, because the
    /// machine does not see what the host writes.
    written: Vec<u8>,
    /// For each granule, the tag of the thread that wrote it last. Empty for pinned host memory.
    writers: Vec<u32>,
}

/// Number of consecutive bytes that share the tag of a writer. No kernel stores elements of fewer
/// bytes.
const GRANULE: usize = 2;

/// Tags of the threads that run now. A thread has another tag in each launch and after each barrier,
/// and later tags are greater.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tags {
    /// Least tags of the current launch, of the current block, and of the interval since the
    /// block's last barrier.
    pub(crate) launch: u32,
    pub(crate) block: u32,
    pub(crate) interval: u32,
}

impl Tags {
    /// Returns whether an access by the thread with the tag `own` conflicts with a write. Writes by
    /// other blocks of the launch conflict, and so do writes by other threads of the same block
    /// since the last barrier.
    #[inline(always)]
    fn conflict(self, own: u32, writer: u32) -> bool {
        (writer >= self.launch) & (writer < self.block)
            | (writer >= self.interval) & (writer != own)
    }

    /// Checks an access of consecutive threads, each to `bytes` bytes, from the thread `first` on.
    #[inline(always)]
    fn check(self, writers: &[u32], bytes: usize, first: u32) -> Result<(), AccessError> {
        let mut conflicts = false;
        for (own, writers) in (first..).zip(writers.chunks(bytes / GRANULE)) {
            for writer in writers {
                conflicts |= self.conflict(own, *writer);
            }
        }
        if conflicts { Err(AccessError::Conflict) } else { Ok(()) }
    }
}

impl Allocation {
    fn contains(&self, address: u64, bytes: u64) -> bool {
        address >= self.start && bytes <= self.bytes && address - self.start <= self.bytes - bytes
    }
}

/// All live allocations, sorted by address.
#[derive(Default)]
pub struct DeviceMemory {
    allocations: Vec<Allocation>,
    /// Tags of the threads that run now.
    pub(crate) tags: Tags,
    /// Index of the allocation that was found last.
    last: Cell<usize>,
}

/// Why an access to device memory is faulty.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum AccessError {
    /// The access lies outside every allocation that the GPU may access.
    Outside,
    Unwritten,
    /// Another thread wrote the bytes, and no barrier orders the accesses.
    Conflict,
}

impl DeviceMemory {
    /// Adds an allocation. If `card` is a GPU, only this GPU may access the allocation, whose bytes
    /// count as not yet written. If `card` is `None`, the allocation is pinned host memory, whose
    /// bytes count as written.
    ///
    /// # Safety
    /// The bytes must be accessible until `remove` is called, and no reference to them may exist
    /// while a kernel runs.
    pub unsafe fn add(&mut self, start: u64, bytes: u64, card: Option<u32>) {
        let marks = if card.is_some() { bytes as usize } else { 0 };
        let (written, writers) = (vec![0; marks], vec![0; marks.div_ceil(GRANULE)]);
        let at = self.allocations.partition_point(|other| other.start < start);
        self.allocations.insert(at, Allocation { start, bytes, card, written, writers });
    }

    /// Removes the allocation at `start`.
    pub fn remove(&mut self, start: u64) {
        self.allocations.retain(|allocation| allocation.start != start);
        self.last.set(0);
    }

    /// Marks bytes as written by the host.
    pub fn mark_written(&mut self, address: u64, bytes: u64) {
        if let Some(index) = self.index_of(address, bytes) {
            let allocation = &mut self.allocations[index];
            let first = (address - allocation.start) as usize;
            if !allocation.written.is_empty() {
                allocation.written[first..first + bytes as usize].fill(1);
            }
        }
    }

    /// Marks bytes as written where the bytes of the copy's source were written.
    pub fn mark_copied(&mut self, to: u64, from: u64, bytes: u64) {
        let Some(source) = self.index_of(from, bytes) else { return };
        let source = &self.allocations[source];
        if source.written.is_empty() {
            return self.mark_written(to, bytes);
        }
        let first = (from - source.start) as usize;
        let marks = source.written[first..first + bytes as usize].to_vec();
        if let Some(index) = self.index_of(to, bytes) {
            let allocation = &mut self.allocations[index];
            let first = (to - allocation.start) as usize;
            allocation.written[first..first + bytes as usize].copy_from_slice(&marks);
        }
    }

    #[inline]
    fn index_of(&self, address: u64, bytes: u64) -> Option<usize> {
        let last = self.last.get();
        if self.allocations.get(last).is_some_and(|found| found.contains(address, bytes)) {
            return Some(last);
        }
        let after = self.allocations.partition_point(|other| other.start <= address);
        let index = after.checked_sub(1)?;
        self.last.set(index);
        self.allocations[index].contains(address, bytes).then_some(index)
    }

    /// Returns the index of the allocation with these bytes and the offset of the first byte.
    #[inline]
    fn locate(&self, card: u32, address: u64, bytes: u64) -> Result<(usize, usize), AccessError> {
        let index = self.index_of(address, bytes).ok_or(AccessError::Outside)?;
        let allocation = &self.allocations[index];
        if allocation.card.is_some_and(|owner| owner != card) {
            return Err(AccessError::Outside);
        }
        Ok((index, (address - allocation.start) as usize))
    }

    /// Forgets all writes, so that tags can start at 1 again.
    pub(crate) fn clear_writers(&mut self) {
        for allocation in &mut self.allocations {
            allocation.writers.fill(0);
        }
    }

    /// Reads bytes, which a kernel or the host must have written. Each thread reads `bytes` bytes,
    /// and the first thread has the tag `tag`.
    #[inline(always)]
    pub(crate) fn read(
        &self,
        (card, tag): (u32, u32),
        address: u64,
        bytes: usize,
        to: &mut [u8],
    ) -> Result<(), AccessError> {
        let (index, first) = self.locate(card, address, to.len() as u64)?;
        let Allocation { written, writers, .. } = &self.allocations[index];
        if !written.is_empty() {
            let mask = written[first..first + to.len()].iter().fold(1, |all, byte| all & byte);
            if mask == 0 {
                return Err(AccessError::Unwritten);
            }
            // Several threads may share a granule if elements are narrower.
            if bytes >= GRANULE {
                let writers = &writers[first / GRANULE..(first + to.len()) / GRANULE];
                self.tags.check(writers, bytes, tag)?;
            }
        }
        // SAFETY: `locate` has found the bytes in a live allocation, which the caller of `add`
        // promised to be accessible. `to` is a Rust slice, so it does not overlap the allocation.
        unsafe { ptr::copy_nonoverlapping(address as *const u8, to.as_mut_ptr(), to.len()) };
        Ok(())
    }

    /// Writes bytes. Each thread writes `bytes` bytes, and the first thread has the tag `tag`.
    #[inline(always)]
    pub(crate) fn write(
        &mut self,
        (card, tag): (u32, u32),
        address: u64,
        bytes: usize,
        from: &[u8],
    ) -> Result<(), AccessError> {
        let (index, first) = self.locate(card, address, from.len() as u64)?;
        let Allocation { written, writers, .. } = &mut self.allocations[index];
        if !written.is_empty() {
            let writers = &mut writers[first / GRANULE..(first + from.len()) / GRANULE];
            self.tags.check(writers, bytes, tag)?;
            for (tag, writers) in (tag..).zip(writers.chunks_mut(bytes / GRANULE)) {
                writers.fill(tag);
            }
            written[first..first + from.len()].fill(1);
        }
        // SAFETY: as in `read`.
        unsafe { ptr::copy_nonoverlapping(from.as_ptr(), address as *mut u8, from.len()) };
        Ok(())
    }

    /// Replaces a word by the greater of the word and `value`, and returns the old word. Atomic
    /// accesses do not conflict with each other.
    pub(crate) fn atomic_max(
        &mut self,
        (card, tag): (u32, u32),
        address: u64,
        value: u64,
    ) -> Result<u64, AccessError> {
        let mut bytes = [0; 8];
        self.read((card, tag), address, 8, &mut bytes)?;
        let old = u64::from_le_bytes(bytes);
        let bytes = old.max(value).to_le_bytes();
        // SAFETY: `read` has found the bytes in a live allocation, which the caller of `add`
        // promised to be accessible.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), address as *mut u8, 8) };
        Ok(old)
    }
}
