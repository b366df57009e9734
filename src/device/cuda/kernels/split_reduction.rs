//! How sums are split where there are too few of them to fill a GPU.

use crate::device::CudaDevice;

/// Blocks that a multiprocessor is to have.
const BLOCKS: usize = 4;

/// Parts of a sum at most, which are then added.
const PARTS: usize = 256;

/// Parts of every sum.
#[derive(Clone, Copy)]
pub(super) struct SplitReduction {
    /// How many.
    pub parts: usize,
    /// Items of each but the last: a multiple of what is loaded at once.
    pub chunk: usize,
}

impl CudaDevice {
    /// Splits sums of `items`, done in `blocks` blocks, into parts of about `least` items or more.
    pub(super) fn split(&self, blocks: usize, items: usize, least: usize) -> SplitReduction {
        let wanted = (BLOCKS * self.context().multiprocessors).div_ceil(blocks.max(1));
        let parts = wanted.min(items / least).clamp(1, PARTS);
        let chunk = items.div_ceil(parts).next_multiple_of(64);
        SplitReduction { parts: items.div_ceil(chunk.max(1)).max(1), chunk }
    }
}
