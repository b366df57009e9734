//! Filter gradient by Winograd's algorithm.

use crate::{
    error::Result,
    host::{
        blas::gemm::gemm,
        cache::scratch::with_scratch,
        nn::convolution::winograd::{
            Winograd,
            transform::{LANES, TILE_LEN, transform_filter_gradient},
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
        let (m, n, stride) = (self.outputs, self.channels, self.channel_stride());
        with_scratch(TILE_LEN * m * n, |du: &mut [f32]| {
            for (group, dfilters) in dfilters.chunks_exact_mut(m * n * 9).enumerate() {
                with_scratch(n * stride, |v: &mut [f32]| {
                    with_scratch(m * stride, |dm: &mut [f32]| {
                        self.blocks(self.op.batch()).try_for_each(|block| {
                            self.transform_images(workers, group, &block, x, v);
                            self.transform_output_gradients(workers, group, &block, dy, dm);
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
                add_filter_gradient(workers, du, dfilters);
            }
            Ok(())
        })
    }
}

/// `dfilters ← dfilters + Gᵀ·dU·G`
fn add_filter_gradient(workers: &Workers, du: &[f32], dfilters: &mut [f32]) {
    let len = du.len() / TILE_LEN;
    workers.for_each_chunk(dfilters, 9 * FILTERS_PER_TASK, |task, dfilters| {
        vectorized(
            #[inline(always)]
            |_| {
                for (i, dfilters) in dfilters.chunks_mut(9 * LANES).enumerate() {
                    let start = task * FILTERS_PER_TASK + i * LANES;
                    let count = dfilters.len() / 9;
                    let mut tiles = [[0.0; LANES]; TILE_LEN];
                    for (row, tiles) in tiles.iter_mut().enumerate() {
                        tiles[..count].copy_from_slice(&du[row * len + start..][..count]);
                    }
                    let gradient = transform_filter_gradient(&tiles);
                    for (lane, filter) in dfilters.chunks_exact_mut(9).enumerate() {
                        for tap in 0..9 {
                            filter[tap] += gradient[tap][lane];
                        }
                    }
                }
            },
        );
    });
}
