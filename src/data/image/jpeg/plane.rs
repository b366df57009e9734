//! The samples of a component of a JPEG image.

use super::{
    super::raw::RawError,
    frame::{BLOCK, Component},
    idct::inverse_dct,
    tables::Quantization,
    zigzag::Block,
};
use crate::{error::Error, host::vectorized};
use zerocopy::FromZeros;

/// The samples of a component, in whole blocks.
pub(super) struct Plane {
    samples: Box<[u8]>,
    stride: usize,
    /// The number of rows and columns of samples, without those that fill up the blocks.
    size: [usize; 2],
}

impl Plane {
    /// Allocates the samples of `component`.
    pub(super) fn new(component: &Component) -> Result<Self, RawError> {
        let [rows, columns] = component.padded_blocks.map(|blocks| blocks * BLOCK);
        Ok(Self { samples: zeros(rows * columns)?, stride: columns, size: component.size })
    }

    /// Returns the samples of a row. For a row below the image, returns the last row of the image.
    #[inline(always)]
    pub(super) fn row(&self, row: usize) -> &[u8] {
        let row = row.min(self.size[0] - 1);
        &self.samples[row * self.stride..][..self.size[1]]
    }

    /// Computes and stores the samples of the block in row `row` and column `column` of the blocks.
    pub(super) fn store(
        &mut self,
        [row, column]: [usize; 2],
        block: &Block,
        quantization: &Quantization,
    ) {
        let (start, stride) = (BLOCK * (row * self.stride + column), self.stride);
        let samples = &mut self.samples[start..];
        vectorized(
            #[inline(always)]
            |_| inverse_dct(block, quantization, samples, stride),
        );
    }
}

/// Allocates zeros. The operating system only maps the memory pages that are written.
pub(super) fn zeros<T: FromZeros>(len: usize) -> Result<Box<[T]>, RawError> {
    <[T]>::new_box_zeroed_with_elems(len).map_err(|_| {
        RawError::TooLarge(Error::out_of_host_memory(len.saturating_mul(size_of::<T>())))
    })
}
