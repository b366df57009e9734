//! Products of 16-bit elements: panels are widened block by block, sums kept in `f32`.

use super::{SHARED, native::Kernel, tiles::Tiles};
use crate::{
    element::Element,
    error::Result,
    host::{
        scratch::with_scratch,
        simd::vectorized,
        widen::{narrow, widen},
        workers::Workers,
    },
    op::{Gemm, Transpose},
};
use bytemuck::cast_slice_mut;
use num_traits::Zero;

/// Rows of a block of `C`: an element of `B` is widened once for so many products.
const HEIGHT: usize = 256;

/// Columns of a block of `C`: so many for an element of `A`.
const WIDTH: usize = 512;

/// The depth at which sums are cut: a widened panel stays in the second-level cache until it is
/// multiplied.
const DEPTH: usize = 256;

/// `C ← α·op(A)·op(B) + β·C`, rounded once; k is not 0.
pub(super) fn product<T: Element>(
    workers: &Workers,
    op: &Gemm<T>,
    a: &[T],
    b: &[T],
    c: &mut [T],
) -> Result<()> {
    op.check(a.len(), b.len(), c.len())?;
    let tiles = Tiles::new(c, op.ldc);
    let across = op.n.div_ceil(WIDTH);
    let blocks = op.m.div_ceil(HEIGHT) * across;
    let alone = Workers::sequential();
    let workers = if op.flops() < SHARED { &alone } else { workers };
    workers.run(blocks, |i| {
        let (row, column) = (i / across * HEIGHT, i % across * WIDTH);
        let (m, n) = (HEIGHT.min(op.m - row), WIDTH.min(op.n - column));
        with_scratch(m * n, |sums: &mut [f32]| {
            block(op, (row, m), (column, n), a, b, sums);
            let sums = cast_slice_mut::<f32, T::Acc>(sums);
            for i in 0..m {
                // SAFETY: blocks of `c` do not overlap and each is one task's.
                #[allow(unsafe_code)]
                let c = unsafe { tiles.row(row + i, column..column + n) };
                finish(op, &mut sums[i * n..][..n], c);
            }
        });
    });
    Ok(())
}

/// `sums(m×n) ← op(A)·op(B)` for a block of rows and columns.
fn block<T: Element>(
    op: &Gemm<T>,
    (row, m): (usize, usize),
    (column, n): (usize, usize),
    a: &[T],
    b: &[T],
    sums: &mut [f32],
) {
    let deepest = DEPTH.min(op.k);
    with_scratch::<f32, _>(m * deepest, |panel_a| {
        with_scratch::<f32, _>(deepest * n, |panel_b| {
            for start in (0..op.k).step_by(DEPTH) {
                let k = DEPTH.min(op.k - start);
                panel(op.trans_a, a, op.lda, (row, m), (start, k), panel_a);
                panel(op.trans_b, b, op.ldb, (start, k), (column, n), panel_b);
                let part = Gemm::<f32>::with(op.trans_a, op.trans_b, m, n, k);
                let beta = if start == 0 { 0.0 } else { 1.0 };
                let (panel_a, panel_b) = (&panel_a[..m * k], &panel_b[..k * n]);
                // SAFETY: `part` is packed, and the three slices have just its extents; `sums` is
                // borrowed exclusively.
                #[allow(unsafe_code)]
                unsafe {
                    let part = part.beta(beta);
                    Kernel::of(&part).run(&part, panel_a, panel_b, sums.as_mut_ptr());
                }
            }
        });
    });
}

/// Widens a block of `op(X)` into a packed matrix stored as `X` is.
fn panel<T: Element>(
    trans: Transpose,
    x: &[T],
    ld: usize,
    rows: (usize, usize),
    columns: (usize, usize),
    panel: &mut [f32],
) {
    let (rows, columns) = if trans == Transpose::No { (rows, columns) } else { (columns, rows) };
    for (i, panel) in panel.chunks_exact_mut(columns.1).take(rows.1).enumerate() {
        widen(&x[(rows.0 + i) * ld + columns.0..][..columns.1], cast_slice_mut(panel));
    }
}

/// `c ← α·sums + β·c`.
fn finish<T: Element>(op: &Gemm<T>, sums: &mut [T::Acc], c: &mut [T]) {
    let (alpha, beta) = (op.alpha, op.beta);
    vectorized(
        #[inline(always)]
        || sums.iter_mut().for_each(|sum| *sum = alpha * *sum),
    );
    if !beta.is_zero() {
        let mut room = [T::Acc::zero(); WIDTH];
        let old = &mut room[..c.len()];
        widen(c, old);
        vectorized(
            #[inline(always)]
            || sums.iter_mut().zip(old).for_each(|(sum, old)| *sum = *sum + beta * *old),
        );
    }
    narrow(sums, c);
}
