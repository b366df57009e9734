//! Pinned host memory for the host side of a device's memory.

use super::{
    context::Context,
    pinned_pool::{Block, block_size},
};
use crate::memory::HostStorage;
use std::{slice, sync::Arc};

/// Pinned host memory. Each transfer returns only after the copy is done, so the pool can reuse a
/// dropped block immediately.
pub(super) struct PinnedBytes {
    /// The pinned block; `Some` until `self` is dropped.
    block: Option<Block>,
    len: usize,
    context: Arc<Context>,
}

impl PinnedBytes {
    /// Returns `len` zeroed bytes of pinned memory, or `None` if `len` is too small to pin or
    /// pinning fails.
    pub(super) fn zeroed(context: &Arc<Context>, len: usize) -> Option<Self> {
        let size = block_size(len)?;
        context.enter().ok()?;
        let block = Some(context.pinned.take(size)?);
        let mut pinned = Self { block, len, context: Arc::clone(context) };
        pinned.bytes_mut().fill(0);
        Some(pinned)
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
        // SAFETY: the block holds `len` bytes, lives as long as `self`, and is borrowed
        // exclusively.
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
