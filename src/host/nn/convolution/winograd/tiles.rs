//! Transforms of planes into blocks of tiles.
//!
//! In a block, each channel has one row for each element of a transformed tile. A row has one
//! column per tile, so the matrix products of a block read and write rows of the block.
//!
//! Each row of a plane is first split into two *phases*: the elements in even columns, and the
//! elements in odd columns. In a phase, the elements of neighbouring tiles are contiguous.

// The compiler inlines a closure with `inline(always)`, but not a call of a function value. The latter
// would be compiled without the vectors of the SIMD level.
#![allow(clippy::redundant_closure)]

use crate::host::{
    cache::scratch::with_scratch,
    nn::convolution::winograd::{
        ImageRows, Winograd, lanes,
        transform::{
            FiveTaps, LANES, Lanes, ThreeTaps, transform_image, transform_output_gradient,
        },
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
    pub(crate) fn transform_images(
        &self,
        workers: &Workers,
        group: usize,
        block: &Range<usize>,
        x: &[f32],
        v: &mut [f32],
    ) {
        let (channels, extents, pad) = (self.channels, self.input, self.pad);
        let planes = Planes { x, channels, extents, pad };
        match self.taps {
            3 => self.transform_planes(
                workers,
                group,
                block,
                &planes,
                #[inline(always)]
                |elements, tiles| transform_image::<ThreeTaps, 3, 4>(elements, tiles),
                v,
            ),
            _ => self.transform_planes(
                workers,
                group,
                block,
                &planes,
                #[inline(always)]
                |elements, tiles| transform_image::<FiveTaps, 5, 6>(elements, tiles),
                v,
            ),
        }
    }

    /// Writes the transformed tiles of the output gradients `dy` in `block` to `dm`.
    pub(crate) fn transform_output_gradients(
        &self,
        workers: &Workers,
        group: usize,
        block: &Range<usize>,
        dy: &[f32],
        dm: &mut [f32],
    ) {
        let (channels, extents) = (self.outputs, self.output);
        let planes = Planes { x: dy, channels, extents, pad: [0, 0] };
        match self.taps {
            3 => self.transform_planes(
                workers,
                group,
                block,
                &planes,
                #[inline(always)]
                |elements, tiles| transform_output_gradient::<ThreeTaps, 3, 4>(elements, tiles),
                dm,
            ),
            _ => self.transform_planes(
                workers,
                group,
                block,
                &planes,
                #[inline(always)]
                |elements, tiles| transform_output_gradient::<FiveTaps, 5, 6>(elements, tiles),
                dm,
            ),
        }
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
        let (stride, width) = (self.channel_stride(), self.phase_width());
        let channels_per_task = self.channels_per_task();
        let plane_len = planes.extents[0] * planes.extents[1];
        let rows = 2 * self.tiles[0].min(self.rows_per_block) + SIDE - 2;
        workers.for_each_chunk(tiles, channels_per_task * stride, |task, tiles| {
            let channels = task * channels_per_task..;
            with_scratch((rows + 1) * 2 * width + LANES, |scratch: &mut [f32]| {
                let (padded_row, phases) = scratch.split_at_mut(2 * width);
                vectorized(
                    #[inline(always)]
                    |_| {
                        padded_row.fill(0.0);
                        for (channel, tiles) in channels.zip(tiles.chunks_exact_mut(stride)) {
                            for part in self.image_rows(block) {
                                let images = part.image * self.op.groups() + group;
                                let plane = images * planes.channels + channel;
                                let x = &planes.x[plane * plane_len..][..plane_len];
                                let rows = 2 * part.rows.start..2 * part.rows.end + SIDE - 2;
                                planes.load_phases(x, rows, padded_row, phases);
                                self.transform_rows(&part, phases, &transform, tiles);
                            }
                        }
                    },
                );
            });
        });
    }

    /// Writes to `tiles` the results of `transform` for the tiles of `part`.
    #[inline(always)]
    fn transform_rows<const SIDE: usize, const TILE: usize>(
        &self,
        part: &ImageRows,
        phases: &[f32],
        transform: &impl Fn([[&Lanes; SIDE]; SIDE], &mut [[Lanes; TILE]; TILE]),
        tiles: &mut [f32],
    ) {
        let (width, columns, stride) = (self.phase_width(), self.tiles[1], self.tile_stride());
        let mut transformed = [[[0.0; LANES]; TILE]; TILE];
        for row in 0..part.rows.len() {
            for column in (0..columns).step_by(LANES) {
                let mut elements = [[lanes(phases, 0); SIDE]; SIDE];
                for (r, elements) in elements.iter_mut().enumerate() {
                    for (c, elements) in elements.iter_mut().enumerate() {
                        let start = (2 * (2 * row + r) + c % 2) * width + column + c / 2;
                        *elements = lanes(phases, start);
                    }
                }
                let first = part.first_tile + row * columns + column;
                // The elements after the last tile of a row are overwritten by the next row.
                transform(elements, &mut transformed);
                for (i, elements) in transformed.as_flattened().iter().enumerate() {
                    tiles[i * stride + first..][..LANES].copy_from_slice(elements);
                }
            }
        }
    }
}

impl Planes<'_> {
    /// Writes the phases of the rows `rows` of the padded plane `x` to `phases`. `padded_row` is a
    /// buffer for one row with as many elements as both phases of a row. All elements of
    /// `padded_row` outside the plane's columns must be zero.
    #[inline(always)]
    fn load_phases(
        &self,
        x: &[f32],
        rows: Range<usize>,
        padded_row: &mut [f32],
        phases: &mut [f32],
    ) {
        let columns = self.extents[1];
        for (row, phases) in rows.zip(phases.chunks_exact_mut(padded_row.len())) {
            let row = row.wrapping_sub(self.pad[0]);
            if row >= self.extents[0] {
                phases.fill(0.0);
                continue;
            }
            padded_row[self.pad[1]..][..columns].copy_from_slice(&x[row * columns..][..columns]);
            let (even, odd) = phases.split_at_mut(padded_row.len() / 2);
            let phases = even.chunks_exact_mut(LANES).zip(odd.chunks_exact_mut(LANES));
            for (pairs, (even, odd)) in padded_row.chunks_exact(2 * LANES).zip(phases) {
                for lane in 0..LANES {
                    even[lane] = pairs[2 * lane];
                    odd[lane] = pairs[2 * lane + 1];
                }
            }
        }
    }
}
