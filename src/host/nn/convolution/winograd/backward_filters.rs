//! Filter gradient by Winograd's algorithm.

use crate::{
    error::Result,
    host::{
        blas::level1::axpy,
        cache::scratch::with_scratch,
        nn::convolution::{
            schedule::{ONE_THREAD, task_workers},
            winograd::{
                Block, Winograd,
                matrices::{MatrixLayout, multiply},
                tile_at,
                transform::{Axis, FiveTaps, ThreeTaps, Tiles, transform_filter_gradient},
            },
        },
        simd::{
            lanes::{LANES, lanes_to_planes},
            vectorized,
        },
        threads::Workers,
    },
    op::{Gemm, Transpose},
};

/// Largest number of partial sums of the gradient of the transformed filters. Each partial sum is a
/// task.
const MAX_PARTIAL_SUMS: usize = 8;

/// Largest number of elements of a partial sum: 512 KiB. With larger sums, threads share the work on
/// each block instead.
const MAX_PARTIAL_SUM_LEN: usize = 1 << 17;

/// Number of channels whose filter gradients are transposed at a time, so that each cache line of the
/// filter gradients is written at once.
const CHANNELS_PER_CHUNK: usize = 16;

/// All images and output gradients, and the group to process.
struct GroupOperands<'a> {
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
        let workers = task_workers(workers, self.op);
        let layout = self.filter_gradient_layout();
        let sum_len = self.matrices_len(&layout);
        let filters_len = self.outputs * self.channels * TAPS * TAPS;
        let blocks: Vec<_> = self.blocks(self.op.batch()).collect();
        let max_sums = if sum_len <= MAX_PARTIAL_SUM_LEN { MAX_PARTIAL_SUMS } else { 1 };
        let sums = blocks.len().min(max_sums);
        with_scratch(sums * sum_len, |du: &mut [f32]| {
            for (group, dfilters) in dfilters.chunks_exact_mut(filters_len).enumerate() {
                let operands = &GroupOperands { group, x, dy };
                if sums == 1 {
                    self.sum_blocks::<A, TAPS, TILE>(workers, operands, &blocks, du)?;
                } else {
                    workers.try_for_each_chunk(du, sum_len, |i, du| {
                        let [start, end] = [i, i + 1].map(|i| i * blocks.len() / sums);
                        let blocks = &blocks[start..end];
                        self.sum_blocks::<A, TAPS, TILE>(&ONE_THREAD, operands, blocks, du)
                    })?;
                }
                let (du, partial_sums) = du.split_at_mut(sum_len);
                for partial_sum in partial_sums.chunks_exact(sum_len) {
                    axpy(workers, 1.0, partial_sum, du)?;
                }
                self.add_filter_gradient::<A, TAPS, TILE>(workers, du, dfilters);
            }
            Ok(())
        })
    }

    /// Returns the layout of `dU`, with a row for each channel and a column for each output plane.
    fn filter_gradient_layout(&self) -> MatrixLayout {
        MatrixLayout::one_panel(self.channels, 1, self.outputs)
    }

    /// Returns the layout of the transformed output gradients of `block`.
    fn output_gradient_layout(&self, block: &Block) -> MatrixLayout {
        self.block_layout(block, self.outputs).right_operand()
    }

    /// `du ← Σ dM ⊙ V` for the tiles of `blocks`.
    fn sum_blocks<A: Axis<TAPS, TILE>, const TAPS: usize, const TILE: usize>(
        &self,
        workers: &Workers,
        &GroupOperands { group, x, dy }: &GroupOperands,
        blocks: &[Block],
        du: &mut [f32],
    ) -> Result<()> {
        let largest = self.largest_block();
        let v_len = self.matrices_len(&self.block_layout(&largest, self.channels));
        let dm_len = self.matrices_len(&self.output_gradient_layout(&largest));
        with_scratch(v_len, |v: &mut [f32]| {
            with_scratch(dm_len, |dm: &mut [f32]| {
                blocks.iter().enumerate().try_for_each(|(i, block)| {
                    let v_layout = self.block_layout(block, self.channels);
                    let dm_layout = self.output_gradient_layout(block);
                    let v = &mut v[..self.matrices_len(&v_layout)];
                    let dm = &mut dm[..self.matrices_len(&dm_layout)];
                    self.transform_images::<A, TAPS, TILE>(
                        workers,
                        group,
                        block,
                        x,
                        (v, &v_layout),
                    );
                    self.transform_output_gradients::<A, TAPS, TILE>(
                        workers,
                        group,
                        block,
                        dy,
                        (dm, &dm_layout),
                    );
                    let op = Gemm::new(self.channels, self.outputs, v_layout.rows())
                        .transpose(Transpose::Yes, Transpose::No)
                        .beta(if i == 0 { 0.0 } else { 1.0 });
                    let (v, dm) = ((&*v, &v_layout), (&*dm, &dm_layout));
                    multiply(workers, &op, v, dm, (&mut *du, &self.filter_gradient_layout()))
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
        let (taps, layout) = (TAPS * TAPS, self.filter_gradient_layout());
        let (filters_len, chunk_len) = (self.channels * taps, CHANNELS_PER_CHUNK * taps);
        workers.for_each_chunk(dfilters, LANES * filters_len, |task, dfilters| {
            with_scratch(2 * chunk_len * LANES, |scratch: &mut [f32]| {
                let (lanes, planes) = scratch.split_at_mut(chunk_len * LANES);
                let lanes = lanes.as_chunks_mut().0;
                for first in (0..self.channels).step_by(CHANNELS_PER_CHUNK) {
                    let count = CHANNELS_PER_CHUNK.min(self.channels - first);
                    vectorized(
                        #[inline(always)]
                        |_| {
                            let mut gradient = Tiles::ZERO;
                            for (i, lanes) in lanes.chunks_exact_mut(taps).take(count).enumerate() {
                                let at = (first + i) * layout.tile_stride() + task * LANES;
                                let tile = tile_at(du, layout.distance(), at);
                                transform_filter_gradient::<A, TAPS, TILE>(tile, &mut gradient);
                                lanes.copy_from_slice(gradient.0.as_flattened());
                            }
                        },
                    );
                    lanes_to_planes(lanes, planes, chunk_len, 0..count * taps);
                    let filters = dfilters.chunks_exact_mut(filters_len);
                    for (filters, gradient) in filters.zip(planes.chunks_exact(chunk_len)) {
                        let filters = &mut filters[first * taps..][..count * taps];
                        filters.iter_mut().zip(gradient).for_each(|(tap, &dtap)| *tap += dtap);
                    }
                }
            });
        });
    }
}
