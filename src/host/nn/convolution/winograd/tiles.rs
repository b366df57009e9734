//! Transforms of planes into blocks of tiles.

// The compiler inlines a closure with `inline(always)`, but not a call of a function value. The latter
// would be compiled without the vectors of the SIMD level.
#![allow(clippy::redundant_closure)]

use crate::host::{
    cache::scratch::with_scratch,
    nn::convolution::winograd::{
        Block, Winograd,
        matrices::{MatrixLayout, PlaneChunk, TilesMut},
        transform::{Axis, Tiles, transform_image, transform_output_gradient},
    },
    simd::{
        lanes::{LANES, Lanes, planes_to_lanes},
        vectorized,
    },
    threads::Workers,
};
use std::ops::Range;

/// Planes of images or of output gradients.
struct Planes<'a> {
    /// Elements of the planes of all images and groups.
    x: &'a [f32],
    /// Number of planes of one group of an image.
    count: usize,
    /// Numbers of rows and columns of a plane.
    extents: [usize; 2],
    /// Numbers of rows and columns of zeros before the first row and column.
    pad: [usize; 2],
}

impl Winograd<'_> {
    /// Writes the transformed tiles of the images `x` in `block` to `v`, in the layout `layout`.
    pub(crate) fn transform_images<A: Axis<TAPS, TILE>, const TAPS: usize, const TILE: usize>(
        &self,
        workers: &Workers,
        group: usize,
        block: &Block,
        x: &[f32],
        (v, layout): (&mut [f32], &MatrixLayout),
    ) {
        let planes = Planes { x, count: self.channels, extents: self.input, pad: self.pad };
        self.transform_planes(
            workers,
            group,
            block,
            &planes,
            #[inline(always)]
            |elements, tiles| transform_image::<A, TAPS, TILE>(elements, tiles),
            (v, layout),
        );
    }

    /// Writes the transformed tiles of the output gradients `dy` in `block` to `dm`, in the layout
    /// `layout`.
    pub(crate) fn transform_output_gradients<
        A: Axis<TAPS, TILE>,
        const TAPS: usize,
        const TILE: usize,
    >(
        &self,
        workers: &Workers,
        group: usize,
        block: &Block,
        dy: &[f32],
        (dm, layout): (&mut [f32], &MatrixLayout),
    ) {
        let planes = Planes { x: dy, count: self.outputs, extents: self.output, pad: [0, 0] };
        self.transform_planes(
            workers,
            group,
            block,
            &planes,
            #[inline(always)]
            |elements, tiles| transform_output_gradient::<A, TAPS, TILE>(elements, tiles),
            (dm, layout),
        );
    }

    /// Writes to `tiles` the results of `transform` for the tiles of `block`. Each tile reads `SIDE` rows
    /// and columns of a plane.
    fn transform_planes<const SIDE: usize, const TILE: usize>(
        &self,
        workers: &Workers,
        group: usize,
        block: &Block,
        planes: &Planes,
        transform: impl Fn([[&Lanes; SIDE]; SIDE], &mut Tiles<TILE, TILE>) + Sync,
        (tiles, layout): (&mut [f32], &MatrixLayout),
    ) {
        let rows_per_task = block.rows.len().div_ceil(workers.count());
        let group_len = planes.count * planes.extents[0] * planes.extents[1];
        let mut parts = layout.split_tiles(tiles, rows_per_task * self.tiles[1]);
        let max_rows = (2 * rows_per_task + SIDE - 2).min(planes.extents[0]);
        let lanes_len = max_rows * planes.extents[1] * LANES;
        workers.for_each_chunk(&mut parts, 1, |task, parts| {
            let start = block.rows.start + task * rows_per_task;
            let rows = start..block.rows.end.min(start + rows_per_task);
            with_scratch(lanes_len, |lanes: &mut [f32]| {
                let lanes = lanes.as_chunks_mut().0;
                for (images, range) in self.runs(block, group, group_len) {
                    let run = Planes { x: &planes.x[range], ..*planes };
                    for chunk in layout.plane_chunks(images) {
                        let plane_rows = run.to_lanes::<SIDE>(&chunk.planes, &rows, lanes);
                        vectorized(
                            #[inline(always)]
                            |_| {
                                let tiles = &mut parts[0];
                                self.transform_rows(&rows, &plane_rows, &transform, &chunk, tiles)
                            },
                        );
                    }
                }
            });
        });
    }

    /// Writes the results of `transform` for the tiles in `rows` of the planes `chunk` to `tiles`.
    #[inline(always)]
    fn transform_rows<const SIDE: usize, const TILE: usize>(
        &self,
        rows: &Range<usize>,
        plane_rows: &PlaneRows,
        transform: &impl Fn([[&Lanes; SIDE]; SIDE], &mut Tiles<TILE, TILE>),
        chunk: &PlaneChunk,
        tiles: &mut TilesMut,
    ) {
        let mut transformed = Tiles::ZERO;
        for (i, row) in rows.clone().enumerate() {
            for column in 0..self.tiles[1] {
                transform(plane_rows.tile([2 * row, 2 * column]), &mut transformed);
                tiles.write(chunk, i * self.tiles[1] + column, transformed.0.as_flattened());
            }
        }
    }
}

impl Planes<'_> {
    /// Copies the rows that tiles in `rows` read to `lanes`, from at most [`LANES`] planes.
    fn to_lanes<'l, const SIDE: usize>(
        &self,
        planes: &Range<usize>,
        rows: &Range<usize>,
        lanes: &'l mut [Lanes],
    ) -> PlaneRows<'l> {
        let [plane_rows, columns] = self.extents;
        let len = plane_rows * columns;
        let end = (2 * rows.end + SIDE - 2).saturating_sub(self.pad[0]).min(plane_rows);
        let first_row = (2 * rows.start).saturating_sub(self.pad[0]).min(end);
        let planes = &self.x[planes.start * len..planes.end * len];
        planes_to_lanes(planes, len, first_row * columns..end * columns, lanes);
        PlaneRows { lanes, first_row, end, columns, pad: self.pad }
    }
}

/// Consecutive rows of [`LANES`] planes.
struct PlaneRows<'a> {
    lanes: &'a [Lanes],
    first_row: usize,
    /// Index of the row after the last.
    end: usize,
    columns: usize,
    pad: [usize; 2],
}

impl PlaneRows<'_> {
    /// Returns the elements of the tiles whose first element is in the row `start[0]` and the column
    /// `start[1]` of the padded planes.
    #[inline(always)]
    fn tile<const SIDE: usize>(&self, start: [usize; 2]) -> [[&Lanes; SIDE]; SIDE] {
        let mut tile = [[&[0.0; LANES]; SIDE]; SIDE];
        for (r, tile) in tile.iter_mut().enumerate() {
            let row = (start[0] + r).wrapping_sub(self.pad[0]);
            if row < self.end {
                let row = &self.lanes[(row - self.first_row) * self.columns..][..self.columns];
                for (c, element) in tile.iter_mut().enumerate() {
                    if let Some(lanes) = row.get((start[1] + c).wrapping_sub(self.pad[1])) {
                        *element = lanes;
                    }
                }
            }
        }
        tile
    }
}
