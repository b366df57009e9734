//! Choice of the code path of a GEMM on one thread: unpacked, streamed, packed, or `matrixmultiply`.

use crate::cast::cast;
use crate::{
    element::{DType, Element},
    host::{
        blas::kernel::{
            args::{BatchStrides, RawGemm},
            blocking::{panel_len, workspace_len},
            dot_kernel::LANES_BYTES,
            macro_kernel::PackedGemm,
            packing::{PackSource, StridedSource},
            unpacked::{
                UnpackedGemm, dot_of_copy_is_faster, streaming_is_faster, unpacked_is_faster,
            },
        },
        cache::{
            cache_line::{CACHE_LINE, L1_ALIAS_BYTES},
            scratch::with_scratch,
        },
        simd::{dispatch::SimdScalar, level::SimdLevel},
    },
    op::{Gemm, Transpose},
};

/// Smallest m at which the last column of `C` is computed as a row. Not tuned.
const LAST_COLUMN_MIN_M: usize = 10;

/// Largest m at which the last column of `C` is computed as a row. Not tuned.
const LAST_COLUMN_MAX_M: usize = 64;

/// Code path of a GEMM: packed or unpacked. All threads of one GEMM take the same code path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum GemmPath {
    /// Unpacked GEMM: the kernels read both operands in place. If both are transposed, the kernels
    /// read a transposed copy of `B`.
    Unpacked,
    /// Unpacked GEMM by dot products, where `A` is transposed or `B` is not: the dot kernel reads a
    /// transposed copy of each such operand.
    DotOfCopy,
    /// Unpacked GEMM with few rows of `A` and a `B` that exceeds L1: the kernel multiplies a few
    /// rows of `B` at a time.
    Streamed,
    /// Packed GEMM: the macro-kernel copies both operands into panels. At the SIMD level
    /// [`SimdLevel::WithoutFma`], the crate `matrixmultiply` replaces the macro-kernel.
    Packed,
}

impl GemmPath {
    /// Returns the code path that was faster in measurements of GEMMs with shapes similar to that
    /// of `op`.
    pub(crate) fn choose<S: SimdScalar>(op: &Gemm<S>) -> Self {
        match () {
            // The rate of dot products at the SIMD level `WithoutFma` has not been measured.
            () if !uses_matrixmultiply() && dot_of_copy_is_faster(op) => Self::DotOfCopy,
            () if unpacked_is_faster(op) => Self::Unpacked,
            // The rate of streaming has not been compared with that of `matrixmultiply`.
            () if !uses_matrixmultiply() && streaming_is_faster(op) => Self::Streamed,
            () => Self::Packed,
        }
    }

    /// Computes one GEMM on the calling thread. `Streamed` does not support a transposed `B`.
    ///
    /// # Safety
    /// [`Gemm::check`] accepts the lengths of `a` and `b`. `c` is valid for reads and writes of all
    /// elements of `C`, and no other thread accesses `C`. `c` is not read if β is 0.
    pub(crate) unsafe fn run<S: SimdScalar>(self, op: &Gemm<S>, a: &[S], b: &[S], c: *mut S) {
        debug_assert!(op.check(a.len(), b.len(), usize::MAX).is_ok());
        let p = RawGemm::new(op, a, b, c);
        // SAFETY: `a` and `b` hold all elements that `op` reads, and the caller guarantees that `c`
        // is valid.
        unsafe {
            match self {
                Self::Unpacked if (op.trans_a, op.trans_b) == (Transpose::Yes, Transpose::Yes) => {
                    let source = StridedSource::for_b(op.trans_b, b, op.ldb);
                    // The rows of the copy start at cache-line boundaries.
                    let ld = op.n.next_multiple_of(CACHE_LINE / size_of::<S>());
                    with_copy(&source, [op.n, op.k], ld, |matrix| {
                        let op = Gemm { trans_b: Transpose::No, ldb: ld, ..*op };
                        self.run(&op, a, matrix, c);
                    });
                }
                Self::DotOfCopy if op.trans_a == Transpose::Yes => {
                    with_transposed(a, op.lda, [op.k, op.m], |matrix, ld| {
                        let op = Gemm { trans_a: Transpose::No, lda: ld, ..*op };
                        self.run(&op, matrix, b, c);
                    });
                }
                Self::DotOfCopy if op.trans_b == Transpose::No => {
                    with_transposed(b, op.ldb, [op.k, op.n], |matrix, ld| {
                        let op = Gemm { trans_b: Transpose::Yes, ldb: ld, ..*op };
                        self.run(&op, a, matrix, c);
                    });
                }
                Self::Unpacked if last_column_as_row_is_faster(op) => {
                    self.run(&Gemm { n: op.n - 1, ..*op }, a, b, c);
                    last_column_as_row(op, a, &b[op.n - 1..], c.add(op.n - 1));
                }
                Self::Unpacked | Self::DotOfCopy | Self::Streamed => {
                    let (trans_a, trans_b, batch) = (op.trans_a, op.trans_b, BatchStrides::ONE);
                    let streamed = self == Self::Streamed;
                    S::dispatch(UnpackedGemm { trans_a, trans_b, streamed, p: &p, batch });
                }
                Self::Packed if uses_matrixmultiply() => {
                    matrixmultiply_gemm(op.trans_a, op.trans_b, &p);
                }
                Self::Packed => {
                    let a = StridedSource::for_a(op.trans_a, a, op.lda);
                    let b = StridedSource::for_b(op.trans_b, b, op.ldb);
                    gemm_in_panels(&a, Some(a_strides(op)), &b, &p);
                }
            }
        }
    }
}

/// Returns whether [`last_column_as_row`] is faster than the micro-kernel for the last column of
/// `C`, because this column alone would need one more vector for each row of `C` (decision 56).
fn last_column_as_row_is_faster<S: SimdScalar>(op: &Gemm<S>) -> bool {
    (op.trans_a, op.trans_b) == (Transpose::Yes, Transpose::No)
        && op.n > 1
        && op.n % (LANES_BYTES / size_of::<S>()) == 1
        && (LAST_COLUMN_MIN_M..=LAST_COLUMN_MAX_M).contains(&op.m)
}

/// Computes the last column of `C ← α·Aᵀ·B + β·C` as a row: `cᵀ ← α·bᵀ·A + β·cᵀ`. `b` and `c` start
/// at the last column of `B` and of `C`. Each element is computed by the same operations as in the
/// micro-kernel.
///
/// # Panics
/// Panics if m exceeds [`LAST_COLUMN_MAX_M`].
///
/// # Safety
/// `a` is as long as `op` requires, and `b` has the element `l·ldb` for each l < k. `c` is valid for
/// reads and writes of the elements `i·ldc` for i < m, and no other thread accesses them.
unsafe fn last_column_as_row<S: SimdScalar>(op: &Gemm<S>, a: &[S], b: &[S], c: *mut S) {
    let mut row = [S::zero(); LAST_COLUMN_MAX_M];
    let row = &mut row[..op.m];
    if !op.beta.is_zero() {
        for (i, x) in row.iter_mut().enumerate() {
            // SAFETY: the caller guarantees that `c` is valid for m rows.
            *x = unsafe { *c.add(i * op.ldc) };
        }
    }
    let row_op = Gemm { m: 1, n: op.m, lda: op.ldb, ldb: op.lda, ldc: op.m, ..*op };
    let p = &RawGemm::new(&row_op, b, a, row.as_mut_ptr());
    let (trans_a, trans_b, batch) = (op.trans_a, op.trans_b, BatchStrides::ONE);
    // SAFETY: `b` and `a` hold the operands of `row_op`, `row` has m elements and is borrowed
    // exclusively, and the caller guarantees that `c` is valid for m rows.
    unsafe {
        S::dispatch(UnpackedGemm { trans_a, trans_b, streamed: false, p, batch });
        for (i, &x) in row.iter().enumerate() {
            *c.add(i * op.ldc) = x;
        }
    }
}

/// Returns whether the crate `matrixmultiply` computes packed GEMMs. `matrixmultiply` computes them
/// on a processor without FMA, unless the user limits cortado to portable code
/// ([`SimdLimit::Portable`](crate::host::simd::limit::SimdLimit::Portable)).
fn uses_matrixmultiply() -> bool {
    SimdLevel::current() == SimdLevel::WithoutFma
}

/// Calls `body` with a copy of a matrix in row-major order, whose rows are `ld` elements apart. The
/// copy starts at a cache-line boundary, and has `steps` rows of `mn` columns. `source` supplies the
/// rows as steps along k, like `op(B)`.
fn with_copy<S: SimdScalar>(
    source: &dyn PackSource<S>,
    [mn, steps]: [usize; 2],
    ld: usize,
    body: impl FnOnce(&[S]),
) {
    with_scratch(panel_len(ld, steps, ld), |matrix: &mut [S]| {
        // Packing all columns into one micro-panel yields a matrix in row-major order.
        source.pack(0..mn, 0..steps, ld, matrix);
        body(matrix);
    });
}

/// Calls `body` with the transpose of the `rows`×`columns` matrix `x`, and with the distance
/// between the rows of the transpose. The rows of `x` are `ld` elements apart.
fn with_transposed<S: SimdScalar>(
    x: &[S],
    ld: usize,
    [rows, columns]: [usize; 2],
    body: impl FnOnce(&[S], usize),
) {
    let source = StridedSource::for_a(Transpose::No, x, ld);
    // Rows that are a multiple of 4 KiB apart would evict one another from L1.
    let line = CACHE_LINE / size_of::<S>();
    let row_len = rows.next_multiple_of(line);
    let is_aliased = (row_len * size_of::<S>()).is_multiple_of(L1_ALIAS_BYTES);
    let ld = if is_aliased { row_len + line } else { row_len };
    with_copy(&source, [rows, columns], ld, |transpose| body(transpose, ld));
}

/// Computes a packed GEMM on the calling thread. `b` supplies `op(B)`, and `bias` has one element
/// for each row of `C`.
///
/// # Safety
/// [`Gemm::check`] accepts the length of `a`, and `bias` has at least m elements. `c` is valid for
/// reads and writes of all elements of `C`, and no other thread accesses `C`. `c` is not read if β
/// is 0.
pub(crate) unsafe fn gemm_with_pack_source<S: SimdScalar>(
    op: &Gemm<S>,
    a: &[S],
    b: &dyn PackSource<S>,
    bias: Option<&[S]>,
    c: *mut S,
) {
    debug_assert!(bias.is_none_or(|bias| bias.len() >= op.m));
    // SAFETY: `a` and `bias` hold all elements that the kernels read, the scratch buffer holds all
    // of `op(B)`, and the caller guarantees that `c` is valid.
    unsafe {
        if !uses_matrixmultiply() {
            let source = StridedSource::for_a(op.trans_a, a, op.lda);
            let bias = bias.map_or(std::ptr::null(), <[S]>::as_ptr);
            let p = &RawGemm { bias, ..RawGemm::new(op, a, &[], c) };
            return gemm_in_panels(&source, Some(a_strides(op)), b, p);
        }
        with_copy(b, [op.n, op.k], op.n, |matrix| {
            let p = RawGemm { ldb: op.n, ..RawGemm::new(op, a, matrix, c) };
            matrixmultiply_gemm(op.trans_a, Transpose::No, &p);
        });
        for (row, &bias) in bias.unwrap_or_default().iter().enumerate().take(op.m) {
            let row = std::slice::from_raw_parts_mut(c.add(row * op.ldc), op.n);
            row.iter_mut().for_each(|c| *c = *c + bias);
        }
    }
}

/// Computes a packed GEMM `C(m×n) ← op(A)·op(B)` from two pack sources on the calling thread.
///
/// # Panics
/// Panics if `c` has fewer than m·n elements.
pub(crate) fn gemm_from_pack_sources<S: SimdScalar>(
    [m, n, k]: [usize; 3],
    a: &dyn PackSource<S>,
    b: &dyn PackSource<S>,
    c: &mut [S],
) {
    assert!(m * n <= c.len(), "GEMM output c: {} elements, expected {m}×{n}", c.len());
    let p = &RawGemm::new(&Gemm::new(m, n, k), &[], &[], c.as_mut_ptr());
    // SAFETY: `c` has m·n elements and is borrowed exclusively. The kernels read `op(A)` and
    // `op(B)` from panels or scratch buffers, which hold all elements that the kernels read.
    unsafe {
        if !uses_matrixmultiply() {
            return gemm_in_panels(a, None, b, p);
        }
        // Packing all m rows of `op(A)` into one micro-panel yields `op(A)ᵀ` in row-major order.
        // Packing all n columns of `op(B)` into one micro-panel yields `op(B)` in row-major order.
        with_scratch(panel_len(m, k, m), |a_matrix: &mut [S]| {
            a.pack(0..m, 0..k, m, a_matrix);
            with_scratch(panel_len(n, k, n), |b_matrix: &mut [S]| {
                b.pack(0..n, 0..k, n, b_matrix);
                let (a, b) = (a_matrix.as_ptr(), b_matrix.as_ptr());
                let p = RawGemm { a, lda: m, b, ldb: n, ..*p };
                matrixmultiply_gemm(Transpose::Yes, Transpose::No, &p);
            });
        });
    }
}

/// Returns the strides of `op(A)` along m and k.
fn a_strides<S: Element>(op: &Gemm<S>) -> (usize, usize) {
    if op.trans_a == Transpose::No { (op.lda, 1) } else { (1, op.lda) }
}

/// Runs the macro-kernel with a scratch buffer as the workspace for panels.
///
/// # Safety
/// The requirements of [`PackedGemm`] hold.
unsafe fn gemm_in_panels<S: SimdScalar>(
    a: &dyn PackSource<S>,
    a_strides: Option<(usize, usize)>,
    b: &dyn PackSource<S>,
    p: &RawGemm<S>,
) {
    with_scratch(workspace_len::<S>(p.m, p.n, p.k), |workspace: &mut [S]| {
        // SAFETY: the caller meets the requirements of `PackedGemm`.
        unsafe { S::dispatch(PackedGemm { a, a_strides, b, p, workspace }) }
    });
}

/// Computes `C ← α·op(A)·op(B) + β·C` with the crate `matrixmultiply`, which supports all targets.
///
/// # Safety
/// `p.a` and `p.b` are valid for reads of all elements of `A` and `B`. `p.c` is valid for reads and
/// writes of m rows of n elements, and no other thread accesses `C`.
unsafe fn matrixmultiply_gemm<S: SimdScalar>(
    trans_a: Transpose,
    trans_b: Transpose,
    p: &RawGemm<S>,
) {
    let strides = |trans, ld: usize| match trans {
        Transpose::No => (ld as isize, 1),
        Transpose::Yes => (1, ld as isize),
    };
    let ((rsa, csa), (rsb, csb)) = (strides(trans_a, p.lda), strides(trans_b, p.ldb));
    let RawGemm { m, n, k, alpha, beta, a, b, c, .. } = *p;
    macro_rules! multiply {
        ($gemm:path) => {{
            let (alpha, beta) = (cast(alpha), cast(beta));
            let (a, b, c) = (a.cast(), b.cast(), c.cast());
            // SAFETY: `$gemm` is the `matrixmultiply` function for the type `S`. `$gemm` accesses
            // only elements that the caller guarantees to be valid.
            unsafe { $gemm(m, k, n, alpha, a, rsa, csa, b, rsb, csb, beta, c, p.ldc as isize, 1) }
        }};
    }
    match S::DTYPE {
        DType::F32 => multiply!(matrixmultiply::sgemm),
        _ => multiply!(matrixmultiply::dgemm),
    }
}
