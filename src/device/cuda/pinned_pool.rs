//! A pool of pinned host memory, which the GPU can access directly.

use crate::sync::Mutex;
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
pub(super) const MIN_PINNED_BYTES: usize = 1 << 14;

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
