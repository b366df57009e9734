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

/// The filters of a group as a matrix: the channels and the output planes, or vice versa.
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
    /// Returns the layout of the transformed filters.
    pub(crate) fn layout(&self) -> MatrixLayout {
        MatrixLayout::right_operand(self.rows.count, self.columns.count)
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
        let group_len = self.tile_len() * matrix.layout().distance();
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
        let (rows, columns, taps) = (self.rows.count, self.columns.count, TAPS * TAPS);
        let rows_per_task = rows.div_ceil(workers.count());
        let mut parts = self.layout().split_rows(u, rows_per_task);
        workers.for_each_chunk(&mut parts, 1, |task, parts| {
            let first_row = task * rows_per_task;
            let task_rows = first_row..rows.min(first_row + rows_per_task);
            with_scratch(ROWS * taps * LANES, |lanes: &mut [f32]| {
                for first in (0..columns).step_by(LANES) {
                    let mut part_columns = parts[0].columns(first);
                    for start in task_rows.clone().step_by(ROWS) {
                        let chunk = start..task_rows.end.min(start + ROWS);
                        self.copy_to_lanes(
                            filters,
                            taps,
                            chunk.clone(),
                            first,
                            lanes.as_chunks_mut().0,
                        );
                        vectorized(
                            #[inline(always)]
                            |_| {
                                let mut transformed = Tiles::ZERO;
                                for (i, row) in chunk.enumerate() {
                                    let filters = tile_at(lanes, LANES, i * taps * LANES);
                                    transform_filters::<A, TAPS, TILE>(filters, &mut transformed);
                                    let elements = transformed.0.as_flattened();
                                    part_columns.write(row - first_row, elements);
                                }
                            },
                        );
                    }
                }
            });
        });
    }

    /// Copies the taps of the filters in the rows `rows` and in [`LANES`] columns from `first` on to
    /// `lanes`, one row after another. The taps of missing columns become zeros.
    fn copy_to_lanes(
        &self,
        filters: &[f32],
        taps: usize,
        rows: Range<usize>,
        first: usize,
        lanes: &mut [Lanes],
    ) {
        let count = LANES.min(self.columns.count - first);
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
