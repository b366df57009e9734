//! Splitting of each reduction into parts, for launches with too few reductions to fill the GPU.

use crate::{
    device::{CudaDevice, cuda::CudaBuffer},
    element::Element,
    error::Result,
};

/// Number of thread blocks per multiprocessor below which each sum is split into parts.
const BLOCKS_PER_MULTIPROCESSOR: usize = 4;

/// Largest number of parts into which a launch splits a sum. A second launch adds up the partial
/// sums.
const MAX_PARTS: usize = 256;

/// Number and length of the parts into which a launch splits each sum.
#[derive(Clone, Copy)]
pub(super) struct SplitReduction {
    /// Number of parts into which each sum is split.
    pub parts: usize,
    /// Number of items in each part except the last part; a multiple of 64.
    pub part_len: usize,
}

impl SplitReduction {
    /// Splits a sum of `items` items into at most `max_parts` parts of at least `min_items` items,
    /// except that the last part may be shorter.
    pub(super) fn new(max_parts: usize, items: usize, min_items: usize) -> Self {
        let parts = max_parts.min(items / min_items).clamp(1, MAX_PARTS);
        let part_len = items.div_ceil(parts).next_multiple_of(64);
        Self { parts: items.div_ceil(part_len.max(1)).max(1), part_len }
    }
}

impl CudaDevice {
    /// Returns the parts into which a launch of `blocks` thread blocks splits each of its sums. A
    /// sum of `items` items is split into parts of at least `min_items` items, except that the last
    /// part may be shorter.
    pub(super) fn split(&self, blocks: usize, items: usize, min_items: usize) -> SplitReduction {
        let target = BLOCKS_PER_MULTIPROCESSOR * self.multiprocessors;
        SplitReduction::new(target.div_ceil(blocks.max(1)), items, min_items)
    }

    /// Allocates a buffer for the partial sums of `outputs` outputs, unless each sum has only one
    /// part.
    pub(super) fn partial_sums<T: Element>(
        &self,
        split: SplitReduction,
        outputs: usize,
    ) -> Result<Option<CudaBuffer>> {
        match split.parts {
            1 => Ok(None),
            parts => self.scratch::<T::Acc>(outputs.saturating_mul(parts)).map(Some),
        }
    }
}
