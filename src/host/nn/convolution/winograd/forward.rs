//! Forward convolution by Winograd's algorithm.

use crate::{
    cast::{cast_slice, cast_slice_mut},
    element::Element,
    error::Result,
    host::{
        blas::gemm::gemm,
        cache::scratch::with_scratch,
        nn::convolution::{
            schedule::{activate, task_workers, try_for_each_task},
            winograd::{
                ImageRows, Winograd, lanes,
                transform::{
                    Axis, FiveTaps, LANES, ThreeTaps, transform_filters, transform_products,
                },
            },
        },
        simd::{
            accumulator::{accumulator_len, overwrite_widened, widened},
            vectorized,
        },
        threads::Workers,
    },
    op::{Gemm, Unary},
};
use std::ops::Range;

/// Number of output planes whose filters one task transforms.
const FILTER_PLANES: usize = 8;

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
        self.with_transformed_filters::<A, TAPS, TILE>(workers, filters, |u| {
            self.for_each_group_of_images(workers, x, y, activation, |workers, images, x, y| {
                self.convolve_images::<A, TAPS, TILE>(workers, images, x, u, bias, y)
            })
        })
    }

    /// Calls `body` with the transformed filters. For each output plane, these have a row for each
    /// element of a transformed filter, with one element per channel.
    fn with_transformed_filters<A: Axis<TAPS, TILE>, const TAPS: usize, const TILE: usize>(
        &self,
        workers: &Workers,
        filters: &[f32],
        body: impl FnOnce(&[f32]) -> Result<()>,
    ) -> Result<()> {
        with_scratch(self.op.groups() * self.outputs * self.filter_stride(), |u: &mut [f32]| {
            self.transform_filters::<A, TAPS, TILE>(task_workers(workers, self.op), filters, u);
            body(u)
        })
    }

    /// Calls `body(gemm_workers, images, x, y)` for each task, where `x` and `y` are the inputs and
    /// outputs of the task's `images` images. `body` writes all elements of `y`, to which the
    /// function then applies `activation`.
    fn for_each_group_of_images<T: Element>(
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
        let gemm_flops = Gemm::<f32>::new(self.outputs, tiles, self.channels).flops();
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
        let (m, k, stride) = (self.outputs, self.channels, self.channel_stride());
        with_scratch(k * stride, |v: &mut [f32]| {
            with_scratch(m * stride, |products: &mut [f32]| {
                for block in self.blocks(images) {
                    for group in 0..self.op.groups() {
                        self.transform_images::<A, TAPS, TILE>(workers, group, &block, x, v);
                        let op = Gemm::new(m, block.len() * self.tiles[1], k);
                        let op = op.leading_dims(self.filter_stride(), stride, stride);
                        let u = &u[group * m * self.filter_stride()..];
                        for i in 0..self.tile_len() {
                            let start = i * self.tile_stride();
                            let products = &mut products[start..];
                            gemm(workers, &op, &u[i * k..], &v[start..], products)?;
                        }
                        let bias = bias.map(|bias| &bias[group * m..][..m]);
                        self.transform_products::<A, TAPS, TILE>(
                            workers, group, &block, products, bias, y,
                        );
                    }
                }
                Ok(())
            })
        })
    }

    /// Writes the transformed filters to `u`.
    fn transform_filters<A: Axis<TAPS, TILE>, const TAPS: usize, const TILE: usize>(
        &self,
        workers: &Workers,
        filters: &[f32],
        u: &mut [f32],
    ) {
        let (stride, channels, taps) = (self.filter_stride(), self.channels, TAPS * TAPS);
        workers.for_each_chunk(u, FILTER_PLANES * stride, |task, u| {
            let filters = &filters[task * FILTER_PLANES * channels * taps..];
            let planes = u.chunks_exact_mut(stride).zip(filters.chunks_exact(channels * taps));
            vectorized(
                #[inline(always)]
                |_| {
                    for (u, filters) in planes {
                        for (i, filters) in filters.chunks(LANES * taps).enumerate() {
                            let mut lanes = [[[0.0; LANES]; TAPS]; TAPS];
                            for (lane, filter) in filters.chunks_exact(taps).enumerate() {
                                let lanes = lanes.as_flattened_mut().iter_mut();
                                lanes.zip(filter).for_each(|(lanes, &tap)| lanes[lane] = tap);
                            }
                            let count = filters.len() / taps;
                            let lanes = transform_filters::<A, TAPS, TILE>(&lanes);
                            for (row, lanes) in lanes.as_flattened().iter().enumerate() {
                                let start = row * channels + i * LANES;
                                u[start..start + count].copy_from_slice(&lanes[..count]);
                            }
                        }
                    }
                },
            );
        });
    }

    /// Writes the outputs of `block` to `y`: the transformed `products`, plus the bias.
    fn transform_products<A: Axis<TAPS, TILE>, const TAPS: usize, const TILE: usize>(
        &self,
        workers: &Workers,
        group: usize,
        block: &Range<usize>,
        products: &[f32],
        bias: Option<&[f32]>,
        y: &mut [f32],
    ) {
        let (stride, plane_len) = (self.channel_stride(), self.output[0] * self.output[1]);
        let group_len = self.outputs * plane_len;
        let planes_per_task = self.channels_per_task();
        // Length of the buffer for the even rows of outputs, and of that for the odd rows: two outputs
        // for each tile. The transform writes whole groups of LANES tiles.
        let rows_len = 2 * (self.tile_rows_per_part() * self.tiles[1]).next_multiple_of(LANES);
        for part in self.image_rows(block) {
            let y = &mut y[(part.image * self.op.groups() + group) * group_len..][..group_len];
            workers.for_each_chunk(y, planes_per_task * plane_len, |task, y| {
                let planes = (task * planes_per_task..).zip(y.chunks_exact_mut(plane_len));
                with_scratch(2 * rows_len, |rows: &mut [f32]| {
                    let (even, odd) = rows.split_at_mut(rows_len);
                    vectorized(
                        #[inline(always)]
                        |_| {
                            for (plane, y) in planes {
                                let products = &products[plane * stride..][..stride];
                                let bias = bias.map_or(0.0, |bias| bias[plane]);
                                self.transform_part_products::<A, TAPS, TILE>(
                                    &part,
                                    products,
                                    bias,
                                    [&mut *even, &mut *odd],
                                );
                                self.copy_rows(&part, [even, odd], y);
                            }
                        },
                    );
                });
            });
        }
    }

    /// Writes the outputs of the tiles of `part` to `rows`: the even rows of outputs, one after
    /// another, and the odd rows.
    #[inline(always)]
    fn transform_part_products<A: Axis<TAPS, TILE>, const TAPS: usize, const TILE: usize>(
        &self,
        part: &ImageRows,
        products: &[f32],
        bias: f32,
        [even, odd]: [&mut [f32]; 2],
    ) {
        let stride = self.tile_stride();
        let tiles = (0..part.rows.len() * self.tiles[1]).step_by(LANES);
        let rows = even.as_chunks_mut().0.iter_mut().zip(odd.as_chunks_mut().0);
        for (tile, (even, odd)) in tiles.zip(rows) {
            let first = part.first_tile + tile;
            let mut tiles = [[lanes(products, first); TILE]; TILE];
            for (e, tile) in tiles.as_flattened_mut().iter_mut().enumerate() {
                *tile = lanes(products, e * stride + first);
            }
            transform_products::<A, TAPS, TILE>(tiles, bias, [even, odd]);
        }
    }

    /// Copies the rows of outputs of `part` to the output plane `y`.
    #[inline(always)]
    fn copy_rows(&self, part: &ImageRows, [even, odd]: [&[f32]; 2], y: &mut [f32]) {
        let [rows, columns] = self.output;
        let computed = 2 * self.tiles[1];
        let y = &mut y[2 * part.rows.start * columns..rows.min(2 * part.rows.end) * columns];
        let computed = even.chunks_exact(computed).zip(odd.chunks_exact(computed));
        for (y, (even, odd)) in y.chunks_mut(2 * columns).zip(computed) {
            for (y, computed) in y.chunks_exact_mut(columns).zip([even, odd]) {
                y.copy_from_slice(&computed[..columns]);
            }
        }
    }
}
