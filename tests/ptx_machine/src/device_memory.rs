//! Device memory: the live allocations of the driver, and which of their bytes were written.
//!
//! The kernels address device memory by the addresses of the driver's allocations in this process.
//! This module is the only one that accesses these addresses.
#![allow(unsafe_code)]

use std::{cell::Cell, ptr};

/// A live allocation.
struct Allocation {
    start: u64,
    bytes: u64,
    /// GPU that may access the allocation; `None` for pinned host memory.
    card: Option<u32>,
    /// For each byte, 1 if it was written, else 0. Empty for pinned host memory, which the host
    /// writes without notice.
    written: Vec<u8>,
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
    /// Index of the allocation that was found last.
    last: Cell<usize>,
}

/// Why an access to device memory is faulty.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum AccessError {
    /// Outside every allocation that the GPU may access.
    Outside,
    Unwritten,
}

impl DeviceMemory {
    /// Adds an allocation. Its bytes count as not written. With `card`, only this GPU may access the
    /// allocation; without, the allocation is pinned host memory, and its bytes count as written.
    ///
    /// # Safety
    /// The bytes must be accessible until `remove` is called, and no reference to them may exist
    /// while a kernel runs.
    pub unsafe fn add(&mut self, start: u64, bytes: u64, card: Option<u32>) {
        let written = if card.is_some() { vec![0; bytes as usize] } else { Vec::new() };
        let at = self.allocations.partition_point(|other| other.start < start);
        self.allocations.insert(at, Allocation { start, bytes, card, written });
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

    /// Reads bytes, which a kernel or the host must have written.
    #[inline]
    pub(crate) fn read(&self, card: u32, address: u64, to: &mut [u8]) -> Result<(), AccessError> {
        let (index, first) = self.locate(card, address, to.len() as u64)?;
        let written = &self.allocations[index].written;
        if !written.is_empty() {
            let mask = written[first..first + to.len()].iter().fold(1, |all, byte| all & byte);
            if mask == 0 {
                return Err(AccessError::Unwritten);
            }
        }
        // SAFETY: `locate` has found the bytes in a live allocation, which the caller of `add`
        // promised to be accessible. `to` is a Rust slice, so it does not overlap the allocation.
        unsafe { ptr::copy_nonoverlapping(address as *const u8, to.as_mut_ptr(), to.len()) };
        Ok(())
    }

    #[inline]
    pub(crate) fn write(
        &mut self,
        card: u32,
        address: u64,
        from: &[u8],
    ) -> Result<(), AccessError> {
        let (index, first) = self.locate(card, address, from.len() as u64)?;
        let written = &mut self.allocations[index].written;
        if !written.is_empty() {
            written[first..first + from.len()].fill(1);
        }
        // SAFETY: as in `read`.
        unsafe { ptr::copy_nonoverlapping(from.as_ptr(), address as *mut u8, from.len()) };
        Ok(())
    }
}
