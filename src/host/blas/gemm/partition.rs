//! Division of a GEMM among threads.

use crate::{
    element::Element,
    host::threads::Workers,
    op::{Gemm, Transpose},
};

/// Returns the number of floating-point operations in a GEMM below which one thread is faster than
/// several threads.
pub(crate) fn parallel_min_flops<T>() -> u64 {
    if size_of::<T>() == size_of::<f64>() { 2_000_000 } else { 4_000_000 }
}

/// Granularity, in rows or columns, of the ranges that the threads compute: a multiple of the tile
/// size of `matrixmultiply`, so that no tile is split between threads.
const PARTITION_UNIT: usize = 16;

/// Calls `body(part, row, column)` once per thread. `part` is the GEMM for a range of rows of `C`,
/// or of columns if `C` has more columns than rows. The first element of the part of `C` is at
/// `row` and `column`.
pub(crate) fn for_each_part<T: Element>(
    workers: &Workers,
    op: &Gemm<T>,
    body: impl Fn(&Gemm<T>, usize, usize) + Sync,
) {
    let parts = if op.flops() < parallel_min_flops::<T>() { 1 } else { workers.count() };
    if parts == 1 {
        return body(op, 0, 0);
    }
    let (by_rows, extent) = (op.m >= op.n, op.m.max(op.n));
    let mut range_len = extent.div_ceil(parts).next_multiple_of(PARTITION_UNIT);
    // Avoid a last range of one row, for which the thread would use the GEMV kernels, which sum in
    // a different order.
    while by_rows && extent % range_len == 1 {
        range_len += PARTITION_UNIT;
    }
    workers.run(extent.div_ceil(range_len), |i| {
        let (start, len) = (i * range_len, range_len.min(extent - i * range_len));
        let (row, column) = if by_rows { (start, 0) } else { (0, start) };
        let (m, n) = if by_rows { (len, op.n) } else { (op.m, len) };
        body(&Gemm { m, n, ..*op }, row, column);
    });
}

/// Returns the offset in `A` of row `row` of `op(A)`.
pub(crate) fn a_offset<T: Element>(op: &Gemm<T>, row: usize) -> usize {
    if op.trans_a == Transpose::No { row * op.lda } else { row }
}

/// Returns the offset in `B` of column `column` of `op(B)`.
pub(crate) fn b_offset<T: Element>(op: &Gemm<T>, column: usize) -> usize {
    if op.trans_b == Transpose::No { column } else { column * op.ldb }
}
