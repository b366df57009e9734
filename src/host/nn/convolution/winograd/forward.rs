//! Forward convolution by Winograd's algorithm.

use crate::{
    cast::{cast_slice, cast_slice_mut},
    element::Element,
    error::Result,
    host::{
        cache::scratch::with_scratch,
        nn::convolution::{
            schedule::{activate, try_for_each_task},
            winograd::{
                TileRows, Winograd,
                matrices::{MatrixLayout, multiply},
                sum, tile_at,
                transform::{Axis, FiveTaps, ThreeTaps, Tiles, transform_products},
            },
        },
        simd::{
            accumulator::{accumulator_len, overwrite_widened, widened},
            lanes::{LANES, Lanes, lanes_to_planes},
            vectorized,
        },
        threads::Workers,
    },
    op::{Gemm, Unary},
};
use std::ops::Range;

/// Planes of outputs or of image gradients: those of one group of each image.
pub(crate) struct OutputPlanes {
    pub(crate) group: usize,
    /// Number of planes of the group.
    pub(crate) count: usize,
    /// Number of elements of a plane.
    pub(crate) len: usize,
}

impl Winograd<'_> {
    /// `y ← activation(filters ∗ x + bias)` for all images. The accumulator type of `T` must be
    /// `f32`.
    pub(crate) fn convolve<T: Element>(
        &self,
        workers: &Workers,
        x: &[T],
        filters: &[T::Acc],
        bias: Option<&[T::Acc]>,
        activation: Option<Unary<T::Acc>>,
        y: &mut [T],
    ) -> Result<()> {
        match self.taps {
            3 => self.convolve_with::<T, ThreeTaps, 3, 4>(workers, x, filters, bias, activation, y),
            _ => self.convolve_with::<T, FiveTaps, 5, 6>(workers, x, filters, bias, activation, y),
        }
    }

    /// Like [`convolve`](Self::convolve), for filters with the transforms `A`.
    fn convolve_with<T: Element, A: Axis<TAPS, TILE>, const TAPS: usize, const TILE: usize>(
        &self,
        workers: &Workers,
        x: &[T],
        filters: &[T::Acc],
        bias: Option<&[T::Acc]>,
        activation: Option<Unary<T::Acc>>,
        y: &mut [T],
    ) -> Result<()> {
        let (filters, bias) = (cast_slice(filters), bias.map(cast_slice));
        let matrix = self.channels_by_outputs();
        self.with_transformed_filters::<A, TAPS, TILE>(workers, matrix, filters, |u| {
            self.try_for_each_image_task(workers, x, y, activation, |workers, images, x, y| {
                self.convolve_images::<A, TAPS, TILE>(workers, images, x, u, bias, y)
            })
        })
    }

    /// Calls `body(gemm_workers, images, x, y)` for each task, where `x` and `y` are the inputs and
    /// outputs of the task's `images` images. For the gradient of the images, `x` and `y` are the
    /// gradients of the outputs and of the images. `body` writes all elements of `y`, to which the
    /// function then applies `activation`.
    pub(crate) fn try_for_each_image_task<T: Element>(
        &self,
        workers: &Workers,
        x: &[T],
        y: &mut [T],
        activation: Option<Unary<T::Acc>>,
        body: impl Fn(&Workers, usize, &[f32], &mut [f32]) -> Result<()> + Sync + Send,
    ) -> Result<()> {
        let (image_len, output_len) = (x.len() / self.op.batch(), y.len() / self.op.batch());
        let max_tiles = self.images_per_task * self.tiles[0] * self.tiles[1];
        let tiles = max_tiles.min(self.block_tiles());
        let gemm = Gemm::<f32>::new(self.outputs, tiles, self.channels);
        // The threads of a task share the matrix products of a block.
        let gemm_flops = self.tile_len() as u64 * gemm.flops();
        let task_len = self.images_per_task * output_len;
        try_for_each_task(workers, self.op, gemm_flops, y, task_len, |workers, task, y| {
            let images = y.len() / output_len;
            let x = &x[task * self.images_per_task * image_len..][..images * image_len];
            with_scratch(accumulator_len::<T>(x.len()), |x_scratch| {
                with_scratch(accumulator_len::<T>(y.len()), |y_scratch| {
                    let x = cast_slice(widened(x, x_scratch));
                    let mut result = Ok(());
                    overwrite_widened(y, y_scratch, |y| {
                        result = body(workers, images, x, cast_slice_mut(y));
                    });
                    result
                })
            })?;
            activate(workers, activation, y)
        })
    }

    /// `y ← filters ∗ x + bias` for the images of one task, from the transformed filters `u`.
    fn convolve_images<A: Axis<TAPS, TILE>, const TAPS: usize, const TILE: usize>(
        &self,
        workers: &Workers,
        images: usize,
        x: &[f32],
        u: &[f32],
        bias: Option<&[f32]>,
        y: &mut [f32],
    ) -> Result<()> {
        let u_layout = self.channels_by_outputs().layout();
        let (v_layout, layout) = (self.channel_layout(), u_layout.products(self.block_tiles()));
        with_scratch(self.tile_len() * v_layout.distance(), |v: &mut [f32]| {
            with_scratch(self.tile_len() * layout.distance(), |products: &mut [f32]| {
                for block in self.blocks(images) {
                    let op = Gemm::new(block.len() * self.tiles[1], self.outputs, self.channels);
                    let groups = u.chunks_exact(self.tile_len() * u_layout.distance());
                    for (group, u) in groups.enumerate() {
                        self.transform_images::<A, TAPS, TILE>(workers, group, &block, x, v);
                        let (v, u) = ((&*v, &v_layout), (u, &u_layout));
                        multiply(workers, &op, v, u, (&mut *products, &layout))?;
                        let bias = bias.map(|bias| &bias[group * self.outputs..][..self.outputs]);
                        self.write_outputs::<A, TAPS, TILE>(
                            workers,
                            group,
                            &block,
                            (products, &layout),
                            bias,
                            y,
                        );
                    }
                }
                Ok(())
            })
        })
    }

    /// Writes the outputs of `block` to `y`: the transformed `products`, plus the bias.
    fn write_outputs<A: Axis<TAPS, TILE>, const TAPS: usize, const TILE: usize>(
        &self,
        workers: &Workers,
        group: usize,
        block: &Range<usize>,
        products: (&[f32], &MatrixLayout),
        bias: Option<&[f32]>,
        y: &mut [f32],
    ) {
        let [rows, columns] = self.output;
        let planes = OutputPlanes { group, count: self.outputs, len: rows * columns };
        let range =
            |part: &TileRows| 2 * part.rows.start * columns..rows.min(2 * part.rows.end) * columns;
        self.write_planes(
            workers,
            block,
            &planes,
            range,
            #[inline(always)]
            |part, first, lanes| {
                let mut bias_lanes = [0.0; LANES];
                if let Some(bias) = bias {
                    let bias = &bias[first..self.outputs.min(first + LANES)];
                    bias_lanes[..bias.len()].copy_from_slice(bias);
                }
                self.write_part_outputs::<A, TAPS, TILE>(part, products, first, &bias_lanes, lanes)
            },
            y,
        );
    }

    /// Writes the rows of planes to which the tiles of `block` contribute to `y`. For each part of the
    /// block and each [`LANES`] planes, the function calls `write(part, first, lanes)`, where `first`
    /// is the index of the first plane, and copies `lanes` to the elements `range(part)` of the planes.
    pub(crate) fn write_planes(
        &self,
        workers: &Workers,
        block: &Range<usize>,
        planes: &OutputPlanes,
        range: impl Fn(&TileRows) -> Range<usize>,
        write: impl Fn(&TileRows, usize, &mut [Lanes]) + Sync,
        y: &mut [f32],
    ) {
        let &OutputPlanes { group, count, len } = planes;
        let planes_per_task = count.div_ceil(workers.count()).next_multiple_of(LANES);
        for part in self.image_rows(block) {
            let y = &mut y[(part.image * self.op.groups() + group) * count * len..][..count * len];
            let range = range(&part);
            workers.for_each_chunk(y, planes_per_task * len, |task, y| {
                with_scratch(range.len() * LANES, |lanes: &mut [f32]| {
                    let lanes = lanes.as_chunks_mut().0;
                    for (i, y) in y.chunks_mut(LANES * len).enumerate() {
                        let first = task * planes_per_task + i * LANES;
                        vectorized(
                            #[inline(always)]
                            |_| write(&part, first, lanes),
                        );
                        lanes_to_planes(lanes, y, len, range.clone());
                    }
                });
            });
        }
    }

    /// Writes the outputs of the tiles of `part` to `lanes`, for [`LANES`] output planes from `first`
    /// on.
    #[inline(always)]
    fn write_part_outputs<A: Axis<TAPS, TILE>, const TAPS: usize, const TILE: usize>(
        &self,
        part: &TileRows,
        (products, layout): (&[f32], &MatrixLayout),
        first: usize,
        bias: &Lanes,
        lanes: &mut [Lanes],
    ) {
        let (start, row_len) = layout.column(first);
        let mut at = start + part.first_tile * row_len;
        let mut outputs = Tiles::<2, 2>::ZERO;
        for rows in lanes.chunks_mut(2 * self.output[1]) {
            for column in 0..self.tiles[1] {
                let tile = tile_at(products, layout.distance(), at);
                at += row_len;
                transform_products::<A, TAPS, TILE>(tile, &mut outputs);
                let rows = rows.chunks_exact_mut(self.output[1]);
                for (row, outputs) in rows.zip(&outputs.0) {
                    for (y, output) in row.iter_mut().skip(2 * column).zip(outputs) {
                        *y = sum(output, bias);
                    }
                }
            }
        }
    }
}
