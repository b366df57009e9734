//! Products of 16-bit elements: operands are widened as they are packed, sums kept in `f32`.
//!
//! A block of `C` is summed over the whole of k, then rounded once. Small products read matrices
//! that were widened before; large ones are summed by AMX, where there is one.

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
use crate::host::blas::x86::amx;
use crate::{
    element::Element,
    host::{
        blas::{
            gemm::{
                convert_op,
                dispatch::{GemmPath, SimdKernel, SimdScalar, gemm_from_pack_sources},
                output_tiles::OutputTiles,
                share,
            },
            kernel::{
                macro_kernel::PANEL_SLACK,
                packing::{PackSource, SourceBlock, StridedSource},
                unpacked,
            },
        },
        cache::scratch::with_scratch,
        simd::vector::SimdVector,
        threads::Workers,
    },
    op::{Gemm, Transpose},
};
use bytemuck::{cast_slice, cast_slice_mut};
use std::ops::Range;

/// Rows of a block of `C`: an element of `B` is packed once for so many products.
const MC: usize = 768;

/// Columns of a block of `C`: so many for an element of `A`.
const NC: usize = 1024;

/// The depth at which sums of small products are cut.
const KC: usize = 256;

/// `C ← α·op(A)·op(B) + β·C`, rounded once, of elements of type `H`, which is what `T` is;
/// `op.check` passed, and k is not 0.
pub(crate) fn product<T: Element, H: Element<Acc = f32>>(
    workers: &Workers,
    op: &Gemm<T>,
    a: &[T],
    b: &[T],
    c: &mut [T],
) {
    let (op, a, b) = (&convert_op::<T, H>(op), cast_slice::<T, H>(a), cast_slice::<T, H>(b));
    let c = OutputTiles::new(cast_slice_mut::<T, H>(c), op.ldc);
    // Chosen for the whole: its parts have the same bits.
    let way = HalfPath::of(op);
    share(workers, op, |part, row, column| {
        for i in (0..part.m).step_by(MC) {
            for j in (0..part.n).step_by(NC) {
                let rows = row + i..row + part.m.min(i + MC);
                let columns = column + j..column + part.n.min(j + NC);
                let block = HalfBlock { op, a, b, rows, columns };
                block.sum(way, |column, columns, width, sums| {
                    let (alpha, beta) = (op.alpha, op.beta);
                    let c = c.at(block.rows.start, block.columns.start + column);
                    let job = WriteBack { alpha, beta, sums, width, columns, c, ldc: op.ldc };
                    // SAFETY: `c` has all of this block, and no other has a part of it.
                    #[allow(unsafe_code)]
                    unsafe {
                        f32::dispatch(job);
                    }
                });
            }
        }
    });
}

/// How blocks are summed.
#[derive(Clone, Copy)]
enum HalfPath {
    Unpacked,
    Packed,
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    Amx,
}

impl HalfPath {
    /// The fastest for `op`, as measured.
    fn of<H: Element<Acc = f32>>(op: &Gemm<H>) -> Self {
        #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
        if amx::is_profitable(op) {
            return Self::Amx;
        }
        if unpacked::unpacked_is_faster(&convert_op::<H, f32>(op)) {
            Self::Unpacked
        } else {
            Self::Packed
        }
    }
}

/// A block of rows and columns of `op(A)·op(B)`.
pub(crate) struct HalfBlock<'a, H: Element> {
    pub(crate) op: &'a Gemm<H>,
    pub(crate) a: &'a [H],
    pub(crate) b: &'a [H],
    pub(crate) rows: Range<usize>,
    pub(crate) columns: Range<usize>,
}

impl<H: Element<Acc = f32>> HalfBlock<'_, H> {
    /// Calls `finish(column, columns, width, sums)` for all sums of so many columns from there on,
    /// in rows of `width`.
    fn sum(&self, way: HalfPath, mut finish: impl FnMut(usize, usize, usize, &[f32])) {
        let n = self.columns.len();
        #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
        if let HalfPath::Amx = way {
            let mut widened = Vec::new();
            return amx::accumulate_block(self, |column, sums| {
                if amx::bf16_terms::<H>() > 1 && !amx::are_finite(sums) {
                    self.patch_nonfinite(column, sums, &mut widened);
                }
                finish(column, amx::BLOCK_ROWS.min(n - column), amx::BLOCK_ROWS, sums);
            });
        }
        with_scratch(self.rows.len() * n, |sums: &mut [f32]| {
            match way {
                HalfPath::Unpacked => self.small(sums),
                _ => self.packed(sums),
            }
            finish(0, n, n, sums);
        });
    }

    /// Replaces those sums of a pair of tiles' columns that are not finite, by what `widened` holds
    /// or, if it is empty, is to hold: all sums of the block by the other way.
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    fn patch_nonfinite(&self, column: usize, sums: &mut [f32], widened: &mut Vec<f32>) {
        let (m, n) = (self.rows.len(), self.columns.len());
        if widened.is_empty() {
            widened.resize(m * n, 0.0);
            self.packed(widened);
        }
        for (sums, widened) in sums.chunks_exact_mut(amx::BLOCK_ROWS).zip(widened.chunks_exact(n)) {
            for (sum, &widened) in sums.iter_mut().zip(&widened[column..]) {
                if !sum.is_finite() {
                    *sum = widened;
                }
            }
        }
    }

    /// By panels that hold widened elements.
    fn packed(&self, sums: &mut [f32]) {
        let (op, m, n) = (self.op, self.rows.len(), self.columns.len());
        let rows = StridedSource::rows(op.trans_a, self.a, op.lda);
        let columns = StridedSource::columns(op.trans_b, self.b, op.ldb);
        let rows = SourceBlock { lines: &rows, first: self.rows.start };
        let columns = SourceBlock { lines: &columns, first: self.columns.start };
        gemm_from_pack_sources([m, n, op.k], &rows, &columns, sums);
    }

    /// By matrices of widened elements, stored as operands are.
    fn small(&self, sums: &mut [f32]) {
        let (op, m, n) = (self.op, self.rows.len(), self.columns.len());
        let deepest = KC.min(op.k);
        with_scratch((m + PANEL_SLACK) * (deepest + PANEL_SLACK), |a: &mut [f32]| {
            with_scratch((deepest + PANEL_SLACK) * (n + PANEL_SLACK), |b: &mut [f32]| {
                for start in (0..op.k).step_by(KC) {
                    let terms = start..op.k.min(start + KC);
                    let k = terms.len();
                    matrix(op.trans_a, self.a, op.lda, [&self.rows, &terms], a);
                    matrix(op.trans_b, self.b, op.ldb, [&terms, &self.columns], b);
                    let part = Gemm::<f32>::with_transpose(op.trans_a, op.trans_b, m, n, k);
                    let part = part.beta(if start == 0 { 0.0 } else { 1.0 });
                    // SAFETY: the matrices are packed, and as `sums` they have the extents of
                    // `part`.
                    #[allow(unsafe_code)]
                    unsafe {
                        GemmPath::Unpacked.run(&part, &a[..m * k], &b[..k * n], sums.as_mut_ptr());
                    }
                }
            });
        });
    }
}

/// Widens a block of `op(X)` into a packed matrix stored as `X` is.
fn matrix<H: Element<Acc = f32>>(
    trans: Transpose,
    x: &[H],
    ld: usize,
    [rows, columns]: [&Range<usize>; 2],
    to: &mut [f32],
) {
    let (rows, columns) = if trans == Transpose::No { (rows, columns) } else { (columns, rows) };
    // A single panel of columns is a matrix by rows.
    StridedSource::columns(Transpose::No, x, ld).pack(
        columns.clone(),
        rows.clone(),
        columns.len(),
        to,
    );
}

/// `C ← α·sums + β·C`, rounded, of the first `columns` of `sums`, which are rows of `width`.
struct WriteBack<'a, H> {
    alpha: f32,
    beta: f32,
    sums: &'a [f32],
    width: usize,
    columns: usize,
    c: *mut H,
    ldc: usize,
}

#[allow(unsafe_code)]
impl<H: Element<Acc = f32>> SimdKernel<f32> for WriteBack<'_, H> {
    #[inline(always)]
    unsafe fn run<L: SimdVector<Scalar = f32>>(self) {
        // SAFETY: the caller's: `c` is exclusive and has as many rows and columns as the sums.
        unsafe {
            let (alpha, beta) = (L::splat(self.alpha), L::splat(self.beta));
            for (row, sums) in self.sums.chunks_exact(self.width).enumerate() {
                for column in (0..self.columns).step_by(L::WIDTH) {
                    let count = L::WIDTH.min(self.columns - column);
                    let c = self.c.add(row * self.ldc + column);
                    let mut value = alpha.mul(L::load_first(sums.as_ptr().add(column), count));
                    if self.beta != 0.0 {
                        value = beta.mul_add(L::load_as(c, count), value);
                    }
                    value.store_as(c, count);
                }
            }
        }
    }
}
