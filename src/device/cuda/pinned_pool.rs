//! Host memory that the GPU reaches by itself.

use super::context::Context;
use crate::memory::HostStorage;
use cust::sys::{CUresult, cuMemAllocHost_v2, cuMemFreeHost};
use parking_lot::Mutex;
use std::{
    collections::BTreeMap,
    ptr::{self, NonNull},
    slice,
    sync::Arc,
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
const MIN_PINNED_BYTES: usize = 1 << 14;

impl PinnedPool {
    /// A free block of this size, or a new one. The context is current.
    fn take(&self, size: usize) -> Option<Block> {
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
    fn give(&self, block: Block) {
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
struct Block {
    start: NonNull<u8>,
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

/// Pinned bytes. Copies from and to them are waited for, so that they may be used again as soon
/// as they are dropped.
pub(super) struct PinnedBytes {
    /// `Some` until dropped.
    block: Option<Block>,
    len: usize,
    context: Arc<Context>,
}

impl PinnedBytes {
    /// `len` bytes, all zero, if they are worth it and can be had.
    pub(super) fn zeroed(context: &Arc<Context>, len: usize) -> Option<Self> {
        let size = len.checked_next_power_of_two().filter(|_| len >= MIN_PINNED_BYTES)?;
        context.enter().ok()?;
        let block = Some(context.pinned.take(size)?);
        let mut taken = Self { block, len, context: Arc::clone(context) };
        taken.bytes_mut().fill(0);
        Some(taken)
    }
}

impl HostStorage for PinnedBytes {
    fn bytes(&self) -> &[u8] {
        let Some(block) = &self.block else { return &[] };
        // SAFETY: the block holds at least `len` bytes, and lives as long as `self`.
        unsafe { slice::from_raw_parts(block.start.as_ptr(), self.len) }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        let Some(block) = &mut self.block else { return &mut [] };
        // SAFETY: as above; it is borrowed exclusively.
        unsafe { slice::from_raw_parts_mut(block.start.as_ptr(), self.len) }
    }
}

impl Drop for PinnedBytes {
    fn drop(&mut self) {
        if let Some(block) = self.block.take() {
            let _ = self.context.enter();
            self.context.pinned.give(block);
        }
    }
}
