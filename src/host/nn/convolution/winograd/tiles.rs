//! Transforms of planes into blocks of tiles.

// The compiler inlines a closure with `inline(always)`, but not a call of a function value. The latter
// would be compiled without the vectors of the SIMD level.
#![allow(clippy::redundant_closure)]

use crate::host::{
    cache::scratch::with_scratch,
    nn::convolution::winograd::{
        TileRows, Winograd,
        matrices::{ColumnsMut, MatrixLayout},
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
    /// Number of planes of one image and group.
    channels: usize,
    /// Numbers of rows and columns of a plane.
    extents: [usize; 2],
    /// Numbers of rows and columns of zeros before the first row and column.
    pad: [usize; 2],
}

impl Winograd<'_> {
    /// Writes the transformed tiles of the images `x` in `block` to `v`, in the layout
    /// [`channel_layout`](Self::channel_layout).
    pub(crate) fn transform_images<A: Axis<TAPS, TILE>, const TAPS: usize, const TILE: usize>(
        &self,
        workers: &Workers,
        group: usize,
        block: &Range<usize>,
        x: &[f32],
        v: &mut [f32],
    ) {
        let (channels, extents, pad) = (self.channels, self.input, self.pad);
        let planes = Planes { x, channels, extents, pad };
        let layout = self.channel_layout();
        self.transform_planes(
            workers,
            group,
            block,
            &planes,
            #[inline(always)]
            |elements, tiles| transform_image::<A, TAPS, TILE>(elements, tiles),
            (v, &layout),
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
        block: &Range<usize>,
        dy: &[f32],
        (dm, layout): (&mut [f32], &MatrixLayout),
    ) {
        let (channels, extents) = (self.outputs, self.output);
        let planes = Planes { x: dy, channels, extents, pad: [0, 0] };
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

    /// Writes to `tiles` the results of `transform` for the tiles of `block`. Each tile reads
    /// `SIDE` rows and columns of a plane.
    fn transform_planes<const SIDE: usize, const TILE: usize>(
        &self,
        workers: &Workers,
        group: usize,
        block: &Range<usize>,
        planes: &Planes,
        transform: impl Fn([[&Lanes; SIDE]; SIDE], &mut Tiles<TILE, TILE>) + Sync,
        (tiles, layout): (&mut [f32], &MatrixLayout),
    ) {
        let rows_per_task = block.len().div_ceil(workers.count());
        let mut parts = layout.split_rows(tiles, rows_per_task * self.tiles[1]);
        // The last block of a task can have fewer rows than the layout.
        parts.truncate(block.len().div_ceil(rows_per_task));
        let max_rows = 2 * rows_per_task.min(self.tiles[0]) + SIDE - 2;
        let lanes_len = max_rows.min(planes.extents[0]) * planes.extents[1] * LANES;
        workers.for_each_chunk(&mut parts, 1, |task, parts| {
            let start = block.start + task * rows_per_task;
            let rows = start..block.end.min(start + rows_per_task);
            let tiles = &mut parts[0];
            with_scratch(lanes_len, |lanes: &mut [f32]| {
                let lanes = lanes.as_chunks_mut().0;
                for part in self.image_rows(&rows) {
                    for first in (0..planes.channels).step_by(LANES) {
                        let image_group = part.image * self.op.groups() + group;
                        let window = planes.to_lanes::<SIDE>(image_group, first, &part, lanes);
                        vectorized(
                            #[inline(always)]
                            |_| {
                                self.transform_part(
                                    &part,
                                    &window,
                                    &transform,
                                    tiles.columns(first),
                                )
                            },
                        );
                    }
                }
            });
        });
    }

    /// Writes the results of `transform` for the tiles of `part` to `columns`.
    #[inline(always)]
    fn transform_part<const SIDE: usize, const TILE: usize>(
        &self,
        part: &TileRows,
        window: &PlaneRows,
        transform: &impl Fn([[&Lanes; SIDE]; SIDE], &mut Tiles<TILE, TILE>),
        mut columns: ColumnsMut,
    ) {
        let mut transformed = Tiles::ZERO;
        let mut tile = part.first_tile;
        for row in part.rows.clone() {
            for column in 0..self.tiles[1] {
                transform(window.tile([2 * row, 2 * column]), &mut transformed);
                columns.write(tile, transformed.0.as_flattened());
                tile += 1;
            }
        }
    }
}

impl Planes<'_> {
    /// Copies the rows that the tiles of `part` read to `lanes`, from [`LANES`] planes from `first` on.
    /// `image_group` is the index of the image's group among the groups of all images.
    fn to_lanes<'l, const SIDE: usize>(
        &self,
        image_group: usize,
        first: usize,
        part: &TileRows,
        lanes: &'l mut [Lanes],
    ) -> PlaneRows<'l> {
        let [rows, columns] = self.extents;
        let plane_len = rows * columns;
        let count = LANES.min(self.channels - first);
        let planes =
            &self.x[(image_group * self.channels + first) * plane_len..][..count * plane_len];
        let end = (2 * part.rows.end + SIDE - 2).saturating_sub(self.pad[0]).min(rows);
        let first_row = (2 * part.rows.start).saturating_sub(self.pad[0]).min(end);
        planes_to_lanes(planes, plane_len, first_row * columns..end * columns, lanes);
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
