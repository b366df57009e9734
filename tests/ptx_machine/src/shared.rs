//! Shared memory of a block, with a check of each access.
//!
//! The memory records which bytes belong to variables and which bytes were written. For each
//! granule, which is as wide as the kernel's narrowest access, the memory also records which
//! threads accessed the granule since the last barrier. Two accesses to a granule by different
//! threads conflict if one of them writes and no barrier lies between them. The order of
//! conflicting accesses is undefined even within a warp, because the threads of a warp need not run
//! in step.

use crate::kernel::Kernel;

/// State of a byte.
const UNWRITTEN: u8 = 1;
const WRITTEN: u8 = 3;

/// Low bits of an access record, which hold the number of the thread. The other bits hold the
/// number of barriers before the access.
const THREAD_BITS: u32 = 11;
/// Thread number in an access record that stands for several threads.
const SEVERAL: u32 = (1 << THREAD_BITS) - 1;

/// Unused bytes between variables, so that an access beyond the end of a variable does not reach
/// the next variable.
const GAP: usize = 256;

#[derive(Default)]
pub(crate) struct Shared {
    bytes: Vec<u8>,
    /// State of each byte, or 0 outside variables.
    states: Vec<u8>,
    /// Base-2 logarithm of the size of a granule in bytes.
    granule_bits: u32,
    /// The last write and read of each granule: the number of barriers before the access, and the
    /// thread.
    writes: Vec<u32>,
    reads: Vec<u32>,
    /// Number of barriers so far, counted from 1 and shifted by `THREAD_BITS`.
    epoch: u32,
}

/// Returns the offset of a variable that follows the first `end` bytes. The offset has exactly the
/// alignment that the variable declares, because a kernel must not rely on a greater alignment.
pub(crate) fn offset_after(end: usize, alignment: usize) -> usize {
    let offset = (end + GAP).next_multiple_of(alignment);
    if offset.is_multiple_of(2 * alignment) { offset + alignment } else { offset }
}

/// Why an access to shared memory is faulty.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SharedError {
    Misaligned,
    Outside,
    Unwritten,
    /// A conflict with an access of another thread, or of several threads.
    Conflict {
        with_write: bool,
        thread: Option<u32>,
    },
}

impl Shared {
    /// Prepares the memory for a block of `kernel`, and marks all bytes as not yet written.
    pub(crate) fn reset(&mut self, kernel: &Kernel) {
        let end = kernel.shared.last().map_or(0, |last| last.offset + last.bytes + GAP);
        self.granule_bits = kernel.shared_granule.trailing_zeros();
        self.bytes.resize(end, 0);
        self.states.clear();
        self.states.resize(end, 0);
        for variable in &kernel.shared {
            self.states[variable.offset..variable.offset + variable.bytes].fill(UNWRITTEN);
        }
        for records in [&mut self.writes, &mut self.reads] {
            records.clear();
            records.resize(end >> self.granule_bits, 0);
        }
        self.epoch = 1 << THREAD_BITS;
    }

    /// Records a barrier, which separates earlier accesses from later accesses. Returns false if a
    /// block has too many barriers to be counted.
    pub(crate) fn pass_barrier(&mut self) -> bool {
        self.epoch = self.epoch.wrapping_add(1 << THREAD_BITS);
        self.epoch != 0
    }

    /// Checks the bounds of an access and the states of its bytes.
    #[inline(always)]
    fn check(&self, address: u64, bytes: usize, state: u8) -> Result<usize, SharedError> {
        if !address.is_multiple_of(bytes as u64) {
            return Err(SharedError::Misaligned);
        }
        let first = address as usize;
        let states = self.states.get(first..).and_then(|states| states.get(..bytes));
        let states = states.ok_or(SharedError::Outside)?;
        if states.iter().fold(state, |all, found| all & found) == state {
            return Ok(first);
        }
        Err(if states.contains(&0) { SharedError::Outside } else { SharedError::Unwritten })
    }

    /// Returns the error for a conflict with the access that `record` describes.
    #[cold]
    fn conflict(with_write: bool, record: u32) -> SharedError {
        let thread = record & SEVERAL;
        SharedError::Conflict { with_write, thread: (thread != SEVERAL).then_some(thread) }
    }

    #[inline(always)]
    pub(crate) fn read(
        &mut self,
        thread: u32,
        address: u64,
        to: &mut [u8],
    ) -> Result<(), SharedError> {
        let first = self.check(address, to.len(), WRITTEN)?;
        to.copy_from_slice(&self.bytes[first..first + to.len()]);
        let own = self.epoch | thread;
        let granules = first >> self.granule_bits..(first + to.len()) >> self.granule_bits;
        let (writes, reads) = (&self.writes[granules.clone()], &mut self.reads[granules]);
        for (write, read) in writes.iter().zip(reads) {
            if *write >= self.epoch && *write != own {
                return Err(Self::conflict(true, *write));
            }
            *read = if *read < self.epoch || *read == own { own } else { self.epoch | SEVERAL };
        }
        Ok(())
    }

    #[inline(always)]
    pub(crate) fn write(
        &mut self,
        thread: u32,
        address: u64,
        from: &[u8],
    ) -> Result<(), SharedError> {
        let first = self.check(address, from.len(), UNWRITTEN)?;
        self.bytes[first..first + from.len()].copy_from_slice(from);
        self.states[first..first + from.len()].fill(WRITTEN);
        let own = self.epoch | thread;
        let granules = first >> self.granule_bits..(first + from.len()) >> self.granule_bits;
        let (writes, reads) = (&mut self.writes[granules.clone()], &self.reads[granules]);
        for (write, read) in writes.iter_mut().zip(reads) {
            if *write >= self.epoch && *write != own {
                return Err(Self::conflict(true, *write));
            }
            if *read >= self.epoch && *read != own {
                return Err(Self::conflict(false, *read));
            }
            *write = own;
        }
        Ok(())
    }
}
