//! Input gradient by the transposed steps of Winograd's algorithm.

use crate::{
    cast::cast_slice,
    element::Element,
    error::Result,
    host::{
        nn::convolution::winograd::{
            Winograd,
            forward::write_planes,
            matrices::MatrixLayout,
            sum, tile_at,
            transform::{Axis, FiveTaps, ThreeTaps, Tiles, transform_image_gradient},
        },
        simd::lanes::{LANES, Lanes},
        threads::Workers,
    },
};

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
        let group_len = self.channels * self.input[0] * self.input[1];
        self.multiply_blocks(
            workers,
            images,
            (u, self.outputs_by_channels()),
            |group, block, dm| {
                self.transform_output_gradients::<A, TAPS, TILE>(workers, group, block, dy, dm);
            },
            |group, block, dv| {
                for (images, range) in self.runs(block, group, group_len) {
                    let first = images.start * self.channels;
                    self.write_image_gradients::<A, TAPS, TILE>(workers, dv, first, &mut dx[range]);
                }
            },
        )
    }

    /// Writes the sums of `B·dV·Bᵀ` over all tiles to `dx`. `dx` contains consecutive planes of one
    /// group in the images of a block, from the index `first` on, and the block contains whole images.
    fn write_image_gradients<A: Axis<TAPS, TILE>, const TAPS: usize, const TILE: usize>(
        &self,
        workers: &Workers,
        dv: (&[f32], &MatrixLayout),
        first: usize,
        dx: &mut [f32],
    ) {
        let len = self.input[0] * self.input[1];
        write_planes(
            workers,
            (first, len),
            0..len,
            #[inline(always)]
            |first, lanes| {
                lanes.fill([0.0; LANES]);
                self.add_tiles::<A, TAPS, TILE>(dv, first, lanes);
            },
            dx,
        );
    }

    /// Adds the gradients of the tiles of [`LANES`] planes from `first` on to `lanes`.
    #[inline(always)]
    fn add_tiles<A: Axis<TAPS, TILE>, const TAPS: usize, const TILE: usize>(
        &self,
        (dv, layout): (&[f32], &MatrixLayout),
        first: usize,
        lanes: &mut [Lanes],
    ) {
        let mut gradients = Tiles::<TILE, TILE>::ZERO;
        let mut at = first;
        for tile_row in 0..self.tiles[0] {
            for tile_column in 0..self.tiles[1] {
                let tile = tile_at(dv, layout.distance(), at);
                at += layout.tile_stride();
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
