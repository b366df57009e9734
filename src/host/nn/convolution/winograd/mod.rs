//! Winograd's algorithms F(2×2, 3×3) and F(2×2, 5×5) for convolutions in `f32` with 3×3 or 5×5
//! filters and a stride of 1 (Lavin and Gray 2015, arXiv:1509.09308).
//!
//! The outputs of a plane are divided into *tiles* of 2×2. By the definition of convolution, a tile
//! of outputs requires 36 multiplications per channel with 3×3 taps, and 100 with 5×5 taps. By
//! Winograd's algorithms, it requires 16 or 36:
//!
//! ```text
//! U = G·g·Gᵀ     elements of a filter g of 3×3 or 5×5 taps     transform_filters
//! V = Bᵀ·d·B     elements of a tile d of 4×4 or 6×6 elements   transform_images
//! M = Σ U ⊙ V    sum over the channels: matrix products        gemm
//! y = Aᵀ·M·A     2×2 outputs                                   transform_products
//! ```
//!
//! The gradient of the filters takes the transposed steps in reverse order: `dM = A·dy·Aᵀ`, then
//! the matrix products `dU = Σ dM ⊙ V`, summed over the tiles, then `dg = Gᵀ·dU·G`. The gradient
//! of the images is a convolution with flipped filters.
//!
//! A *block* consists of consecutive rows of tiles, of one image or of all images of a task. The
//! blocks depend on shapes alone, so results are bit-identical for any number of threads.
//!
//! - `transform` computes the transforms of sixteen tiles or filters at a time.
//! - `shifted_phases` is the layout from which the transforms read tiles of a plane.
//! - `tiles` transforms the tiles of images and output gradients.
//! - `forward` computes outputs, and `backward_filters` the gradient of the filters.

pub(crate) mod backward_filters;
pub(crate) mod forward;
pub(crate) mod shifted_phases;
pub(crate) mod tiles;
pub(crate) mod transform;

use crate::{
    host::nn::convolution::winograd::transform::{LANES, Lanes},
    op::{Convolution, SpatialAxis},
};
use std::ops::Range;

/// Largest number of tiles in a block, unless a single row of tiles has more.
const MAX_TILES: usize = 256;

/// Approximate number of transformed elements in one task.
const GRAIN: usize = 1 << 15;

/// Largest number of elements of the transformed tiles and the matrix products of a block that is to
/// stay in L2: 768 KiB of a cache of 1 MiB. The rest of the cache is for the transformed filters,
/// whose size is not checked.
const L2_LEN: usize = 3 << 16;

/// Smallest number of tiles for which a block is limited to [`L2_LEN`] elements. If fewer tiles have
/// [`L2_LEN`] elements, a block has [`MAX_TILES`] tiles, because every block reads all transformed
/// filters.
const MIN_L2_TILES: usize = 64;

/// Smallest number of output planes of a group for which Winograd's algorithm is faster. With fewer
/// planes, the transforms take as long as the saved multiplications.
const MIN_OUTPUTS: usize = 32;

/// Smallest number of channels of a group for which Winograd's algorithm is faster, like
/// [`MIN_OUTPUTS`].
const MIN_CHANNELS: usize = 32;

/// Smallest number of channels of a group for which outputs of 5×5 filters are computed faster by
/// Winograd's algorithm. 5×5 filters save more multiplications than 3×3 filters, but the gradient of
/// the filters transforms both operands. The number also applies to the gradient of images, which is
/// a convolution whose channels are the output planes.
const MIN_CHANNELS_OF_5_TAPS: usize = 20;

/// Smallest number of tiles in the batch for which the transform of the filters pays off.
const MIN_TILES: usize = 64;

/// Geometry of a convolution that Winograd's algorithm computes.
pub(crate) struct Winograd<'a> {
    op: &'a Convolution,
    /// Number of taps in each axis: 3 or 5.
    taps: usize,
    /// Number of image channels of one group.
    channels: usize,
    /// Number of output planes of one group.
    outputs: usize,
    input: [usize; 2],
    pad: [usize; 2],
    output: [usize; 2],
    /// Numbers of rows and columns of tiles in an image.
    tiles: [usize; 2],
    images_per_task: usize,
    /// Number of rows of tiles in a block.
    rows_per_block: usize,
}

/// Rows of tiles of one image, as part of a block.
struct ImageRows {
    image: usize,
    rows: Range<usize>,
    /// Index in the block of the first tile.
    first_tile: usize,
}

impl<'a> Winograd<'a> {
    /// Returns the geometry of `op` if Winograd's algorithm computes outputs faster than implicit
    /// GEMM.
    pub(crate) fn if_outputs_are_faster(op: &'a Convolution) -> Option<Self> {
        let min_channels = |taps| if taps == 5 { MIN_CHANNELS_OF_5_TAPS } else { MIN_CHANNELS };
        Self::new(op).filter(|winograd| winograd.is_faster(min_channels(winograd.taps)))
    }

    /// Returns the geometry of `op` if Winograd's algorithm computes the gradient of the filters
    /// faster than implicit GEMM.
    pub(crate) fn if_filter_gradient_is_faster(op: &'a Convolution) -> Option<Self> {
        Self::new(op).filter(|winograd| winograd.is_faster(MIN_CHANNELS))
    }

    fn is_faster(&self, min_channels: usize) -> bool {
        let tiles = self.tiles[0] * self.tiles[1];
        let outputs = self.output[0] * self.output[1];
        // If a plane has an odd number of rows or columns of outputs, the last tiles compute outputs
        // outside the plane. These must be less than a sixth of the computed outputs.
        self.channels >= min_channels
            && self.outputs >= MIN_OUTPUTS
            && self.op.batch() * tiles >= MIN_TILES
            && self.tiles[1] <= MAX_TILES
            && 5 * 4 * tiles < 6 * outputs
    }

    /// Returns the geometry of `op`, or `None` unless `op` has 3×3 or 5×5 taps, a stride and a
    /// dilation of 1, and at least one output.
    fn new(op: &'a Convolution) -> Option<Self> {
        let [rows, columns] = *op.window().axes() else { return None };
        let taps = rows.kernel;
        let is_suitable =
            |axis: SpatialAxis| [axis.kernel, axis.stride, axis.dilation] == [taps, 1, 1];
        let (batch, groups) = (op.batch(), op.groups());
        let output = [op.window().output()[0], op.window().output()[1]];
        if ![3, 5].contains(&taps)
            || !is_suitable(rows)
            || !is_suitable(columns)
            || op.output_len() == 0
        {
            return None;
        }
        let tiles = output.map(|len| len.div_ceil(2));
        let (channels, outputs) = (op.window().channels() / groups, op.outputs() / groups);
        let max_tiles = match L2_LEN / ((channels + outputs) * (taps + 1) * (taps + 1)) {
            ..MIN_L2_TILES => MAX_TILES,
            l2_tiles => l2_tiles.min(MAX_TILES),
        };
        let max_images = (max_tiles / (tiles[0] * tiles[1])).clamp(1, batch);
        let images_per_task = batch.div_ceil(batch.div_ceil(max_images));
        let rows_per_block = match images_per_task {
            1 => (max_tiles / tiles[1]).clamp(1, tiles[0]),
            images => images * tiles[0],
        };
        Some(Self {
            op,
            taps,
            channels,
            outputs,
            input: [rows.input, columns.input],
            pad: [rows.pad, columns.pad],
            output,
            tiles,
            images_per_task,
            rows_per_block,
        })
    }

    /// Returns the blocks of a task of `images` images, as ranges of rows of tiles.
    fn blocks(&self, images: usize) -> impl Iterator<Item = Range<usize>> {
        let (rows, step) = (images * self.tiles[0], self.rows_per_block);
        (0..rows).step_by(step).map(move |start| start..rows.min(start + step))
    }

    /// Returns the parts of `block` that lie in one image each.
    fn image_rows(&self, block: &Range<usize>) -> impl Iterator<Item = ImageRows> {
        let (tile_rows, block) = (self.tiles[0], block.clone());
        let columns = self.tiles[1];
        (block.start / tile_rows..block.end.div_ceil(tile_rows)).map(move |image| {
            let rows =
                (image * tile_rows).max(block.start)..((image + 1) * tile_rows).min(block.end);
            let first_tile = (rows.start - block.start) * columns;
            ImageRows {
                image,
                rows: rows.start - image * tile_rows..rows.end - image * tile_rows,
                first_tile,
            }
        })
    }

    /// Returns the number of tiles in the largest block.
    fn block_tiles(&self) -> usize {
        self.rows_per_block * self.tiles[1]
    }

    /// Returns the largest number of rows of tiles of a block that lie in one image.
    fn tile_rows_per_part(&self) -> usize {
        self.tiles[0].min(self.rows_per_block)
    }

    /// Returns the number of elements of a transformed tile or filter.
    fn tile_len(&self) -> usize {
        (self.taps + 1) * (self.taps + 1)
    }

    /// Returns the distance in elements between the rows of a channel in a block of transformed
    /// tiles. A store of [`LANES`] elements that starts at a tile of one row never reaches the next
    /// row.
    fn tile_stride(&self) -> usize {
        (self.block_tiles() + LANES - 1).next_multiple_of(LANES)
    }

    /// Returns the distance in elements between channels in a block of transformed tiles.
    fn channel_stride(&self) -> usize {
        self.tile_len() * self.tile_stride() + LANES
    }

    /// Returns the distance in elements between output planes in the transformed filters.
    fn filter_stride(&self) -> usize {
        self.tile_len() * self.channels + LANES
    }

    /// Returns the number of channels in one task of a transform.
    fn channels_per_task(&self) -> usize {
        (GRAIN / self.channel_stride()).max(1)
    }
}

/// Returns the [`LANES`] elements of `x` that start at `start`.
#[inline(always)]
fn lanes(x: &[f32], start: usize) -> &Lanes {
    x[start..start + LANES].try_into().expect("a slice of LANES elements")
}

#[cfg(test)]
mod tests;
