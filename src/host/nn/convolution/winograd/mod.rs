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
//! M = Σ U ⊙ V    sum over the channels: matrix products        multiply
//! y = Aᵀ·M·A     2×2 outputs                                   transform_products
//! ```
//!
//! The gradient of the filters takes the transposed steps in reverse order: `dM = A·dy·Aᵀ`, then
//! the matrix products `dU = Σ dM ⊙ V`, summed over the tiles, then `dg = Gᵀ·dU·G`. The gradient
//! of the images is a convolution with flipped filters. If the images are much larger than the
//! outputs, this gradient also takes the transposed steps: `dM`, then the matrix products
//! `dV = Σ U ⊙ dM`, summed over the output planes, then `dd = B·dV·Bᵀ`, added to the images. (Each
//! step of the forward pass is a linear map. Its transposed step applies the transpose of this map.)
//!
//! A *block* consists of consecutive rows of tiles of one image, or of whole images. The blocks depend
//! on shapes alone, so results are bit-identical for any number of threads.
//!
//! A transform processes the same tile of sixteen consecutive planes at a time. The planes are channels or
//! output planes. They can belong to several images: the last planes of one image and the first of the
//! next. A transformed block consists of one matrix for each element of a tile. The matrix has a row for each tile and image, and
//! a column for each channel or output plane.
//!
//! - `transform` computes the transforms of sixteen tiles or filters at a time.
//! - `matrices` defines the layout of the matrices and multiplies them.
//! - `tiles` transforms the tiles of images and output gradients, and `filters` the filters.
//! - `forward` computes outputs, `backward_filters` the gradient of the filters, and `backward_input`
//!   the gradient of images that are larger than the outputs.

pub(crate) mod backward_filters;
pub(crate) mod backward_input;
pub(crate) mod filters;
pub(crate) mod forward;
pub(crate) mod matrices;
pub(crate) mod tiles;
pub(crate) mod transform;

use crate::{
    host::{
        nn::convolution::winograd::matrices::{MatrixLayout, parts},
        simd::lanes::{LANES, Lanes},
    },
    op::{Convolution, SpatialAxis},
};
use std::ops::Range;

/// Largest number of tiles in a block, unless a single row of tiles has more.
const MAX_TILES: usize = 256;

/// Largest number of elements of the transformed tiles and the matrix products of a block that is to
/// stay in L2: 768 KiB of a cache of 1 MiB. The rest of the cache is for the transformed filters,
/// whose size is not checked.
const L2_LEN: usize = 3 << 16;

/// Smallest number of tiles for which a block is limited to [`L2_LEN`] elements. If a block of this
/// many tiles has more elements, a block has [`MAX_TILES`] tiles instead, because every block reads
/// all transformed filters.
const MIN_L2_TILES: usize = 32;

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
    /// Number of images in a block, and in a task.
    images_per_block: usize,
    /// Number of rows of tiles of each image in a block.
    rows_per_block: usize,
}

/// The same rows of tiles of consecutive images.
pub(crate) struct Block {
    /// Indices of the images, counted from the first image of the task, or of the batch for the gradient
    /// of the filters.
    images: Range<usize>,
    /// Indices of the rows of tiles in each image.
    rows: Range<usize>,
}

impl<'a> Winograd<'a> {
    /// Returns the geometry of `op` if the transposed steps of Winograd's algorithm compute the
    /// gradient of the images faster than a GEMM and `col2im`.
    pub(crate) fn if_input_gradient_is_faster(op: &'a Convolution) -> Option<Self> {
        Self::if_faster(op).filter(|winograd| {
            let [rows, columns] = winograd.input;
            let is_larger = rows >= winograd.output[0] && columns >= winograd.output[1];
            is_larger && winograd.blocks_have_whole_images()
        })
    }

    /// Returns whether each block contains all tiles of its images.
    fn blocks_have_whole_images(&self) -> bool {
        self.rows_per_block == self.tiles[0]
    }

    /// Returns the geometry of `op` if Winograd's algorithm computes the outputs and the gradient of
    /// the filters faster than implicit GEMM.
    pub(crate) fn if_faster(op: &'a Convolution) -> Option<Self> {
        Self::new(op).filter(Self::is_faster)
    }

    fn is_faster(&self) -> bool {
        let tiles = self.tiles[0] * self.tiles[1];
        let outputs = self.output[0] * self.output[1];
        // If a plane has an odd number of rows or columns of outputs, the last tiles compute outputs
        // outside the plane. These must be less than a fifth of the computed outputs.
        self.op.batch() * tiles >= MIN_TILES
            && self.tiles[1] <= MAX_TILES
            && 4 * 4 * tiles < 5 * outputs
    }

    /// Returns the geometry of `op`, or `None` unless `op` has 3×3 or 5×5 taps, a stride and a
    /// dilation of 1, at least [`LANES`] channels and output planes per group, and at least one output.
    fn new(op: &'a Convolution) -> Option<Self> {
        let [rows, columns] = *op.window().axes() else { return None };
        let taps = rows.kernel;
        let is_suitable =
            |axis: SpatialAxis| [axis.kernel, axis.stride, axis.dilation] == [taps, 1, 1];
        let (batch, groups) = (op.batch(), op.groups());
        let (channels, outputs) = (op.window().channels() / groups, op.outputs() / groups);
        let output = [op.window().output()[0], op.window().output()[1]];
        if ![3, 5].contains(&taps)
            || !is_suitable(rows)
            || !is_suitable(columns)
            || channels.min(outputs) < LANES
            || op.output_len() == 0
        {
            return None;
        }
        let tiles = output.map(|len| len.div_ceil(2));
        let row_len = channels + outputs;
        let max_tiles = match L2_LEN / (row_len * (taps + 1) * (taps + 1)) {
            ..MIN_L2_TILES => MAX_TILES,
            l2_tiles => l2_tiles.min(MAX_TILES),
        };
        let max_images = (max_tiles / (tiles[0] * tiles[1])).clamp(1, batch);
        let images_per_block = batch.div_ceil(batch.div_ceil(max_images));
        let rows_per_block = (max_tiles / tiles[1]).clamp(1, tiles[0]);
        Some(Self {
            op,
            taps,
            channels,
            outputs,
            input: [rows.input, columns.input],
            pad: [rows.pad, columns.pad],
            output,
            tiles,
            images_per_block,
            rows_per_block,
        })
    }

    /// Returns the blocks of `images` images.
    fn blocks(&self, images: usize) -> impl Iterator<Item = Block> {
        parts(images, self.images_per_block).flat_map(move |images| {
            parts(self.tiles[0], self.rows_per_block)
                .map(move |rows| Block { images: images.clone(), rows })
        })
    }

    /// Returns the largest block.
    fn largest_block(&self) -> Block {
        Block { images: 0..self.images_per_block, rows: 0..self.rows_per_block }
    }

    /// Returns the contiguous planes of `group` in `block`: the indices of images in the block, and the
    /// range of the elements of their planes. A group has `group_len` elements in each image. The planes
    /// of several images are contiguous only if there are no other groups.
    fn runs(
        &self,
        block: &Block,
        group: usize,
        group_len: usize,
    ) -> impl Iterator<Item = (Range<usize>, Range<usize>)> {
        let (groups, first_image) = (self.op.groups(), block.images.start);
        let images_per_run = if groups == 1 { block.images.len() } else { 1 };
        parts(block.images.len(), images_per_run).map(move |images| {
            let start = ((first_image + images.start) * groups + group) * group_len;
            let len = images.len() * group_len;
            (images, start..start + len)
        })
    }

    /// Returns the number of elements of a transformed tile or filter.
    fn tile_len(&self) -> usize {
        (self.taps + 1) * (self.taps + 1)
    }

    /// Returns the number of elements of all matrices with the layout `layout`.
    fn matrices_len(&self, layout: &MatrixLayout) -> usize {
        self.tile_len() * layout.distance()
    }

    /// Returns the layout of transformed tiles of `block`, with a single panel. `planes` is the number of
    /// channels or output planes of a group.
    fn block_layout(&self, block: &Block, planes: usize) -> MatrixLayout {
        MatrixLayout::one_panel(block.rows.len() * self.tiles[1], block.images.len(), planes)
    }
}

/// Returns [`LANES`] elements of each matrix, from the index `at` of the matrix on. The matrices start
/// `distance` elements apart.
#[inline(always)]
fn tile_at<const TILE: usize>(
    matrices: &[f32],
    distance: usize,
    at: usize,
) -> [[&Lanes; TILE]; TILE] {
    let mut tile = [[&[0.0; LANES]; TILE]; TILE];
    for (i, elements) in tile.as_flattened_mut().iter_mut().enumerate() {
        let start = i * distance + at;
        *elements = matrices[start..start + LANES].try_into().expect("a slice of LANES elements");
    }
    tile
}

/// Returns the sums of the elements of `a` and `b`.
#[inline(always)]
fn sum(a: &Lanes, b: &Lanes) -> Lanes {
    let mut sum = *a;
    sum.iter_mut().zip(b).for_each(|(sum, b)| *sum += b);
    sum
}

#[cfg(test)]
mod tests;
