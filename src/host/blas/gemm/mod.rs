//! GEMM: choice of a kernel, and division of `C` among threads.
//!
//! ```text
//! gemm, gemm_batched, gemm_adding_bias mod.rs         check operands; scal if α = 0 or k = 0,
//!   │                                                 gemv if C is one row or column
//!   ▼
//! GemmPath::choose, HalfPath::choose   dispatch.rs,   one path for the whole GEMM
//!   │                                  half.rs
//!   ▼
//! for_each_part                        partition.rs   a grid of parts of C, for the threads
//!   │
//!   ├─► Unpacked   read A and B in place ──► micro-kernel or dot kernel      kernel::unpacked
//!   ├─► DotOfCopy  transpose the smaller operand ──► dot kernel              kernel::unpacked
//!   ├─► Streamed   read A and a few rows of B at a time ──► micro-kernel     kernel::unpacked
//!   ├─► Packed     pack A and B into panels ──► micro-kernel                 kernel::macro_kernel
//!   └─► Bf16       pack A and B into tiles ──► AMX or vdpbf16ps ──► round    x86::bf16_unit
//! ```
//!
//! - `Unpacked` computes GEMMs with a small `B`, or with few rows of `A` and a transposed `B`.
//! - `DotOfCopy` computes GEMMs with a large k and few rows or columns, for which the dot kernel and
//!   a transposition together take less time than the micro-kernel.
//! - `Streamed` computes GEMMs with few rows of `A` and a large, untransposed `B`.
//! - `Packed` computes all GEMMs for which no other code path is faster. On a processor without FMA,
//!   `matrixmultiply` replaces the macro-kernel, unless a `SimdLimit` requires portable code.
//! - `Bf16` computes large GEMMs of 16-bit elements. `Unpacked` and `Packed` widen 16-bit elements
//!   to `f32`. Every code path rounds each element of `C` once.
//!
//! GEMM results are bit-identical for any number of threads, because the code path depends on the
//! whole GEMM, KC depends on k alone, and an element of `C` is computed by the same operations in
//! any tile.

pub(crate) mod output_tiles;
pub(crate) mod partition;
pub(crate) mod dispatch;
pub(crate) mod half;

use crate::cast::{cast_slice, cast_slice_mut};
use crate::{
    element::{Element, bf16, f16, is_same},
    error::{Result, check_len},
    host::{
        blas::{
            gemm::{
                dispatch::{GemmPath, gemm_with_pack_source},
                half::gemm_half,
                output_tiles::OutputTiles,
                partition::{a_offset, b_offset, for_each_part, max_parts, parallel_min_flops},
            },
            gemv::gemv,
            kernel::{
                args::{BatchStrides, RawGemm, convert_op},
                indirect_packing::IndirectMatrix,
                packing::{PackSource, SourceBlock, StridedSource},
                unpacked::{UnpackedGemm, unpacked_is_faster},
            },
            level1::scal,
        },
        simd::dispatch::SimdScalar,
        threads::Workers,
    },
    op::{Gemm, GemmBatch, Transpose},
};
use num_traits::Zero;

/// Computes `C ← α·op(A)·op(B) + β·C`. `C` is not read if β = 0; `A` and `B` are not read if α = 0
/// or k = 0.
///
/// Sums of 16-bit elements are computed in `f32` and rounded once. On x86-64 processors with AMX,
/// and on AMD processors with `vdpbf16ps`, large GEMMs of `bf16` treat subnormal elements as zero
/// and flush subnormal sums to zero.
///
/// # Errors
/// Returns any error from [`Gemm::check`].
#[doc(alias = "caffe_cpu_gemm")]
pub(crate) fn gemm<T: Element>(
    workers: &Workers,
    op: &Gemm<T>,
    a: &[T],
    b: &[T],
    c: &mut [T],
) -> Result<()> {
    op.check(a.len(), b.len(), c.len())?;
    if op.m == 0 || op.n == 0 {
        return Ok(());
    }
    if op.k == 0 || op.alpha.is_zero() {
        return scale(op, c);
    }
    if let Some(op_gemv) = op.as_gemv() {
        return gemv(workers, &op_gemv, a, &b[..op.k], &mut c[..op.m]);
    }
    if let Some(op_gemv) = op.as_transposed_gemv() {
        return gemv(workers, &op_gemv, b, &a[..op.k], &mut c[..op.n]);
    }
    if const { is_same::<T, f32>() } {
        gemm_wide::<T, f32>(workers, op, a, b, c);
    } else if const { is_same::<T, f64>() } {
        gemm_wide::<T, f64>(workers, op, a, b, c);
    } else if const { is_same::<T, f16>() } {
        gemm_half::<T, f16>(workers, op, a, b, c);
    } else {
        gemm_half::<T, bf16>(workers, op, a, b, c);
    }
    Ok(())
}

/// Computes [`gemm`] for `f32` or `f64`. `S` and `T` must be the same type.
fn gemm_wide<T: Element, S: SimdScalar>(
    workers: &Workers,
    op: &Gemm<T>,
    a: &[T],
    b: &[T],
    c: &mut [T],
) {
    let path = GemmPath::choose(&convert_op::<T, S>(op));
    let c = OutputTiles::new(cast_slice_mut::<T, S>(c), op.ldc);
    for_each_part(workers, op, |part, row, column| {
        let a = &cast_slice(a)[a_offset(op, row)..];
        let b = &cast_slice(b)[b_offset(op, column)..];
        // SAFETY: `op.check` passed, so `a`, `b` and `c` hold the operands of the whole GEMM. The
        // parts of the GEMM on different threads share no elements of `c`.
        unsafe { path.run(&convert_op::<T, S>(part), a, b, c.at(row, column)) };
    });
}

/// Operand `B` of [`gemm_adding_bias`].
pub(crate) enum GemmB<'a, T> {
    /// Matrix in memory. The GEMM descriptor says whether the matrix is transposed, and gives its
    /// leading dimension.
    Matrix(&'a [T]),
    /// Matrix whose elements are addressed through tables of offsets, such as an im2col matrix. The
    /// descriptor's transpose flag and leading dimension for `B` are ignored.
    Indirect(&'a IndirectMatrix<'a, T>),
}

/// Computes a [`gemm`] of `f32` or `f64` and adds `bias[i]` to row i of `C`. An indirect `B` is always
/// packed, and a matrix unless [`reads_b_in_place`].
///
/// # Errors
/// Returns any error from [`gemm`], and [`Error::Length`](crate::Error::Length) unless `bias` has
/// one element for each row of `C`.
pub(crate) fn gemm_adding_bias<T: Element>(
    workers: &Workers,
    op: &Gemm<T>,
    a: &[T],
    b: &GemmB<T>,
    bias: Option<&[T]>,
    c: &mut [T],
) -> Result<()> {
    fn run<T: Element, S: SimdScalar>(
        workers: &Workers,
        op: &Gemm<T>,
        a: &[T],
        b: &GemmB<T>,
        bias: Option<&[T]>,
        c: &mut [T],
    ) {
        let (matrix, indirect);
        let source: &dyn PackSource<S> = match b {
            GemmB::Matrix(b) if reads_b_in_place(op, bias) => {
                return gemm_unpacked::<T, S>(workers, op, a, b, bias, c);
            }
            GemmB::Matrix(b) => {
                matrix = StridedSource::for_b(op.trans_b, cast_slice::<T, S>(b), op.ldb);
                &matrix
            }
            GemmB::Indirect(b) => {
                indirect = b.cast::<S>();
                &indirect
            }
        };
        let c = OutputTiles::new(cast_slice_mut::<T, S>(c), op.ldc);
        for_each_part(workers, op, |part, row, column| {
            let a = &cast_slice(a)[a_offset(op, row)..];
            let b = SourceBlock { source, first: column };
            let bias = bias.map(|bias| &cast_slice(bias)[row..]);
            // SAFETY: `op.check` passed and `bias` has m elements, so `a`, `bias` and `c` hold the
            // operands of this part. The parts of the GEMM on different threads share no elements
            // of `c`.
            unsafe {
                gemm_with_pack_source(&convert_op::<T, S>(part), a, &b, bias, c.at(row, column));
            }
        });
    }
    let b_len = if let GemmB::Matrix(b) = b { b.len() } else { usize::MAX };
    op.check(a.len(), b_len, c.len())?;
    if let Some(bias) = bias {
        check_len("gemm", "bias", op.m, bias.len())?;
    }
    if op.m == 0 || op.n == 0 {
        return Ok(());
    }
    if op.k == 0 || op.alpha.is_zero() {
        scale(op, c)?;
        for (row, &bias) in c.chunks_mut(op.ldc).zip(bias.unwrap_or_default()) {
            let add = |c: &mut T| *c = T::from_acc(c.to_acc() + bias.to_acc());
            row[..op.n].iter_mut().for_each(add);
        }
        return Ok(());
    }
    if const { is_same::<T, f64>() } {
        run::<T, f64>(workers, op, a, b, bias, c);
    } else {
        run::<T, f32>(workers, op, a, b, bias, c);
    }
    Ok(())
}

/// Returns whether [`gemm_adding_bias`] reads a matrix `B` in place. The dot kernel adds no bias, and
/// two transposed operands require a copy of `B`.
pub(crate) fn reads_b_in_place<T: Element>(op: &Gemm<T>, bias: Option<&[T]>) -> bool {
    let is_supported = match (op.trans_a, op.trans_b) {
        (_, Transpose::No) => true,
        (Transpose::No, Transpose::Yes) => bias.is_none(),
        (Transpose::Yes, Transpose::Yes) => false,
    };
    is_supported && unpacked_is_faster(op)
}

/// Computes [`gemm_adding_bias`] with kernels that read `a` and `b` in place. The lengths of `a`, `b`,
/// `bias` and `c` must have been checked, and [`reads_b_in_place`] returns true.
fn gemm_unpacked<T: Element, S: SimdScalar>(
    workers: &Workers,
    op: &Gemm<T>,
    a: &[T],
    b: &[T],
    bias: Option<&[T]>,
    c: &mut [T],
) {
    let c = OutputTiles::new(cast_slice_mut::<T, S>(c), op.ldc);
    for_each_part(workers, op, |part, row, column| {
        let a = &cast_slice(a)[a_offset(op, row)..];
        let b = &cast_slice(b)[b_offset(op, column)..];
        let bias = bias.map_or(std::ptr::null(), |bias| cast_slice(&bias[row..]).as_ptr());
        let (trans_a, trans_b, batch) = (op.trans_a, op.trans_b, BatchStrides::ONE);
        let p = RawGemm::new(&convert_op::<T, S>(part), a, b, c.at(row, column));
        let p = &RawGemm { bias, ..p };
        // SAFETY: the caller checked the operands, so `a`, `b`, `bias` and `c` hold the operands of
        // this part. The parts of the GEMM on different threads share no elements of `c`.
        unsafe { S::dispatch(UnpackedGemm { trans_a, trans_b, streamed: false, p, batch }) };
    });
}

/// Computes [`gemm`] for each GEMM of a batch. The output matrices must not overlap.
///
/// # Errors
/// Returns any error from [`GemmBatch::check`].
pub(crate) fn gemm_batched<T: Element>(
    workers: &Workers,
    op: &Gemm<T>,
    batch: &GemmBatch,
    a: &[T],
    b: &[T],
    c: &mut [T],
) -> Result<()> {
    batch.check(op, a.len(), b.len(), c.len())?;
    let (span_a, span_b, span_c) = op.spans()?;
    if batch.count == 0 || span_c == 0 {
        return Ok(());
    }
    // Each chunk of `c` has `stride` elements and starts with an output matrix; the last chunk may
    // be shorter.
    let stride = if batch.count == 1 { span_c } else { batch.stride_c };
    let c = &mut c[..(batch.count - 1) * stride + span_c];
    let gemm_at = |workers: &Workers, i: usize, c: &mut [T]| {
        let (a, b) = (&a[i * batch.stride_a..][..span_a], &b[i * batch.stride_b..][..span_b]);
        gemm(workers, op, a, b, c)
    };
    // GEMM results are bit-identical on any number of threads, so multithreaded GEMMs in sequence
    // give the same results as single-threaded GEMMs in parallel. In parallel, all GEMMs take as
    // long as `rounds` single-threaded GEMMs. In sequence, all GEMMs take as long as
    // `batch.count / parts` single-threaded GEMMs.
    let (threads, parts) = (workers.count(), max_parts::<T>(workers.count(), op.flops()));
    let min_flops = parallel_min_flops::<T>();
    let rounds = batch.count.div_ceil(threads);
    if batch.count < (2 * threads).min(rounds * parts) {
        return c.chunks_mut(stride).enumerate().try_for_each(|(i, c)| gemm_at(workers, i, c));
    }
    let min_len = (min_flops / op.flops().max(1)).clamp(1, batch.count as u64) as usize;
    let task_len = workers.even_chunk_len(batch.count, min_len, 1);
    let runs_unpacked = op.flops() < min_flops && is_unpacked(op);
    workers.try_for_each_chunk(c, task_len * stride, |task, c| {
        let first = task * task_len;
        if runs_unpacked {
            let (a, b) = (&a[first * batch.stride_a..], &b[first * batch.stride_b..]);
            gemm_batched_unpacked(op, batch, a, b, c);
            return Ok(());
        }
        let mut outputs = c.chunks_mut(stride).enumerate();
        outputs.try_for_each(|(i, c)| gemm_at(&Workers::sequential(), first + i, c))
    })
}

/// Returns whether [`gemm`] computes `op` with one [`UnpackedGemm`] that reads the operands in
/// place, without a copy of `B` and without streaming `B`.
fn is_unpacked<T: Element>(op: &Gemm<T>) -> bool {
    let gemv = op.m == 1 || op.n == 1;
    let copies_b = (op.trans_a, op.trans_b) == (Transpose::Yes, Transpose::Yes);
    if gemv || copies_b || op.k == 0 || op.alpha.is_zero() {
        return false;
    }
    if const { is_same::<T, f32>() } {
        GemmPath::choose(&convert_op::<T, f32>(op)) == GemmPath::Unpacked
    } else if const { is_same::<T, f64>() } {
        GemmPath::choose(&convert_op::<T, f64>(op)) == GemmPath::Unpacked
    } else {
        false
    }
}

/// Computes, on the calling thread, the consecutive GEMMs of a batch whose output matrices are in
/// `c`. [`is_unpacked`] must return true for `op`.
fn gemm_batched_unpacked<T: Element>(
    op: &Gemm<T>,
    batch: &GemmBatch,
    a: &[T],
    b: &[T],
    c: &mut [T],
) {
    fn run<T: Element, S: SimdScalar>(
        op: &Gemm<T>,
        batch: BatchStrides,
        a: &[T],
        b: &[T],
        c: &mut [T],
    ) {
        let c = cast_slice_mut::<T, S>(c).as_mut_ptr();
        let p = &RawGemm::new(&convert_op::<T, S>(op), cast_slice(a), cast_slice(b), c);
        let (trans_a, trans_b) = (op.trans_a, op.trans_b);
        // SAFETY: `GemmBatch::check` passed, so the slices hold the operands of all `batch.count`
        // GEMMs; `c` is borrowed exclusively.
        unsafe { S::dispatch(UnpackedGemm { trans_a, trans_b, streamed: false, p, batch }) };
    }
    let GemmBatch { stride_a, stride_b, stride_c, .. } = *batch;
    // Round up, because the last output matrix in `c` may be shorter than `stride_c`.
    let count = if batch.count == 1 { 1 } else { c.len().div_ceil(stride_c) };
    let batch = BatchStrides { count, a: stride_a, b: stride_b, c: stride_c };
    if const { is_same::<T, f64>() } {
        run::<T, f64>(op, batch, a, b, c);
    } else {
        run::<T, f32>(op, batch, a, b, c);
    }
}

fn scale<T: Element>(op: &Gemm<T>, c: &mut [T]) -> Result<()> {
    for row in c.chunks_mut(op.ldc).take(op.m) {
        let row = &mut row[..op.n];
        if op.beta.is_zero() {
            row.fill(T::default());
        } else {
            scal(&Workers::sequential(), op.beta, row)?;
        }
    }
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests;
