//! Host memory that the GPU reaches by itself.

use cust::sys::{CUresult, cuMemAllocHost_v2, cuMemFreeHost};
use parking_lot::Mutex;
use std::{
    collections::BTreeMap,
    ptr::{self, NonNull},
};

/// Pinned blocks that are free: pinning costs far more than to copy what is in them.
#[derive(Default)]
pub(super) struct PinnedPool(Mutex<Free>);

#[derive(Default)]
struct Free {
    bytes: usize,
    /// By their sizes.
    blocks: BTreeMap<usize, Vec<Block>>,
}

/// Bytes of free blocks kept at most.
const MAX_CACHED_BYTES: usize = 1 << 28;

/// What is smaller is not worth a page of its own.
pub(super) const MIN_PINNED_BYTES: usize = 1 << 14;

impl PinnedPool {
    /// A free block of this size, or a new one. The context is current.
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

    /// Keeps a block for later, if there are not enough. The context is current.
    pub(super) fn give(&self, block: Block) {
        let mut free = self.0.lock();
        if free.bytes + block.size <= MAX_CACHED_BYTES {
            free.bytes += block.size;
            free.blocks.entry(block.size).or_default().push(block);
        }
    }

    /// Frees what is free. The context is current.
    pub(super) fn release(&self) {
        *self.0.lock() = Free::default();
    }
}

/// A block of pinned memory.
pub(super) struct Block {
    pub(super) start: NonNull<u8>,
    size: usize,
}

// SAFETY: the memory belongs to the block.
unsafe impl Send for Block {}
// SAFETY: as above; what is shared is only read.
unsafe impl Sync for Block {}

impl Block {
    fn new(size: usize) -> Option<Self> {
        let mut start = ptr::null_mut();
        // SAFETY: there is room for the address.
        let taken = unsafe { cuMemAllocHost_v2(&mut start, size) };
        let start = NonNull::new(start.cast()).filter(|_| taken == CUresult::CUDA_SUCCESS)?;
        // SAFETY: the block is of `size` bytes. From here on they are initialised.
        unsafe { start.write_bytes(0, size) };
        Some(Self { start, size })
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: the block came from the driver, and nobody else has it.
        let _ = unsafe { cuMemFreeHost(self.start.as_ptr().cast()) };
    }
}
