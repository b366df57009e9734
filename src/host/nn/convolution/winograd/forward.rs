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
        let (image_len, output_len) = (x.len() / self.op.batch(), y.len() / self.op.batch());
        let task_len = self.images_per_task * output_len;
        let max_tiles = self.images_per_task * self.tiles[0] * self.tiles[1];
        let tiles = max_tiles.min(self.block_tiles());
        let gemm_flops = Gemm::<f32>::new(self.outputs, tiles, self.channels).flops();
        with_scratch(self.op.groups() * self.outputs * self.filter_stride(), |u: &mut [f32]| {
            let (filters, workers) = (cast_slice(filters), task_workers(workers, self.op));
            match self.taps {
                3 => self.transform_filters::<ThreeTaps, 3, 4>(workers, filters, u),
                _ => self.transform_filters::<FiveTaps, 5, 6>(workers, filters, u),
            }
            let u = &*u;
            try_for_each_task(
                workers,
                self.op,
                gemm_flops,
                y,
                task_len,
                |inner_workers, task, y| {
                    let images = y.len() / output_len;
                    let x = &x[task * self.images_per_task * image_len..][..images * image_len];
                    with_scratch(accumulator_len::<T>(x.len()), |x_scratch| {
                        with_scratch(accumulator_len::<T>(y.len()), |y_scratch| {
                            let (x, bias) =
                                (cast_slice(widened(x, x_scratch)), bias.map(cast_slice));
                            let mut result = Ok(());
                            overwrite_widened(y, y_scratch, |y| {
                                let y = cast_slice_mut(y);
                                result = self.convolve_images(inner_workers, images, x, u, bias, y);
                            });
                            result
                        })
                    })?;
                    activate(inner_workers, activation, y)
                },
            )
        })
    }

    /// `y ← filters ∗ x + bias` for the images of one task, from the transformed filters `u`.
    fn convolve_images(
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
                        self.transform_images(workers, group, &block, x, v);
                        let op = Gemm::new(m, block.len() * self.tiles[1], k);
                        let op = op.leading_dims(self.filter_stride(), stride, stride);
                        let u = &u[group * m * self.filter_stride()..];
                        for i in 0..self.tile_len() {
                            let start = i * self.tile_stride();
                            let products = &mut products[start..];
                            gemm(workers, &op, &u[i * k..], &v[start..], products)?;
                        }
                        let bias = bias.map(|bias| &bias[group * m..][..m]);
                        match self.taps {
                            3 => self.transform_products::<ThreeTaps, 3, 4>(
                                workers, group, &block, products, bias, y,
                            ),
                            _ => self.transform_products::<FiveTaps, 5, 6>(
                                workers, group, &block, products, bias, y,
                            ),
                        }
                    }
                }
                Ok(())
            })
        })
    }

    /// Writes the transformed filters to `u`. For each output plane, `u` has a row for each element
    /// of a transformed filter, with one element per channel.
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
        for part in self.image_rows(block) {
            let y = &mut y[(part.image * self.op.groups() + group) * group_len..][..group_len];
            workers.for_each_chunk(y, planes_per_task * plane_len, |task, y| {
                let planes = (task * planes_per_task..).zip(y.chunks_exact_mut(plane_len));
                vectorized(
                    #[inline(always)]
                    |_| {
                        for (plane, y) in planes {
                            let products = &products[plane * stride..][..stride];
                            let bias = bias.map_or(0.0, |bias| bias[plane]);
                            self.transform_product_rows::<A, TAPS, TILE>(&part, products, bias, y);
                        }
                    },
                );
            });
        }
    }

    /// Writes the outputs of the tiles of `part` to the output plane `y`.
    #[inline(always)]
    fn transform_product_rows<A: Axis<TAPS, TILE>, const TAPS: usize, const TILE: usize>(
        &self,
        part: &ImageRows,
        products: &[f32],
        bias: f32,
        y: &mut [f32],
    ) {
        let (columns, stride) = (self.tiles[1], self.tile_stride());
        let [output_rows, output_columns] = self.output;
        for (i, tile_row) in part.rows.clone().enumerate() {
            for column in (0..columns).step_by(LANES) {
                let first = part.first_tile + i * columns + column;
                let mut tiles = [[lanes(products, first); TILE]; TILE];
                for (e, tile) in tiles.as_flattened_mut().iter_mut().enumerate() {
                    *tile = lanes(products, e * stride + first);
                }
                let rows = transform_products::<A, TAPS, TILE>(tiles, bias);
                let len = (2 * LANES).min(output_columns - 2 * column);
                for (row, outputs) in (2 * tile_row..output_rows).zip(&rows) {
                    let y = &mut y[row * output_columns + 2 * column..][..len];
                    y.copy_from_slice(&outputs[..len]);
                }
            }
        }
    }
}
