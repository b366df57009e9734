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
                Block, Winograd,
                filters::FilterMatrix,
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
use std::{array, ops::Range};

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
        let rows = self.block_layout(&self.largest_block(), self.channels).rows();
        let gemm = Gemm::<f32>::new(rows, self.outputs, self.channels);
        // The threads of a task share the matrix products of a block.
        let gemm_flops = self.tile_len() as u64 * gemm.flops();
        let task_len = self.images_per_block * output_len;
        try_for_each_task(workers, self.op, gemm_flops, y, task_len, |workers, task, y| {
            let images = y.len() / output_len;
            let x = &x[task * self.images_per_block * image_len..][..images * image_len];
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

    /// For each block of `images` images and each group, calls `transform(group, block, operand)`,
    /// multiplies `operand` by the transformed filters `u`, and calls `write(group, block, products)`.
    /// `matrix` describes the filters of one group.
    pub(crate) fn multiply_blocks(
        &self,
        workers: &Workers,
        images: usize,
        (u, matrix): (&[f32], FilterMatrix),
        transform: impl Fn(usize, &Block, (&mut [f32], &MatrixLayout)),
        mut write: impl FnMut(usize, &Block, (&[f32], &MatrixLayout)),
    ) -> Result<()> {
        let (planes, u_layout) = (matrix.shape(), matrix.layout());
        let block_layouts = |block: &Block| planes.map(|planes| self.block_layout(block, planes));
        let largest = block_layouts(&self.largest_block()).map(|layout| self.matrices_len(&layout));
        with_scratch(largest[0], |operand: &mut [f32]| {
            with_scratch(largest[1], |products: &mut [f32]| {
                for block in self.blocks(images) {
                    let [operand_layout, layout] = block_layouts(&block);
                    let operand = &mut operand[..self.matrices_len(&operand_layout)];
                    let products = &mut products[..self.matrices_len(&layout)];
                    let op = Gemm::new(layout.rows(), planes[1], planes[0]);
                    for (group, u) in u.chunks_exact(self.matrices_len(&u_layout)).enumerate() {
                        transform(group, &block, (operand, &operand_layout));
                        let (operand, u) = ((&*operand, &operand_layout), (u, &u_layout));
                        multiply(workers, &op, operand, u, (products, &layout))?;
                        write(group, &block, (products, &layout));
                    }
                }
                Ok(())
            })
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
        let group_len = self.outputs * self.output[0] * self.output[1];
        self.multiply_blocks(
            workers,
            images,
            (u, self.channels_by_outputs()),
            |group, block, v| {
                self.transform_images::<A, TAPS, TILE>(workers, group, block, x, v);
            },
            |group, block, products| {
                let bias = bias.map(|bias| &bias[group * self.outputs..][..self.outputs]);
                for (images, range) in self.runs(block, group, group_len) {
                    let first = images.start * self.outputs;
                    let y = &mut y[range];
                    self.write_outputs::<A, TAPS, TILE>(workers, block, products, bias, first, y);
                }
            },
        )
    }

    /// Writes `Aᵀ·M·A + bias` for the tiles of `block` to `y`, where `M` is `products`. `y` contains
    /// consecutive planes of one group in the images of the block, from the index `first` on.
    fn write_outputs<A: Axis<TAPS, TILE>, const TAPS: usize, const TILE: usize>(
        &self,
        workers: &Workers,
        block: &Block,
        products: (&[f32], &MatrixLayout),
        bias: Option<&[f32]>,
        first: usize,
        y: &mut [f32],
    ) {
        let [rows, columns] = self.output;
        let range = 2 * block.rows.start * columns..rows.min(2 * block.rows.end) * columns;
        write_planes(
            workers,
            (first, rows * columns),
            range,
            #[inline(always)]
            |first, lanes| {
                let bias_lanes = bias.map_or([0.0; LANES], |bias| {
                    array::from_fn(|lane| bias[(first + lane) % self.outputs])
                });
                self.write_plane_outputs::<A, TAPS, TILE>(products, first, &bias_lanes, lanes)
            },
            y,
        );
    }

    /// Writes the outputs of [`LANES`] output planes from `first` on to `lanes`.
    #[inline(always)]
    fn write_plane_outputs<A: Axis<TAPS, TILE>, const TAPS: usize, const TILE: usize>(
        &self,
        (products, layout): (&[f32], &MatrixLayout),
        first: usize,
        bias: &Lanes,
        lanes: &mut [Lanes],
    ) {
        let mut at = first;
        let mut outputs = Tiles::<2, 2>::ZERO;
        for rows in lanes.chunks_mut(2 * self.output[1]) {
            for column in 0..self.tiles[1] {
                let tile = tile_at(products, layout.distance(), at);
                at += layout.tile_stride();
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

/// Writes the elements `range` of planes of `plane_len` elements to `planes`, whose indices start at
/// `first_plane`. For each [`LANES`] planes, the function calls `write(first, lanes)`, where `first` is the
/// index of the first of them, and copies `lanes` to the elements. The last call can have fewer than [`LANES`] planes; the remaining
/// lanes are ignored.
pub(crate) fn write_planes(
    workers: &Workers,
    (first_plane, plane_len): (usize, usize),
    range: Range<usize>,
    write: impl Fn(usize, &mut [Lanes]) + Sync,
    planes: &mut [f32],
) {
    let count = planes.len() / plane_len;
    let planes_per_task = count.div_ceil(workers.count()).next_multiple_of(LANES);
    workers.for_each_chunk(planes, planes_per_task * plane_len, |task, planes| {
        with_scratch(range.len() * LANES, |lanes: &mut [f32]| {
            let lanes = lanes.as_chunks_mut().0;
            for (i, planes) in planes.chunks_mut(LANES * plane_len).enumerate() {
                let first = first_plane + task * planes_per_task + i * LANES;
                vectorized(
                    #[inline(always)]
                    |_| write(first, lanes),
                );
                lanes_to_planes(lanes, planes, plane_len, range.clone());
            }
        });
    });
}
