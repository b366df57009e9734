//! GEMM of 16-bit elements, which accumulates in `f32` and rounds each element of `C` once.
//!
//! Large GEMMs use AMX or `vdpbf16ps`, if the processor has one of them and it is faster than `f32`
//! arithmetic. Otherwise, large GEMMs widen the operands to `f32` while packing them. Small GEMMs
//! multiply unpacked, widened copies of the operands.

use crate::cast::{cast_slice, cast_slice_mut};
#[cfg(target_arch = "x86_64")]
use crate::host::blas::{
    kernel::blocking::kc,
    x86::{
        bf16_tile::{BLOCK_ROWS, bf16_terms},
        bf16_unit::{Bf16Unit, are_finite},
    },
};
use crate::{
    element::Element,
    host::{
        blas::{
            gemm::{
                dispatch::{GemmPath, gemm_from_pack_sources, gemm_with_pack_source},
                output_tiles::OutputTiles,
                partition::for_each_part,
            },
            kernel::{
                args::convert_op,
                blocking::panel_len,
                half_block::HalfBlock,
                packing::{SourceBlock, StridedSource},
                unpacked::unpacked_is_faster,
            },
        },
        cache::{
            cache_line::{CACHE_LINE, L1_ALIAS_BYTES},
            scratch::with_scratch,
        },
        simd::{
            dispatch::{SimdKernel, SimdScalar},
            vector::SimdVector,
        },
        threads::Workers,
    },
    op::{Gemm, Transpose},
};
use std::ops::Range;

/// MC: number of rows in a block of `C`. A packed element of `B` is used in up to MC
/// multiplications.
const MC: usize = 768;

/// NC: number of columns in a block of `C`. A packed element of `A` is used in up to NC
/// multiplications.
const NC: usize = 1024;

/// KC of the unpacked path: the number of steps along k whose elements are widened at a time.
const KC: usize = 256;

/// Largest number of elements of `A` for which a packed GEMM widens all of `A` and then reads the
/// widened copy in place. The copy takes at most a quarter of a 1 MiB L2 cache. Widening by copying
/// is faster than transposing widened rows into panels.
const WIDENED_A_MAX_LEN: usize = 1 << 16;

/// Computes `C ← α·op(A)·op(B) + β·C` and rounds each element of `C` once. `H` and `T` must be the
/// same 16-bit type. The caller has checked `op`, and `op.k` is not 0.
pub(crate) fn gemm_half<T: Element, H: Element<Acc = f32>>(
    workers: &Workers,
    op: &Gemm<T>,
    a: &[T],
    b: &[T],
    c: &mut [T],
) {
    let (op, a, b) = (&convert_op::<T, H>(op), cast_slice::<T, H>(a), cast_slice::<T, H>(b));
    let c = OutputTiles::new(cast_slice_mut::<T, H>(c), op.ldc);
    let path = HalfPath::choose(op);
    for_each_part(workers, op, |part, row, column| {
        for i in (0..part.m).step_by(MC) {
            for j in (0..part.n).step_by(NC) {
                let rows = row + i..row + part.m.min(i + MC);
                let columns = column + j..column + part.n.min(j + NC);
                let block = HalfBlock { op, a, b, rows, columns };
                compute_block(&block, path, |column, columns, ld, sums| {
                    let (alpha, beta, ldc) = (op.alpha, op.beta, op.ldc);
                    let c = c.at(block.rows.start, block.columns.start + column);
                    // SAFETY: `op.check` passed, so `c` holds the block. No two blocks share
                    // elements of `c`.
                    unsafe {
                        f32::dispatch(WriteBack { alpha, beta, sums, ld, columns, c, ldc });
                    }
                });
            }
        }
    });
}

/// Code path that computes the `f32` sums of a block of `C`. All blocks of one GEMM take the same
/// code path.
#[derive(Clone, Copy)]
enum HalfPath {
    /// Unpacked path: the operands are widened into matrices, which [`GemmPath::Unpacked`]
    /// multiplies.
    Unpacked,
    /// Packed path: packing widens the operands into panels.
    Packed,
    /// Path that packs the operands into tiles, which `unit` multiplies. `kc` is KC of the path
    /// that `unit` replaces.
    #[cfg(target_arch = "x86_64")]
    Bf16 { unit: Bf16Unit, kc: usize },
}

impl HalfPath {
    /// Returns the code path that was fastest in measurements of GEMMs with shapes similar to that
    /// of `op`.
    fn choose<H: Element<Acc = f32>>(op: &Gemm<H>) -> Self {
        let is_unpacked = unpacked_is_faster(&convert_op::<H, f32>(op));
        #[cfg(target_arch = "x86_64")]
        if let Some(unit) = Bf16Unit::choose(op) {
            // The dot kernel of the unpacked path adds products in lanes, and not in the order of
            // k, so `vdpbf16ps` cannot give bit-identical results.
            let adds_in_lanes =
                is_unpacked && (op.trans_a, op.trans_b) == (Transpose::No, Transpose::Yes);
            if !(adds_in_lanes && unit == Bf16Unit::Vdpbf16ps) {
                let kc = if is_unpacked { KC } else { kc::<f32>(op.k) };
                return Self::Bf16 { unit, kc };
            }
        }
        if is_unpacked { Self::Unpacked } else { Self::Packed }
    }
}

/// Computes the `f32` sums of `block`, one range of columns at a time. For each range, calls the
/// closure `finish(column, columns, ld, sums)`: the range has `columns` columns from column
/// `column` on. Rows of `sums` are `ld` elements apart.
fn compute_block<H: Element<Acc = f32>>(
    block: &HalfBlock<'_, H>,
    path: HalfPath,
    mut finish: impl FnMut(usize, usize, usize, &[f32]),
) {
    let n = block.columns.len();
    if let HalfPath::Unpacked = path {
        return sum_unpacked(block, finish);
    }
    #[cfg(target_arch = "x86_64")]
    if let HalfPath::Bf16 { unit, kc } = path {
        let mut widened_sums = Vec::new();
        return unit.accumulate_block(block, kc, |column, sums| {
            if bf16_terms::<H>() > 1 && !are_finite(sums) {
                patch_nonfinite(block, column, sums, &mut widened_sums);
            }
            finish(column, BLOCK_ROWS.min(n - column), BLOCK_ROWS, sums);
        });
    }
    with_scratch(block.rows.len() * n, |sums: &mut [f32]| {
        sum_packed(block, sums);
        finish(0, n, n, sums);
    });
}

/// Replaces non-finite AMX sums in the [`BLOCK_ROWS`] columns from `column` on with sums of widened
/// elements. If `widened_sums` is empty, first fills `widened_sums` with the sums of the whole
/// block.
#[cfg(target_arch = "x86_64")]
fn patch_nonfinite<H: Element<Acc = f32>>(
    block: &HalfBlock<'_, H>,
    column: usize,
    sums: &mut [f32],
    widened_sums: &mut Vec<f32>,
) {
    let (m, n) = (block.rows.len(), block.columns.len());
    if widened_sums.is_empty() {
        widened_sums.resize(m * n, 0.0);
        sum_packed(block, widened_sums);
    }
    for (sums, widened) in sums.chunks_exact_mut(BLOCK_ROWS).zip(widened_sums.chunks_exact(n)) {
        for (sum, &widened) in sums.iter_mut().zip(&widened[column..]) {
            if !sum.is_finite() {
                *sum = widened;
            }
        }
    }
}

/// Computes the dot products for a block of `C` from packed panels of widened elements. If the
/// macro-kernel would read an `f32` matrix of the shape of `A` in place, a widened copy of `A`
/// replaces the panels of `A`.
fn sum_packed<H: Element<Acc = f32>>(block: &HalfBlock<'_, H>, sums: &mut [f32]) {
    let (op, m, n, k) = (block.op, block.rows.len(), block.columns.len(), block.op.k);
    let b = StridedSource::for_b(op.trans_b, block.b, op.ldb);
    let b = SourceBlock { source: &b, first: block.columns.start };
    let has_aliased_rows = (k * size_of::<f32>()).is_multiple_of(L1_ALIAS_BYTES);
    if op.trans_a == Transpose::No && m * k <= WIDENED_A_MAX_LEN && !has_aliased_rows {
        return with_scratch(panel_len(k, m, k), |a: &mut [f32]| {
            widen_matrix(op.trans_a, block.a, op.lda, [&block.rows, &(0..k)], a);
            // SAFETY: `a` has m rows of k elements, and `sums` has m·n elements and is borrowed
            // exclusively.
            unsafe {
                gemm_with_pack_source(&Gemm::new(m, n, k), a, &b, None, sums.as_mut_ptr());
            }
        });
    }
    let a = StridedSource::for_a(op.trans_a, block.a, op.lda);
    let a = SourceBlock { source: &a, first: block.rows.start };
    gemm_from_pack_sources([m, n, k], &a, &b, sums);
}

/// Computes the dot products for a block of `C` from widened copies of `A` and `B`, which keep the
/// storage order of the operands, and calls `finish` like [`compute_block`].
fn sum_unpacked<H: Element<Acc = f32>>(
    block: &HalfBlock<'_, H>,
    mut finish: impl FnMut(usize, usize, usize, &[f32]),
) {
    let (op, m, n) = (block.op, block.rows.len(), block.columns.len());
    let kc = KC.min(op.k);
    // One scratch buffer for all three matrices, because taking a scratch buffer takes a noticeable
    // share of the time of a 32×32×32 GEMM. Each matrix starts at a cache-line boundary.
    let [a_len, b_len] =
        [m * kc, kc * n].map(|len| len.next_multiple_of(CACHE_LINE / size_of::<f32>()));
    with_scratch(a_len + b_len + m * n, |buffer: &mut [f32]| {
        let (a, buffer) = buffer.split_at_mut(a_len);
        let (b, sums) = buffer.split_at_mut(b_len);
        for start in (0..op.k).step_by(KC) {
            let steps = start..op.k.min(start + KC);
            let k = steps.len();
            widen_matrix(op.trans_a, block.a, op.lda, [&block.rows, &steps], a);
            widen_matrix(op.trans_b, block.b, op.ldb, [&steps, &block.columns], b);
            let part = Gemm::<f32>::new(m, n, k).transpose(op.trans_a, op.trans_b);
            let part = part.beta(if start == 0 { 0.0 } else { 1.0 });
            // SAFETY: the widened matrices and `sums` have the extents of `part`, and `sums` is
            // borrowed exclusively.
            unsafe {
                GemmPath::Unpacked.run(&part, &a[..m * k], &b[..k * n], sums.as_mut_ptr());
            }
        }
        finish(0, n, n, sums);
    });
}

/// Widens a block of `op(X)` into a dense matrix with the storage order of `X`.
fn widen_matrix<H: Element<Acc = f32>>(
    trans: Transpose,
    x: &[H],
    ld: usize,
    [rows, columns]: [&Range<usize>; 2],
    matrix: &mut [f32],
) {
    let (rows, columns) = if trans == Transpose::No { (rows, columns) } else { (columns, rows) };
    let (first, len) = (rows.start * ld + columns.start, columns.len());
    let x = &x[first..first + (rows.len() - 1) * ld + len];
    let matrix = &mut matrix[..rows.len() * len];
    // Contiguous rows are widened as one row.
    let (len, ld) = if ld == len { (matrix.len(), matrix.len()) } else { (len, ld) };
    // SAFETY: `x` ends with the last row of the block, and `matrix` has `len` elements for each row.
    unsafe { f32::dispatch(Widen { x, ld, len, matrix }) };
}

/// Kernel that copies rows of `len` elements, `ld` elements apart in `x`, into the dense matrix
/// `matrix`, and widens the elements.
///
/// [`SimdKernel::run`] is safe if `x` holds all rows.
struct Widen<'a, H> {
    x: &'a [H],
    ld: usize,
    len: usize,
    matrix: &'a mut [f32],
}

impl<H: Element<Acc = f32>> SimdKernel<f32> for Widen<'_, H> {
    #[inline(always)]
    unsafe fn run<V: SimdVector<Scalar = f32>>(self) {
        let Self { x, ld, len, matrix } = self;
        let whole = len / V::WIDTH * V::WIDTH;
        for (i, row) in matrix.chunks_exact_mut(len).enumerate() {
            let (x, row) = (x.as_ptr().wrapping_add(i * ld), row.as_mut_ptr());
            // SAFETY: the caller guarantees that `x` holds all rows, and `row` has `len` elements. All
            // accesses end before element `len`.
            unsafe {
                // A constant count lets the compiler omit the masks of whole vectors.
                for column in (0..whole).step_by(V::WIDTH) {
                    V::load_as(x.add(column), V::WIDTH).store(row.add(column));
                }
                if whole > 0 && whole < len {
                    // The last vector overlaps the previous one, because masks take more time.
                    let column = len - V::WIDTH;
                    V::load_as(x.add(column), V::WIDTH).store(row.add(column));
                } else if whole < len {
                    V::load_as(x, len).store_first(row, len);
                }
            }
        }
    }
}

/// Kernel that computes `C ← α·sums + β·C` for the first `columns` columns of `sums`, and rounds
/// the results to 16 bits.
///
/// [`SimdKernel::run`] is safe if `c` is valid for reads and writes of as many rows as `sums` has,
/// each with `columns` columns, and no other thread accesses `c`. `c` is not read if β is 0.
struct WriteBack<'a, H> {
    alpha: f32,
    beta: f32,
    sums: &'a [f32],
    ld: usize,
    columns: usize,
    c: *mut H,
    ldc: usize,
}

impl<H: Element<Acc = f32>> SimdKernel<f32> for WriteBack<'_, H> {
    #[inline(always)]
    unsafe fn run<V: SimdVector<Scalar = f32>>(self) {
        // SAFETY: accesses end at `columns`, which is at most `ld`, so loads stay within `sums`. If
        // all rows are written as one, the rows of `c` are contiguous, too. Otherwise, stores stay
        // within a row of `c`. The caller guarantees that `c` is valid.
        unsafe {
            let scalars = (self.alpha, self.beta);
            // Contiguous rows are written as one row.
            let is_contiguous = self.columns == self.ld && self.columns == self.ldc;
            let columns = if is_contiguous { self.sums.len() } else { self.columns };
            let ld = if is_contiguous { columns } else { self.ld };
            let whole = columns / V::WIDTH * V::WIDTH;
            for (row, sums) in self.sums.chunks_exact(ld).enumerate() {
                let (sums, c) = (sums.as_ptr(), self.c.add(row * self.ldc));
                // A constant count lets the compiler omit the masks of whole vectors.
                for column in (0..whole).step_by(V::WIDTH) {
                    write_vector::<V, H>(scalars, sums.add(column), c.add(column), V::WIDTH);
                }
                if whole < columns {
                    let count = columns - whole;
                    write_vector::<V, H>(scalars, sums.add(whole), c.add(whole), count);
                }
            }
        }
    }
}

/// Computes `C ← α·sums + β·C` for `count` elements, at most one vector, and rounds the results to
/// 16 bits.
///
/// # Safety
/// The processor supports the vector type `V`. `sums` is valid for reads, and `c` for reads and
/// writes, of `count` elements. `c` is not read if β is 0.
#[inline(always)]
unsafe fn write_vector<V: SimdVector<Scalar = f32>, H: Element<Acc = f32>>(
    (alpha, beta): (f32, f32),
    sums: *const f32,
    c: *mut H,
    count: usize,
) {
    // SAFETY: the caller guarantees the processor's features and the `count` elements.
    unsafe {
        let mut value = V::splat(alpha).mul(V::load_first(sums, count));
        if beta != 0.0 {
            value = V::splat(beta).mul_add(V::load_as(c, count), value);
        }
        value.store_as(c, count);
    }
}
