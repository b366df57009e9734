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

impl CudaDevice {
    /// Returns the parts into which a launch of `blocks` thread blocks splits each of its sums. A
    /// sum of `items` items is split into parts of at least `min_items` items, except that the last
    /// part may be shorter.
    pub(super) fn split(&self, blocks: usize, items: usize, min_items: usize) -> SplitReduction {
        let target = BLOCKS_PER_MULTIPROCESSOR * self.multiprocessors;
        let parts = target.div_ceil(blocks.max(1)).min(items / min_items).clamp(1, MAX_PARTS);
        let chunk = items.div_ceil(parts).next_multiple_of(64);
        SplitReduction { parts: items.div_ceil(chunk.max(1)).max(1), part_len: chunk }
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
