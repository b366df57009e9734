//! Transforms of filters.

use crate::{
    error::Result,
    host::{
        cache::scratch::with_scratch,
        nn::convolution::{
            schedule::task_workers,
            winograd::{
                Winograd,
                panels::Panels,
                transform::{Axis, Tiles, transform_filters},
            },
        },
        simd::{lanes::LANES, vectorized},
        threads::Workers,
    },
};

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
    pub(crate) fn panels(&self) -> Panels {
        Panels::of_right_operands(self.rows.count, self.columns.count)
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

    /// Calls `body` with the transformed filters, each group of which is `matrix`.
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
        let group_len = self.tile_len() * matrix.panels().stride();
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
        let (rows, columns, taps) = (&self.rows, &self.columns, TAPS * TAPS);
        let rows_per_task = rows.count.div_ceil(workers.count());
        let mut parts = self.panels().split_rows(u, rows_per_task);
        workers.for_each_chunk(&mut parts, 1, |task, parts| {
            let first_row = task * rows_per_task;
            let task_rows = first_row..rows.count.min(first_row + rows_per_task);
            let part = &mut parts[0];
            vectorized(
                #[inline(always)]
                |_| {
                    let mut transformed = Tiles::ZERO;
                    for first in (0..columns.count).step_by(LANES) {
                        let count = LANES.min(columns.count - first);
                        let mut part_columns = part.columns(first);
                        // The lanes of missing columns stay zero.
                        let mut lanes = Tiles::<TAPS, TAPS>::ZERO;
                        for row in task_rows.clone() {
                            for lane in 0..count {
                                let filter = row * rows.stride + (first + lane) * columns.stride;
                                let filter = &filters[filter * taps..][..taps];
                                let lanes = lanes.0.as_flattened_mut().iter_mut();
                                lanes.zip(filter).for_each(|(lanes, &tap)| lanes[lane] = tap);
                            }
                            transform_filters::<A, TAPS, TILE>(&lanes, &mut transformed);
                            part_columns.write(row - task_rows.start, transformed.0.as_flattened());
                        }
                    }
                },
            );
        });
    }
}
