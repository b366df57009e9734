//! Filter gradient by Winograd's algorithm.

use crate::{
    error::Result,
    host::{
        blas::gemm::gemm,
        cache::scratch::with_scratch,
        nn::convolution::winograd::{
            Winograd,
            transform::{Axis, FiveTaps, LANES, ThreeTaps, transform_filter_gradient},
        },
        simd::vectorized,
        threads::Workers,
    },
    op::{Gemm, Transpose},
};

/// Number of filters whose gradients one task transforms.
const FILTERS_PER_TASK: usize = 1 << 11;

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
        let (m, n, stride) = (self.outputs, self.channels, self.channel_stride());
        with_scratch(self.tile_len() * m * n, |du: &mut [f32]| {
            for (group, dfilters) in dfilters.chunks_exact_mut(m * n * TAPS * TAPS).enumerate() {
                with_scratch(n * stride, |v: &mut [f32]| {
                    with_scratch(m * stride, |dm: &mut [f32]| {
                        self.blocks(self.op.batch()).try_for_each(|block| {
                            self.transform_images::<A, TAPS, TILE>(workers, group, &block, x, v);
                            self.transform_output_gradients::<A, TAPS, TILE>(
                                workers, group, &block, dy, dm,
                            );
                            let op = Gemm::new(m, n, block.len() * self.tiles[1])
                                .transpose(Transpose::No, Transpose::Yes)
                                .beta(if block.start == 0 { 0.0 } else { 1.0 })
                                .leading_dims(stride, stride, n);
                            workers.try_for_each_chunk(du, m * n, |i, du| {
                                let start = i * self.tile_stride();
                                gemm(&Workers::sequential(), &op, &dm[start..], &v[start..], du)
                            })
                        })
                    })
                })?;
                add_filter_gradient::<A, TAPS, TILE>(workers, du, dfilters);
            }
            Ok(())
        })
    }
}

/// `dfilters ← dfilters + Gᵀ·dU·G`
fn add_filter_gradient<A: Axis<TAPS, TILE>, const TAPS: usize, const TILE: usize>(
    workers: &Workers,
    du: &[f32],
    dfilters: &mut [f32],
) {
    let (taps, len) = (TAPS * TAPS, du.len() / (TILE * TILE));
    workers.for_each_chunk(dfilters, taps * FILTERS_PER_TASK, |task, dfilters| {
        vectorized(
            #[inline(always)]
            |_| {
                for (i, dfilters) in dfilters.chunks_mut(taps * LANES).enumerate() {
                    let start = task * FILTERS_PER_TASK + i * LANES;
                    let count = dfilters.len() / taps;
                    let mut tiles = [[[0.0; LANES]; TILE]; TILE];
                    for (row, tiles) in tiles.as_flattened_mut().iter_mut().enumerate() {
                        tiles[..count].copy_from_slice(&du[row * len + start..][..count]);
                    }
                    let gradient = transform_filter_gradient::<A, TAPS, TILE>(&tiles);
                    for (lane, filter) in dfilters.chunks_exact_mut(taps).enumerate() {
                        let gradient = gradient.as_flattened().iter();
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
