//! Transforms of planes into blocks of tiles.
//!
//! In a block, each channel has one row for each element of a transformed tile. A row has one
//! column per tile, so the matrix products of a block read and write rows of the block.

// The compiler inlines a closure with `inline(always)`, but not a call of a function value. The latter
// would be compiled without the vectors of the SIMD level.
#![allow(clippy::redundant_closure)]

use crate::host::{
    nn::convolution::winograd::{
        ImageRows, Winograd,
        shifted_phases::ShiftedPhases,
        transform::{Axis, LANES, Lanes, transform_image, transform_output_gradient},
    },
    simd::vectorized,
    threads::Workers,
};
use std::ops::Range;

/// Planes of images or of output gradients.
struct Planes<'a> {
    x: &'a [f32],
    /// Number of planes in one group of channels.
    channels: usize,
    /// Numbers of rows and columns of a plane.
    extents: [usize; 2],
    /// Numbers of rows and columns of zeros before the first row and column.
    pad: [usize; 2],
}

impl Winograd<'_> {
    /// Writes the transformed tiles of the images `x` in `block` to `v`.
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
        self.transform_planes(
            workers,
            group,
            block,
            &planes,
            #[inline(always)]
            |elements, tiles| transform_image::<A, TAPS, TILE>(elements, tiles),
            v,
        );
    }

    /// Writes the transformed tiles of the output gradients `dy` in `block` to `dm`.
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
        dm: &mut [f32],
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
            dm,
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
        transform: impl Fn([[&Lanes; SIDE]; SIDE], &mut [[Lanes; TILE]; TILE]) + Sync,
        tiles: &mut [f32],
    ) {
        let stride = self.channel_stride();
        let channels_per_task = self.channels_per_task();
        let plane_len = planes.extents[0] * planes.extents[1];
        workers.for_each_chunk(tiles, channels_per_task * stride, |task, tiles| {
            let channels = task * channels_per_task..;
            let (rows, columns) = (self.tile_rows_per_part(), self.tiles[1]);
            ShiftedPhases::<SIDE>::with(rows, columns, |mut phases| {
                vectorized(
                    #[inline(always)]
                    |_| {
                        for (channel, tiles) in channels.zip(tiles.chunks_exact_mut(stride)) {
                            for part in self.image_rows(block) {
                                let images = part.image * self.op.groups() + group;
                                let plane = images * planes.channels + channel;
                                let x = &planes.x[plane * plane_len..][..plane_len];
                                let first_row = 2 * part.rows.start;
                                let rows = 2 * part.rows.len() + SIDE - 2;
                                phases.write(
                                    rows,
                                    planes.pad[1],
                                    #[inline(always)]
                                    |r| plane_row(x, planes.extents, planes.pad, first_row + r),
                                );
                                self.transform_part(&part, &phases, &transform, tiles);
                            }
                        }
                    },
                );
            });
        });
    }

    /// Writes to `tiles` the results of `transform` for the tiles of `part`.
    #[inline(always)]
    fn transform_part<const SIDE: usize, const TILE: usize>(
        &self,
        part: &ImageRows,
        phases: &ShiftedPhases<SIDE>,
        transform: &impl Fn([[&Lanes; SIDE]; SIDE], &mut [[Lanes; TILE]; TILE]),
        tiles: &mut [f32],
    ) {
        let stride = self.tile_stride();
        let mut transformed = [[[0.0; LANES]; TILE]; TILE];
        for tile in (0..part.rows.len() * self.tiles[1]).step_by(LANES) {
            transform(phases.tiles(tile), &mut transformed);
            // The elements after the last tile of a part are overwritten by the next part.
            let first = part.first_tile + tile;
            for (i, elements) in transformed.as_flattened().iter().enumerate() {
                tiles[i * stride + first..][..LANES].copy_from_slice(elements);
            }
        }
    }
}

/// Returns the row `row` of the padded plane `x` without its padding, or an empty slice for a row of
/// the padding.
#[inline(always)]
fn plane_row(x: &[f32], extents: [usize; 2], pad: [usize; 2], row: usize) -> &[f32] {
    let row = row.wrapping_sub(pad[0]);
    if row < extents[0] { &x[row * extents[1]..][..extents[1]] } else { &[] }
}
