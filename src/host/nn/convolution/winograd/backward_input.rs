//! Input gradient by the transposed steps of Winograd's algorithm.

use crate::{
    cast::cast_slice,
    element::Element,
    error::Result,
    host::{
        cache::scratch::with_scratch,
        nn::convolution::winograd::{
            TileRows, Winograd,
            forward::OutputPlanes,
            matrices::{MatrixLayout, multiply},
            sum, tile_at,
            transform::{Axis, FiveTaps, ThreeTaps, Tiles, transform_image_gradient},
        },
        simd::lanes::{LANES, Lanes},
        threads::Workers,
    },
    op::Gemm,
};
use std::ops::Range;

impl Winograd<'_> {
    /// `dx ← filtersᵀ ∗ dy` for all images. The accumulator type of `T` must be `f32`. A block must
    /// contain whole images, because tiles of two blocks of one image would overlap in `dx`.
    pub(crate) fn convolve_backward_input<T: Element>(
        &self,
        workers: &Workers,
        filters: &[T::Acc],
        dy: &[T],
        dx: &mut [T],
    ) -> Result<()> {
        match self.taps {
            3 => self.backward_input_with::<T, ThreeTaps, 3, 4>(workers, filters, dy, dx),
            _ => self.backward_input_with::<T, FiveTaps, 5, 6>(workers, filters, dy, dx),
        }
    }

    /// Like [`convolve_backward_input`](Self::convolve_backward_input), for filters with the transforms
    /// `A`.
    fn backward_input_with<
        T: Element,
        A: Axis<TAPS, TILE>,
        const TAPS: usize,
        const TILE: usize,
    >(
        &self,
        workers: &Workers,
        filters: &[T::Acc],
        dy: &[T],
        dx: &mut [T],
    ) -> Result<()> {
        let (filters, matrix) = (cast_slice(filters), self.outputs_by_channels());
        self.with_transformed_filters::<A, TAPS, TILE>(workers, matrix, filters, |u| {
            self.try_for_each_image_task(workers, dy, dx, None, |workers, images, dy, dx| {
                self.backward_images::<A, TAPS, TILE>(workers, images, dy, u, dx)
            })
        })
    }

    /// `dx ← filtersᵀ ∗ dy` for the images of one task, from the transformed filters `u`.
    fn backward_images<A: Axis<TAPS, TILE>, const TAPS: usize, const TILE: usize>(
        &self,
        workers: &Workers,
        images: usize,
        dy: &[f32],
        u: &[f32],
        dx: &mut [f32],
    ) -> Result<()> {
        let u_layout = self.outputs_by_channels().layout();
        let (dm_layout, layout) = (self.output_layout(), u_layout.products(self.block_tiles()));
        with_scratch(self.tile_len() * dm_layout.distance(), |dm: &mut [f32]| {
            with_scratch(self.tile_len() * layout.distance(), |dv: &mut [f32]| {
                for block in self.blocks(images) {
                    let op = Gemm::new(block.len() * self.tiles[1], self.channels, self.outputs);
                    let groups = u.chunks_exact(self.tile_len() * u_layout.distance());
                    for (group, u) in groups.enumerate() {
                        self.transform_output_gradients::<A, TAPS, TILE>(
                            workers,
                            group,
                            &block,
                            dy,
                            (dm, &dm_layout),
                        );
                        let (dm, u) = ((&*dm, &dm_layout), (u, &u_layout));
                        multiply(workers, &op, dm, u, (&mut *dv, &layout))?;
                        self.transform_image_gradients::<A, TAPS, TILE>(
                            workers,
                            group,
                            &block,
                            (dv, &layout),
                            dx,
                        );
                    }
                }
                Ok(())
            })
        })
    }

    /// Writes the gradients of the images of `block` to `dx`: the sums of the transformed `dv`.
    fn transform_image_gradients<A: Axis<TAPS, TILE>, const TAPS: usize, const TILE: usize>(
        &self,
        workers: &Workers,
        group: usize,
        block: &Range<usize>,
        dv: (&[f32], &MatrixLayout),
        dx: &mut [f32],
    ) {
        let len = self.input[0] * self.input[1];
        let planes = OutputPlanes { group, count: self.channels, len };
        self.write_planes(
            workers,
            block,
            &planes,
            |_| 0..len,
            #[inline(always)]
            |part, first, lanes| {
                lanes.fill([0.0; LANES]);
                self.add_part::<A, TAPS, TILE>(part, dv, first, lanes);
            },
            dx,
        );
    }

    /// Adds the gradients of the tiles of `part` to `lanes`, for [`LANES`] channels from `first` on.
    #[inline(always)]
    fn add_part<A: Axis<TAPS, TILE>, const TAPS: usize, const TILE: usize>(
        &self,
        part: &TileRows,
        (dv, layout): (&[f32], &MatrixLayout),
        first: usize,
        lanes: &mut [Lanes],
    ) {
        let (start, row_len) = layout.column(first);
        let mut gradients = Tiles::<TILE, TILE>::ZERO;
        let mut at = start + part.first_tile * row_len;
        for tile_row in part.rows.clone() {
            for tile_column in 0..self.tiles[1] {
                let tile = tile_at(dv, layout.distance(), at);
                at += row_len;
                transform_image_gradient::<A, TAPS, TILE>(tile, &mut gradients);
                for (r, gradients) in gradients.0.iter().enumerate() {
                    let row = (2 * tile_row + r).wrapping_sub(self.pad[0]);
                    if row >= self.input[0] {
                        continue;
                    }
                    let row = &mut lanes[row * self.input[1]..][..self.input[1]];
                    for (c, gradient) in gradients.iter().enumerate() {
                        let column = (2 * tile_column + c).wrapping_sub(self.pad[1]);
                        if let Some(dx) = row.get_mut(column) {
                            *dx = sum(dx, gradient);
                        }
                    }
                }
            }
        }
    }
}
