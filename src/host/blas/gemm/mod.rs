//! Matrix products: the choice of a kernel, and how threads share one product.
//!
//! - Products with a vector go to [`gemv`], which does not copy panels.
//! - `f32` and `f64` are multiplied by kernels of our own for vectors of x86-64, from packed
//!   panels or, where packing would not pay, from operands where they lie; elsewhere by
//!   `matrixmultiply`. There is one single-threaded call for each thread's rows or columns.
//!   Blocks of k are fixed and an element of `C` is computed the same in any tile, so where a
//!   matrix is cut, at multiples of [`TILE`], no bit changes.
//! - 16-bit elements are widened as they are packed and go the same way; results are rounded once.
//!   Large products are computed by AMX where there is one.

pub(crate) mod dispatch;
pub(crate) mod half;
pub(crate) mod output_tiles;

#[cfg(test)]
pub(crate) use crate::host::blas::gemm::dispatch::with_each_width;
use crate::host::blas::kernel::unpacked;
pub(crate) use crate::host::{
    blas::{
        gemm::dispatch::{SimdKernel, SimdScalar},
        kernel::indirect_packing::{CopySpan, IndirectMatrix},
    },
    simd::vector::SimdVector,
};
use crate::{
    element::{DType, Element, bf16, f16},
    error::{Result, check_len},
    host::{
        blas::{
            gemm::{
                dispatch::{GemmPath, gemm_with_pack_source},
                output_tiles::OutputTiles,
            },
            gemv::gemv,
            kernel::{
                packing::{PackSource, SourceBlock, StridedSource},
                unpacked::{BatchStrides, RawGemm, UnpackedGemm},
            },
            level1::scal,
        },
        threads::Workers,
    },
    op::{Gemm, GemmBatch, Transpose},
};
use bytemuck::{cast_slice, cast_slice_mut};
use num_traits::Zero;

/// A multiple of the rows and columns of `matrixmultiply`'s tiles.
const PARTITION_UNIT: usize = 16;

/// Floating-point operations below which one thread is faster than several.
const PARALLEL_MIN_FLOPS: u64 = 4_000_000;

/// `C ← α·op(A)·op(B) + β·C`; β = 0 does not read `C`, and α = 0 or k = 0 reads neither `A`
/// nor `B`.
///
/// Sums of 16-bit elements are kept in `f32` and rounded once. On x86-64 processors with AMX, larger
/// products of `bf16` take subnormal elements for zero, and subnormal sums become zero.
///
/// # Errors
/// [`Error::Length`](crate::Error::Length) and [`Error::InvalidInput`](crate::Error::InvalidInput) as
/// [`Gemm::check`].
#[doc(alias = "caffe_cpu_gemm")]
pub fn gemm<T: Element>(
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
    if let Some(product) = op.as_gemv() {
        return gemv(workers, &product, a, &b[..op.k], &mut c[..op.m]);
    }
    if let Some(product) = op.as_transposed_gemv() {
        return gemv(workers, &product, b, &a[..op.k], &mut c[..op.n]);
    }
    match T::DTYPE {
        DType::F32 => product::<T, f32>(workers, op, a, b, c),
        DType::F64 => product::<T, f64>(workers, op, a, b, c),
        DType::F16 => half::product::<T, f16>(workers, op, a, b, c),
        DType::Bf16 => half::product::<T, bf16>(workers, op, a, b, c),
    }
    Ok(())
}

/// Where the `B` of a product is.
pub(crate) enum GemmB<'a, T> {
    /// In memory, as the product says.
    Matrix(&'a [T]),
    /// Elsewhere: of it, the product has the extents only.
    Indirect(&'a IndirectMatrix<'a, T>),
}

/// [`gemm`] of elements that need no widening by packed panels, of a `B` that may lie elsewhere,
/// with an element of `bias` added to all of each row.
///
/// # Errors
/// As [`gemm`]; [`Error::Length`](crate::Error::Length) unless there is a bias for each row.
pub(crate) fn gemm_packed<T: Element>(
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
        let lines: &dyn PackSource<S> = match b {
            GemmB::Matrix(b) => {
                matrix = StridedSource::columns(op.trans_b, cast_slice::<T, S>(b), op.ldb);
                &matrix
            }
            GemmB::Indirect(b) => {
                indirect = b.cast::<S>();
                &indirect
            }
        };
        let c = OutputTiles::new(cast_slice_mut::<T, S>(c), op.ldc);
        share(workers, op, |part, row, column| {
            let a = &cast_slice(a)[first_row(op, row)..];
            let b = SourceBlock { lines, first: column };
            let bias = bias.map(|bias| &cast_slice(bias)[row..]);
            // SAFETY: `a`, `bias` and `c` hold this part of the product.
            #[allow(unsafe_code)]
            unsafe {
                gemm_with_pack_source(&convert_op::<T, S>(part), a, &b, bias, c.at(row, column));
            }
        });
    }
    let len_b = if let GemmB::Matrix(b) = b { b.len() } else { usize::MAX };
    op.check(a.len(), len_b, c.len())?;
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
    match T::DTYPE {
        DType::F64 => run::<T, f64>(workers, op, a, b, bias, c),
        _ => run::<T, f32>(workers, op, a, b, bias, c),
    }
    Ok(())
}

/// [`gemm`] for each of a batch; the `C`s do not overlap.
///
/// # Errors
/// [`Error::Length`](crate::Error::Length) and [`Error::InvalidInput`](crate::Error::InvalidInput) as
/// [`Batch::check`].
pub fn gemm_batched<T: Element>(
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
    // One stride after another, up to the last element of the last product.
    let stride = if batch.count == 1 { span_c } else { batch.stride_c };
    let c = &mut c[..(batch.count - 1) * stride + span_c];
    let product = |workers: &Workers, i: usize, c: &mut [T]| {
        let (a, b) = (&a[i * batch.stride_a..][..span_a], &b[i * batch.stride_b..][..span_b]);
        gemm(workers, op, a, b, c)
    };
    // A product has the same bits on any number of threads, so either way gives the same.
    if op.flops() >= PARALLEL_MIN_FLOPS && batch.count < 2 * workers.count() {
        return c.chunks_mut(stride).enumerate().try_for_each(|(i, c)| product(workers, i, c));
    }
    let together = (PARALLEL_MIN_FLOPS / op.flops().max(1)).clamp(1, batch.count as u64) as usize;
    let direct = op.flops() < PARALLEL_MIN_FLOPS && is_direct(op);
    workers.try_for_each_chunk(c, together * stride, |task, c| {
        let first = task * together;
        if direct {
            let (a, b) = (&a[first * batch.stride_a..], &b[first * batch.stride_b..]);
            repeat(op, batch, a, b, c);
            return Ok(());
        }
        let mut products = c.chunks_mut(stride).enumerate();
        products.try_for_each(|(i, c)| product(&Workers::sequential(), first + i, c))
    })
}

/// Whether [`gemm`] computes the product by kernels that read its operands where they lie.
fn is_direct<T: Element>(op: &Gemm<T>) -> bool {
    let vector = op.m == 1 || op.n == 1;
    if vector || op.k == 0 || op.alpha.is_zero() {
        return false;
    }
    match T::DTYPE {
        DType::F32 => unpacked::unpacked_is_faster(&convert_op::<T, f32>(op)),
        DType::F64 => unpacked::unpacked_is_faster(&convert_op::<T, f64>(op)),
        DType::F16 | DType::Bf16 => false,
    }
}

/// As many products of a batch as begin in `c`, on the calling thread, where [`is_direct`].
fn repeat<T: Element>(op: &Gemm<T>, batch: &GemmBatch, a: &[T], b: &[T], c: &mut [T]) {
    fn run<T: Element, S: SimdScalar>(
        op: &Gemm<T>,
        times: BatchStrides,
        a: &[T],
        b: &[T],
        c: &mut [T],
    ) {
        let c = cast_slice_mut::<T, S>(c).as_mut_ptr();
        let p = &RawGemm::new(&convert_op::<T, S>(op), cast_slice(a), cast_slice(b), c);
        // SAFETY: `Batch::check` passed, so all that the products cover is there.
        #[allow(unsafe_code)]
        unsafe {
            S::dispatch(UnpackedGemm { a: op.trans_a, b: op.trans_b, p, times });
        }
    }
    let GemmBatch { stride_a, stride_b, stride_c, .. } = *batch;
    // `c` ends with a product.
    let count = if batch.count == 1 { 1 } else { c.len().div_ceil(stride_c) };
    let times = BatchStrides { count, a: stride_a, b: stride_b, c: stride_c };
    match T::DTYPE {
        DType::F64 => run::<T, f64>(op, times, a, b, c),
        _ => run::<T, f32>(op, times, a, b, c),
    }
}

/// `yᵀ ← α·xᵀ·op(B) + β·yᵀ` on the calling thread, of elements that need no widening; rows of `b`
/// are `ldb` apart. Neither vector is empty.
pub(crate) fn row_times_matrix<T: Element>(
    (alpha, beta): (T::Acc, T::Acc),
    x: &[T],
    (trans, b, ldb): (Transpose, &[T], usize),
    y: &mut [T],
) {
    fn run<T: Element, S: SimdScalar>(
        factors: (T::Acc, T::Acc),
        x: &[T],
        (trans, b, ldb): (Transpose, &[T], usize),
        y: &mut [T],
    ) {
        let (alpha, beta) = (S::acc(factors.0.to_f64()), S::acc(factors.1.to_f64()));
        let (n, k, lda, ldc) = (y.len(), x.len(), x.len(), y.len());
        let (rows, columns) = if trans == Transpose::No { (k, n) } else { (n, k) };
        assert!((rows - 1) * ldb + columns <= b.len(), "{rows}×{columns}");
        let (a, b) = (cast_slice::<T, S>(x).as_ptr(), cast_slice::<T, S>(b).as_ptr());
        let (c, bias) = (cast_slice_mut::<T, S>(y).as_mut_ptr(), std::ptr::null());
        let p = &RawGemm { m: 1, n, k, alpha, beta, a, lda, b, ldb, c, ldc, bias };
        // SAFETY: all that the product covers is there.
        #[allow(unsafe_code)]
        unsafe {
            S::dispatch(UnpackedGemm { a: Transpose::No, b: trans, p, times: BatchStrides::ONE });
        }
    }
    match T::DTYPE {
        DType::F64 => run::<T, f64>((alpha, beta), x, (trans, b, ldb), y),
        _ => run::<T, f32>((alpha, beta), x, (trans, b, ldb), y),
    }
}

/// `C ← β·C`.
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

/// The same product of elements of type `S`, which is what `T` is or computes in.
pub(crate) fn convert_op<T: Element, S: Element>(op: &Gemm<T>) -> Gemm<S> {
    let Gemm { m, n, k, trans_a, trans_b, lda, ldb, ldc, .. } = *op;
    let (alpha, beta) = (S::acc(op.alpha.to_f64()), S::acc(op.beta.to_f64()));
    Gemm { m, n, k, trans_a, trans_b, alpha, beta, lda, ldb, ldc }
}

/// Where rows of `op(A)` from `row` on begin.
fn first_row<T: Element>(op: &Gemm<T>, row: usize) -> usize {
    if op.trans_a == Transpose::No { row * op.lda } else { row }
}

/// Where columns of `op(B)` from `column` on begin.
fn first_column<T: Element>(op: &Gemm<T>, column: usize) -> usize {
    if op.trans_b == Transpose::No { column } else { column * op.ldb }
}

/// One call of `multiply(part, row, column)` for each thread, over rows or columns of `C`,
/// whichever are more: of the part that begins there.
fn share<T: Element>(
    workers: &Workers,
    op: &Gemm<T>,
    multiply: impl Fn(&Gemm<T>, usize, usize) + Sync,
) {
    let parts = if op.flops() < PARALLEL_MIN_FLOPS { 1 } else { workers.count() };
    if parts == 1 {
        return multiply(op, 0, 0);
    }
    let (by_rows, longer) = (op.m >= op.n, op.m.max(op.n));
    let mut size = longer.div_ceil(parts).next_multiple_of(PARTITION_UNIT);
    // A row by itself is summed as products with a vector are, in another order.
    while by_rows && longer % size == 1 {
        size += PARTITION_UNIT;
    }
    workers.run(longer.div_ceil(size), |i| {
        let (start, len) = (i * size, size.min(longer - i * size));
        let (row, column) = if by_rows { (start, 0) } else { (0, start) };
        let (m, n) = if by_rows { (len, op.n) } else { (op.m, len) };
        multiply(&Gemm { m, n, ..*op }, row, column);
    });
}

/// A product of elements of type `S`, which is what `T` is.
fn product<T: Element, S: SimdScalar>(
    workers: &Workers,
    op: &Gemm<T>,
    a: &[T],
    b: &[T],
    c: &mut [T],
) {
    let kernel = GemmPath::of(&convert_op::<T, S>(op));
    let c = OutputTiles::new(cast_slice_mut::<T, S>(c), op.ldc);
    share(workers, op, |part, row, column| {
        let a = &cast_slice(a)[first_row(op, row)..];
        let b = &cast_slice(b)[first_column(op, column)..];
        // SAFETY: `op.check` passed, so `a`, `b` and `c` hold all of the product, hence this part
        // of it; no two parts share rows and columns of `c`.
        #[allow(unsafe_code)]
        unsafe {
            kernel.run(&convert_op::<T, S>(part), a, b, c.at(row, column));
        }
    });
}

#[cfg(test)]
pub(crate) mod tests;
