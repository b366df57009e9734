//! Matrices of transformed tiles or filters, and their matrix products.

use crate::{
    error::Result,
    host::{
        blas::gemm::gemm,
        simd::lanes::{LANES, Lanes},
        threads::Workers,
    },
    op::Gemm,
};
use std::ops::Range;

/// Largest number of elements of a panel of a right operand that has several panels and more than
/// [`MIN_PANEL_COLUMNS`] columns per panel: 32 KiB. GEMM reads such a panel in place, and most of the
/// panel stays in L1.
const MAX_PANEL_LEN: usize = 1 << 13;

/// Smallest number of columns of a panel of a right operand, except of the last panel: the widest tile of
/// GEMM's micro-kernel has as many columns.
const MIN_PANEL_COLUMNS: usize = 32;

/// Smallest number of rows for which a right operand is a single panel. A panel of 32 columns and 512
/// rows is too large for GEMM to read in place. GEMM would pack each such panel, and would also pack
/// the left operand again for each panel.
const ONE_PANEL_MIN_ROWS: usize = 1 << 9;

/// Layout of the matrices of a block or of the filters: one matrix for each element of a tile.
///
/// A matrix has a row for each tile and image, and a column for each plane of an image. The images of a
/// tile are adjacent rows. The matrix is divided by columns into *panels*. The rows of a panel are
/// contiguous. In a matrix with a single panel, all images' elements of one tile are therefore
/// contiguous: the planes of the first image, then those of the second, and so on.
///
/// In the matrices of filters, a row is a channel or output plane instead of a tile, and the number of
/// images is 1.
///
/// The left operand and the result of a matrix product are single panels. The panels of a right operand
/// are so small that GEMM reads them in place, unless the operand has 512 or more rows.
#[derive(Clone, Copy)]
pub(crate) struct MatrixLayout {
    /// Number of tiles of each image, or of rows of a matrix of filters.
    tiles: usize,
    images: usize,
    /// Number of planes of one group of an image, at least [`LANES`].
    planes: usize,
    /// Number of columns. The columns after the first `planes` are unused.
    columns: usize,
    /// Number of columns of each panel, except that the last panel can have fewer.
    panel_columns: usize,
}

impl MatrixLayout {
    /// Returns the layout of matrices with a single panel.
    pub(crate) fn one_panel(tiles: usize, images: usize, planes: usize) -> Self {
        Self { tiles, images, planes, columns: planes, panel_columns: planes }
    }

    /// Divides matrices with a single panel into the panels of a right operand of matrix products. If the
    /// operand has several panels, the number of columns is a multiple of [`LANES`].
    pub(crate) fn right_operand(self) -> Self {
        let multiples = MAX_PANEL_LEN / self.rows() / MIN_PANEL_COLUMNS;
        let panel_columns = multiples.max(1) * MIN_PANEL_COLUMNS;
        if self.rows() >= ONE_PANEL_MIN_ROWS || self.planes <= panel_columns {
            return self;
        }
        Self { columns: self.planes.next_multiple_of(LANES), panel_columns, ..self }
    }

    /// Returns the number of rows of a matrix.
    pub(crate) fn rows(&self) -> usize {
        self.tiles * self.images
    }

    /// Returns the number of elements from one tile to the next in matrices with a single panel.
    pub(crate) fn tile_stride(&self) -> usize {
        self.images * self.columns
    }

    /// Returns the number of elements from the start of one matrix to the start of the next: an odd
    /// number of [`LANES`]. The elements at one position of all matrices are therefore in different
    /// sets of L1. A reader can load [`LANES`] elements from any multiple of [`LANES`] within the last
    /// tile. The elements after the tile are unspecified.
    pub(crate) fn distance(&self) -> usize {
        let stride = self.tile_stride();
        let end = (self.tiles - 1) * stride + stride.next_multiple_of(LANES);
        (end.div_ceil(LANES) | 1) * LANES
    }

    /// Returns the ranges of columns of the panels.
    fn panels(&self) -> impl Iterator<Item = Range<usize>> {
        parts(self.columns, self.panel_columns)
    }

    /// Returns chunks of [`LANES`] consecutive planes that cover all planes of `images`. In a matrix with a
    /// single panel, the last chunk overlaps the chunk before if the number of planes is not a multiple of
    /// [`LANES`].
    pub(crate) fn plane_chunks(&self, images: Range<usize>) -> impl Iterator<Item = PlaneChunk> {
        let Self { planes, columns, panel_columns, .. } = *self;
        let (total_images, first_image) = (self.images, images.start);
        // A single panel contains the planes of all images as if they were those of one image.
        let images_per_part = if panel_columns == columns { images.len() } else { 1 };
        parts(columns, panel_columns).enumerate().flat_map(move |(panel, range)| {
            parts(images.len(), images_per_part).flat_map(move |part| {
                let (width, first_column) = (range.len(), range.start);
                let len = part.len() * width;
                (0..len).step_by(LANES).map(move |start| {
                    let start = start.min(len - LANES);
                    let first = part.start * planes + first_column + start;
                    PlaneChunk {
                        planes: first..(part.end * planes).min(first + LANES),
                        panel,
                        start: (first_image + part.start) * width + start,
                        tile_stride: total_images * width,
                    }
                })
            })
        })
    }

    /// Divides `matrices` into parts of `tiles_per_part` tiles.
    pub(crate) fn split_tiles<'m>(
        &self,
        matrices: &'m mut [f32],
        tiles_per_part: usize,
    ) -> Vec<TilesMut<'m>> {
        let panels = self.panels().count();
        let mut split: Vec<_> = (0..self.tiles.div_ceil(tiles_per_part))
            .map(|_| TilesMut { panels, slices: Vec::new() })
            .collect();
        for mut matrix in matrices.chunks_mut(self.distance()) {
            for range in self.panels() {
                let (panel, rest) = matrix.split_at_mut(self.rows() * range.len());
                matrix = rest;
                let part_len = tiles_per_part * self.images * range.len();
                for (part, tiles) in split.iter_mut().zip(panel.chunks_mut(part_len)) {
                    part.slices.push(tiles);
                }
            }
        }
        split
    }
}

/// Consecutive planes, of one or more images, whose elements of one tile are contiguous in each matrix:
/// [`LANES`] elements. At the end of a matrix with several panels, a chunk can have fewer planes, followed
/// by unused columns.
pub(crate) struct PlaneChunk {
    /// Indices of the planes, counted from the first plane of the images.
    pub(crate) planes: Range<usize>,
    /// Index of the panel.
    panel: usize,
    /// Index in the panel of the first plane's element of the first tile.
    start: usize,
    /// Number of elements from one tile to the next.
    tile_stride: usize,
}

/// Consecutive tiles of all matrices.
pub(crate) struct TilesMut<'m> {
    /// Number of panels of a matrix.
    panels: usize,
    /// The tiles in each panel of the first matrix, then of the second matrix, and so on.
    slices: Vec<&'m mut [f32]>,
}

impl TilesMut<'_> {
    /// Writes the elements of the tile `tile` of the planes `chunk` to each matrix. The first tile of
    /// the `TilesMut` has the index 0.
    #[inline(always)]
    pub(crate) fn write(&mut self, chunk: &PlaneChunk, tile: usize, elements: &[Lanes]) {
        let at = chunk.start + tile * chunk.tile_stride;
        let slices = self.slices.iter_mut().skip(chunk.panel).step_by(self.panels);
        for (slice, elements) in slices.zip(elements) {
            slice[at..at + LANES].copy_from_slice(elements);
        }
    }
}

/// `c ← β·c + op(a)·b` for each matrix of `c` and the matrices of `a` and `b` with the same index. `op`
/// gives β, whether `a` is transposed, and all extents.
pub(crate) fn multiply(
    workers: &Workers,
    op: &Gemm<f32>,
    (a, a_layout): (&[f32], &MatrixLayout),
    (b, b_layout): (&[f32], &MatrixLayout),
    (c, c_layout): (&mut [f32], &MatrixLayout),
) -> Result<()> {
    workers.try_for_each_chunk(c, c_layout.distance(), |i, c| {
        let (a, b) = (&a[i * a_layout.distance()..], &b[i * b_layout.distance()..]);
        b_layout.panels().try_for_each(|panel| {
            let op = Gemm { n: panel.len().min(op.n - panel.start), ..*op };
            let op = op.leading_dims(a_layout.columns, panel.len(), c_layout.columns);
            let b = &b[panel.start * b_layout.rows()..];
            gemm(&Workers::sequential(), &op, a, b, &mut c[panel.start..])
        })
    })
}

/// Returns the parts of `0..len`. All have `part_len` elements, except that the last can be shorter.
pub(crate) fn parts(len: usize, part_len: usize) -> impl Iterator<Item = Range<usize>> {
    (0..len).step_by(part_len).map(move |start| start..len.min(start + part_len))
}
