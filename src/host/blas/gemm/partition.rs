//! Division of a GEMM among threads.

#[cfg(test)]
use crate::host::threads::simulation;
use crate::{
    element::Element,
    host::threads::Workers,
    op::{Gemm, Transpose},
};

/// Returns the number of floating-point operations in a GEMM below which one thread is faster than
/// several threads.
pub(crate) fn parallel_min_flops<T>() -> u64 {
    if size_of::<T>() == size_of::<f64>() { 2_000_000 } else { 3_000_000 }
}

/// Granularity, in rows and columns, of the parts: a multiple of the tile size of `matrixmultiply`,
/// so that no tile is split between threads.
const PARTITION_UNIT: usize = 16;

/// Estimated time to pack one element of an operand, in multiply-adds. Each part packs its own rows
/// of `A` and its own columns of `B`. Only the division into parts depends on this estimate.
pub(crate) const PACK_COST: usize = 8;

/// Calls `body(part, row, column)` for each part of a GEMM. `part` is the GEMM for a range of rows
/// and a range of columns of `C`. The first element of the part of `C` is at `row` and `column`.
pub(crate) fn for_each_part<T: Element>(
    workers: &Workers,
    op: &Gemm<T>,
    body: impl Fn(&Gemm<T>, usize, usize) + Sync,
) {
    #[cfg(test)]
    if let Some(gemm) = simulation::start_gemm() {
        return run_parts(workers, op, &|part, row, column| {
            let (m, n, size) = (part.m as u64, part.n as u64, size_of::<T>() as u64);
            let (row, column) = (row as u64, column as u64 * size);
            let (rows, columns) = (row..row + m, column..column + n * size);
            simulation::record_gemm_part(gemm, part.flops(), rows, columns, op.ldc as u64 * size);
        });
    }
    run_parts(workers, op, &body);
}

fn run_parts<T: Element>(
    workers: &Workers,
    op: &Gemm<T>,
    body: &(dyn Fn(&Gemm<T>, usize, usize) + Sync),
) {
    let [rows, columns] = part_size(op, max_parts::<T>(workers.count(), op.flops()));
    if (rows, columns) == (op.m, op.n) {
        return body(op, 0, 0);
    }
    let column_parts = op.n.div_ceil(columns);
    workers.run(op.m.div_ceil(rows) * column_parts, |i| {
        let (row, column) = (i / column_parts * rows, i % column_parts * columns);
        let (m, n) = (rows.min(op.m - row), columns.min(op.n - column));
        body(&Gemm { m, n, ..*op }, row, column);
    });
}

/// Returns the largest number of parts into which `threads` threads divide a GEMM of `flops`
/// floating-point operations: each part has at least half of [`parallel_min_flops`].
pub(crate) fn max_parts<T>(threads: usize, flops: u64) -> usize {
    let parts = flops / (parallel_min_flops::<T>() / 2);
    usize::try_from(parts).unwrap_or(usize::MAX).clamp(1, threads)
}

/// Returns the number of rows and columns of `C` in each part, for at most `max_parts` parts. The
/// last part along m and along n may be smaller.
///
/// Of all divisions into a grid of ranges of rows and ranges of columns, the function chooses the
/// one whose parts have the shortest estimated time. For one step along k, the estimate is the
/// number of multiply-adds of a part, plus [`PACK_COST`] for each element that the part packs. On
/// many threads, parts with few rows or few columns would pack too many elements for their number
/// of multiply-adds.
fn part_size<T: Element>(op: &Gemm<T>, max_parts: usize) -> [usize; 2] {
    let range_len = |extent: usize, ranges: usize| match ranges {
        1 => extent,
        _ => extent.div_ceil(ranges).next_multiple_of(PARTITION_UNIT).min(extent),
    };
    let sizes = (1..=max_parts).rev().map(|row_ranges| {
        let mut rows = range_len(op.m, row_ranges);
        // Avoid a last range of one row, for which the thread would use the GEMV kernels, which sum
        // in a different order.
        while rows > 1 && op.m % rows == 1 {
            rows = (rows + PARTITION_UNIT).min(op.m);
        }
        [rows, range_len(op.n, max_parts / row_ranges)]
    });
    let time = |&[rows, columns]: &[usize; 2]| {
        rows.saturating_mul(columns).saturating_add(PACK_COST * (rows + columns))
    };
    // If two divisions take equally long, `min_by_key` chooses the one with more ranges of rows.
    sizes.min_by_key(time).unwrap_or([op.m, op.n])
}

/// Returns the offset in `A` of row `row` of `op(A)`.
pub(crate) fn a_offset<T: Element>(op: &Gemm<T>, row: usize) -> usize {
    if op.trans_a == Transpose::No { row * op.lda } else { row }
}

/// Returns the offset in `B` of column `column` of `op(B)`.
pub(crate) fn b_offset<T: Element>(op: &Gemm<T>, column: usize) -> usize {
    if op.trans_b == Transpose::No { column } else { column * op.ldb }
}
