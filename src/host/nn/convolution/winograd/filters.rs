//! Transforms of filters.

use crate::{
    error::Result,
    host::{
        cache::scratch::with_scratch,
        nn::convolution::{
            schedule::task_workers,
            winograd::{
                Winograd,
                matrices::MatrixLayout,
                tile_at,
                transform::{Axis, Tiles, transform_filters},
            },
        },
        simd::{
            lanes::{LANES, Lanes, planes_to_lanes},
            vectorized,
        },
        threads::Workers,
    },
};
use std::ops::Range;

/// Number of rows of a [`FilterMatrix`] that are copied at a time. Reading the taps of one filter of
/// each of many output planes at a time would evict their cache lines from L1 before all elements are
/// read.
const ROWS: usize = 16;

/// The filters of a group as a matrix. Its rows are channels and its columns output planes, or vice versa.
#[derive(Clone, Copy)]
pub(crate) struct FilterMatrix {
    rows: FilterAxis,
    columns: FilterAxis,
}

/// Rows or columns of a [`FilterMatrix`].
#[derive(Clone, Copy)]
struct FilterAxis {
    count: usize,
    /// Number of filters from one row or column to the next.
    stride: usize,
}

impl FilterMatrix {
    /// Returns the numbers of rows and columns.
    pub(crate) fn shape(&self) -> [usize; 2] {
        [self.rows.count, self.columns.count]
    }

    /// Returns the layout of the transformed filters.
    pub(crate) fn layout(&self) -> MatrixLayout {
        MatrixLayout::one_panel(self.rows.count, 1, self.columns.count).right_operand()
    }
}

impl Winograd<'_> {
    /// Returns the matrix with a row for each channel and a column for each output plane.
    pub(crate) fn channels_by_outputs(&self) -> FilterMatrix {
        let channels = FilterAxis { count: self.channels, stride: 1 };
        let outputs = FilterAxis { count: self.outputs, stride: self.channels };
        FilterMatrix { rows: channels, columns: outputs }
    }

    /// Returns the matrix with a row for each output plane and a column for each channel.
    pub(crate) fn outputs_by_channels(&self) -> FilterMatrix {
        let FilterMatrix { rows, columns } = self.channels_by_outputs();
        FilterMatrix { rows: columns, columns: rows }
    }

    /// Calls `body` with the transformed filters of all groups. `matrix` describes the filters of one
    /// group.
    pub(crate) fn with_transformed_filters<
        A: Axis<TAPS, TILE>,
        const TAPS: usize,
        const TILE: usize,
    >(
        &self,
        workers: &Workers,
        matrix: FilterMatrix,
        filters: &[f32],
        body: impl FnOnce(&[f32]) -> Result<()>,
    ) -> Result<()> {
        let group_len = self.matrices_len(&matrix.layout());
        with_scratch(self.op.groups() * group_len, |u: &mut [f32]| {
            let workers = task_workers(workers, self.op);
            let filters = filters.chunks_exact(filters.len() / self.op.groups());
            for (u, filters) in u.chunks_exact_mut(group_len).zip(filters) {
                matrix.transform::<A, TAPS, TILE>(workers, filters, u);
            }
            body(u)
        })
    }
}

impl FilterMatrix {
    /// Writes the transformed filters of one group to `u`.
    fn transform<A: Axis<TAPS, TILE>, const TAPS: usize, const TILE: usize>(
        &self,
        workers: &Workers,
        filters: &[f32],
        u: &mut [f32],
    ) {
        let (layout, rows, taps) = (self.layout(), self.rows.count, TAPS * TAPS);
        let rows_per_task = rows.div_ceil(workers.count());
        let mut parts = layout.split_tiles(u, rows_per_task);
        workers.for_each_chunk(&mut parts, 1, |task, parts| {
            let first_row = task * rows_per_task;
            let task_rows = first_row..rows.min(first_row + rows_per_task);
            with_scratch(ROWS * taps * LANES, |lanes: &mut [f32]| {
                let lanes = lanes.as_chunks_mut().0;
                for chunk in layout.plane_chunks(0..1) {
                    for start in task_rows.clone().step_by(ROWS) {
                        let rows = start..task_rows.end.min(start + ROWS);
                        let columns = chunk.planes.clone();
                        self.copy_to_lanes(filters, taps, rows.clone(), columns, lanes);
                        vectorized(
                            #[inline(always)]
                            |_| {
                                let mut transformed = Tiles::ZERO;
                                for (i, row) in rows.enumerate() {
                                    let filters =
                                        tile_at(lanes.as_flattened(), LANES, i * taps * LANES);
                                    transform_filters::<A, TAPS, TILE>(filters, &mut transformed);
                                    let elements = transformed.0.as_flattened();
                                    parts[0].write(&chunk, row - first_row, elements);
                                }
                            },
                        );
                    }
                }
            });
        });
    }

    /// Copies the taps of the filters in the rows `rows` and in at most [`LANES`] columns to `lanes`, one
    /// row after another. The taps of missing columns become zeros.
    fn copy_to_lanes(
        &self,
        filters: &[f32],
        taps: usize,
        rows: Range<usize>,
        columns: Range<usize>,
        lanes: &mut [Lanes],
    ) {
        let (first, count) = (columns.start, columns.len());
        // Number of elements from one column to the next. Either the filters of a column or those of
        // a row are contiguous.
        let len = self.columns.stride * taps;
        if self.rows.stride == 1 {
            let filters = &filters[first * len..][..count * len];
            planes_to_lanes(filters, len, rows.start * taps..rows.end * taps, lanes);
        } else {
            for (row, lanes) in rows.zip(lanes.chunks_exact_mut(taps)) {
                let filters = &filters[(row * self.rows.stride + first) * taps..][..count * taps];
                planes_to_lanes(filters, len, 0..taps, lanes);
            }
        }
    }
}
