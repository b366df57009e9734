//! A pool of pinned host memory, which the GPU can access directly.

use crate::{memory::size_class, sync::Mutex};
use cust::sys::{CUresult, cuMemAllocHost_v2, cuMemFreeHost};
use std::{
    collections::BTreeMap,
    ptr::{self, NonNull},
};

/// A cache of free pinned blocks. Pinning a block takes far longer than copying its contents.
#[derive(Default)]
pub(super) struct PinnedPool(Mutex<Free>);

#[derive(Default)]
struct Free {
    bytes: usize,
    /// Free pinned blocks, keyed by size in bytes.
    blocks: BTreeMap<usize, Vec<Block>>,
}

/// Largest total size of cached blocks, in bytes.
const MAX_CACHED_BYTES: usize = 1 << 28;

/// Smallest allocation that is pinned, in bytes; smaller blocks would waste most of their pages.
const MIN_PINNED_BYTES: usize = 1 << 14;

/// Returns the size of the pinned block for `len` bytes, which is less than a quarter larger than
/// `len`. Returns `None` if `len` is too small to pin or too large.
pub(super) fn block_size(len: usize) -> Option<usize> {
    size_class(len).filter(|_| len >= MIN_PINNED_BYTES)
}

impl PinnedPool {
    /// Returns a cached or a new block of `size` bytes, or `None` if the driver cannot pin a new
    /// block. The CUDA context must be current.
    pub(super) fn take(&self, size: usize) -> Option<Block> {
        let mut free = self.0.lock();
        match free.blocks.get_mut(&size).and_then(Vec::pop) {
            Some(block) => {
                free.bytes -= size;
                Some(block)
            }
            None => Block::new(size),
        }
    }

    /// Caches a block, or frees it if the cache is full. The CUDA context must be current.
    pub(super) fn give(&self, block: Block) {
        let mut free = self.0.lock();
        if free.bytes + block.size <= MAX_CACHED_BYTES {
            free.bytes += block.size;
            free.blocks.entry(block.size).or_default().push(block);
        }
    }

    /// Frees all cached blocks. The CUDA context must be current.
    pub(super) fn release(&self) {
        *self.0.lock() = Free::default();
    }
}

/// A block of pinned memory.
pub(super) struct Block {
    pub(super) start: NonNull<u8>,
    size: usize,
}

// SAFETY: the block owns its memory.
unsafe impl Send for Block {}
// SAFETY: a shared reference to a block gives only read access.
unsafe impl Sync for Block {}

impl Block {
    fn new(size: usize) -> Option<Self> {
        let mut start = ptr::null_mut();
        // SAFETY: `start` is valid for writes of a pointer.
        let result = unsafe { cuMemAllocHost_v2(&mut start, size) };
        let start = NonNull::new(start.cast()).filter(|_| result == CUresult::CUDA_SUCCESS)?;
        // SAFETY: the driver has allocated `size` bytes at `start`.
        unsafe { start.write_bytes(0, size) };
        Some(Self { start, size })
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: the driver allocated the block, and `self` owns it.
        let _ = unsafe { cuMemFreeHost(self.start.as_ptr().cast()) };
    }
}

#[cfg(test)]
mod tests {
    use super::{MIN_PINNED_BYTES, block_size};

    #[test]
    fn less_than_a_fifth_of_a_pinned_block_is_unused() {
        const PAGE: usize = 4096;
        let powers = (14..40).map(|exponent| 1 << exponent);
        for len in powers.flat_map(|size| [size, size + 1, size + size / 4 + 1, 2 * size - 1]) {
            let size = block_size(len).unwrap();
            assert!(size >= len && 5 * (size - len) < size, "{len} bytes in {size}");
            assert_eq!(size % PAGE, 0, "{len} bytes in {size}");
        }
        assert_eq!(block_size(MIN_PINNED_BYTES - 1), None);
        assert_eq!(block_size(usize::MAX), None);
    }
}
