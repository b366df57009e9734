//! Filter gradient by Winograd's algorithm.

use crate::{
    error::Result,
    host::{
        cache::scratch::with_scratch,
        nn::convolution::{
            schedule::ONE_THREAD,
            winograd::{
                Winograd,
                panels::{Panels, multiply},
                tile_at,
                transform::{Axis, FiveTaps, ThreeTaps, Tiles, transform_filter_gradient},
            },
        },
        simd::{lanes::LANES, vectorized},
        threads::Workers,
    },
    op::{Gemm, Transpose},
};
use std::ops::Range;

/// Largest number of partial sums of the gradient of the transformed filters. Each partial sum is a
/// task.
const MAX_PARTIAL_SUMS: usize = 8;

/// Largest number of elements of a partial sum: 512 KiB. With larger sums, threads share the work on
/// each block instead.
const MAX_PARTIAL_SUM_LEN: usize = 1 << 17;

/// Number of elements to which one task adds the partial sums.
const ADD_GRAIN: usize = 1 << 13;

/// Images and output gradients of one group.
struct Images<'a> {
    group: usize,
    x: &'a [f32],
    dy: &'a [f32],
}

impl Winograd<'_> {
    /// `dfilters ← dfilters + dy ∗ x`
    pub(crate) fn accumulate_filter_gradient(
        &self,
        workers: &Workers,
        x: &[f32],
        dy: &[f32],
        dfilters: &mut [f32],
    ) -> Result<()> {
        match self.taps {
            3 => self.accumulate::<ThreeTaps, 3, 4>(workers, x, dy, dfilters),
            _ => self.accumulate::<FiveTaps, 5, 6>(workers, x, dy, dfilters),
        }
    }

    /// Like [`accumulate_filter_gradient`](Self::accumulate_filter_gradient), for filters with the
    /// transforms `A`.
    fn accumulate<A: Axis<TAPS, TILE>, const TAPS: usize, const TILE: usize>(
        &self,
        workers: &Workers,
        x: &[f32],
        dy: &[f32],
        dfilters: &mut [f32],
    ) -> Result<()> {
        let panels = self.output_operand_panels().of_products(self.channels);
        let sum_len = self.tile_len() * panels.stride();
        let filters_len = self.outputs * self.channels * TAPS * TAPS;
        let blocks: Vec<_> = self.blocks(self.op.batch()).collect();
        let max_sums = if sum_len <= MAX_PARTIAL_SUM_LEN { MAX_PARTIAL_SUMS } else { 1 };
        let blocks_per_sum = blocks.len().div_ceil(max_sums);
        let sums = blocks.len().div_ceil(blocks_per_sum);
        with_scratch(sums * sum_len, |du: &mut [f32]| {
            for (group, dfilters) in dfilters.chunks_exact_mut(filters_len).enumerate() {
                let images = &Images { group, x, dy };
                if sums == 1 {
                    self.add_blocks::<A, TAPS, TILE>(workers, images, &blocks, du)?;
                } else {
                    workers.try_for_each_chunk(du, sum_len, |i, du| {
                        let blocks = &blocks[i * blocks_per_sum..];
                        let blocks = &blocks[..blocks.len().min(blocks_per_sum)];
                        self.add_blocks::<A, TAPS, TILE>(&ONE_THREAD, images, blocks, du)
                    })?;
                }
                let (du, partial_sums) = du.split_at_mut(sum_len);
                workers.for_each_chunk(du, ADD_GRAIN, |i, du| {
                    for partial_sum in partial_sums.chunks_exact(sum_len) {
                        let partial_sum = &partial_sum[i * ADD_GRAIN..];
                        du.iter_mut().zip(partial_sum).for_each(|(du, &sum)| *du += sum);
                    }
                });
                self.add_filter_gradient::<A, TAPS, TILE>(workers, du, dfilters);
            }
            Ok(())
        })
    }

    /// Returns the layout of a block of transformed output gradients, with a row for each tile.
    fn output_operand_panels(&self) -> Panels {
        Panels::of_right_operands(self.block_tiles(), self.outputs)
    }

    /// `du ← Σ dM ⊙ V` for the tiles of `blocks`.
    fn add_blocks<A: Axis<TAPS, TILE>, const TAPS: usize, const TILE: usize>(
        &self,
        workers: &Workers,
        &Images { group, x, dy }: &Images,
        blocks: &[Range<usize>],
        du: &mut [f32],
    ) -> Result<()> {
        let v_panels = self.channel_panels();
        let dm_panels = self.output_operand_panels();
        let panels = dm_panels.of_products(self.channels);
        with_scratch(self.tile_len() * v_panels.stride(), |v: &mut [f32]| {
            with_scratch(self.tile_len() * dm_panels.stride(), |dm: &mut [f32]| {
                blocks.iter().enumerate().try_for_each(|(i, block)| {
                    self.transform_images::<A, TAPS, TILE>(workers, group, block, x, v);
                    self.transform_output_gradients::<A, TAPS, TILE>(
                        workers,
                        group,
                        block,
                        dy,
                        (dm, &dm_panels),
                    );
                    let tiles = block.len() * self.tiles[1];
                    let op = Gemm::new(self.channels, self.outputs, tiles)
                        .transpose(Transpose::Yes, Transpose::No)
                        .beta(if i == 0 { 0.0 } else { 1.0 });
                    let (v, dm) = ((&*v, &v_panels), (&*dm, &dm_panels));
                    multiply(workers, &op, v, dm, (&mut *du, &panels))
                })
            })
        })
    }

    /// `dfilters ← dfilters + Gᵀ·dU·G` for the filters of one group.
    fn add_filter_gradient<A: Axis<TAPS, TILE>, const TAPS: usize, const TILE: usize>(
        &self,
        workers: &Workers,
        du: &[f32],
        dfilters: &mut [f32],
    ) {
        let (taps, panels) = (TAPS * TAPS, self.output_operand_panels().of_products(self.channels));
        let filters_len = self.channels * taps;
        workers.for_each_chunk(dfilters, LANES * filters_len, |task, dfilters| {
            vectorized(
                #[inline(always)]
                |_| {
                    let mut gradient = Tiles::ZERO;
                    let (start, row_len) = panels.column(task * LANES);
                    for channel in 0..self.channels {
                        let tile = tile_at(du, panels.stride(), start + channel * row_len);
                        transform_filter_gradient::<A, TAPS, TILE>(tile, &mut gradient);
                        for (lane, filters) in dfilters.chunks_exact_mut(filters_len).enumerate() {
                            let filter = &mut filters[channel * taps..][..taps];
                            let gradient = gradient.0.as_flattened().iter();
                            filter
                                .iter_mut()
                                .zip(gradient)
                                .for_each(|(tap, lanes)| *tap += lanes[lane]);
                        }
                    }
                },
            );
        });
    }
}
