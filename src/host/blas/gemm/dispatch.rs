//! The two types that processors multiply, and the vectors they do it with.

use crate::{
    element::Element,
    host::{
        blas::kernel::{
            macro_kernel,
            packing::{PackSource, StridedSource},
            unpacked::{self, RawGemm},
        },
        cache::scratch::with_scratch,
        simd::vector::SimdVector,
    },
    op::{Gemm, Transpose},
};
use num_traits::Float;
use std::sync::LazyLock;

/// Work that is compiled for every kind of vectors.
#[allow(unsafe_code)]
pub(crate) trait SimdKernel<S> {
    /// # Safety
    /// As the kernels of `L`; implementors may ask for more. They are inlined, with all they call.
    unsafe fn run<L: SimdVector<Scalar = S>>(self);
}

/// `f32` or `f64`, with the vectors that multiply it.
#[allow(unsafe_code)]
pub(crate) trait SimdScalar: Element<Acc = Self> + Float {
    /// `matrixmultiply`'s function for the type.
    const FOREIGN: MatrixmultiplyFn<Self>;

    /// Runs `job` with the widest vectors there are.
    ///
    /// # Safety
    /// As the job, but for the processor.
    unsafe fn dispatch(job: impl SimdKernel<Self>);
}

/// m, k, n, α, then each operand with its strides along rows and columns: `A`, `B`, β, `C`.
pub(crate) type MatrixmultiplyFn<S> = unsafe fn(
    usize,
    usize,
    usize,
    S,
    *const S,
    isize,
    isize,
    *const S,
    isize,
    isize,
    S,
    *mut S,
    isize,
    isize,
);

/// The widest vectors there are.
#[derive(Clone, Copy, PartialEq)]
enum SimdLevel {
    #[cfg(target_arch = "x86_64")]
    Avx512,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    Portable,
}

/// Those of this processor.
fn width() -> SimdLevel {
    #[cfg(test)]
    if let Some(width) = NARROWER.get() {
        return width;
    }
    static WIDTH: LazyLock<SimdLevel> = LazyLock::new(|| available()[0]);
    *WIDTH
}

/// Those that this processor has, widest first.
fn available() -> Vec<SimdLevel> {
    let mut widths = Vec::new();
    #[cfg(target_arch = "x86_64")]
    {
        if crate::host::simd::has_avx512() {
            widths.push(SimdLevel::Avx512);
        }
        if is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("f16c")
        {
            widths.push(SimdLevel::Avx2);
        }
    }
    widths.push(SimdLevel::Portable);
    widths
}

#[cfg(test)]
thread_local! {
    /// What tests use on their thread instead of the widest vectors.
    static NARROWER: std::cell::Cell<Option<SimdLevel>> = const { std::cell::Cell::new(None) };
}

/// Whether a test wants vectors on this thread, and nothing wider.
#[cfg(all(test, target_arch = "x86_64", target_os = "linux"))]
pub(crate) fn is_narrowed() -> bool {
    NARROWER.get().is_some()
}

/// Calls `body` for all vectors that this processor has.
#[cfg(test)]
pub(crate) fn with_each_width(body: impl Fn()) {
    available().into_iter().for_each(|width| with_width(width, &body));
}

/// Calls `body` for the widest vectors, and nothing wider.
#[cfg(all(test, target_arch = "x86_64", target_os = "linux"))]
pub(crate) fn with_vectors(body: impl Fn()) {
    with_width(available()[0], body);
}

#[cfg(test)]
fn with_width(width: SimdLevel, body: impl Fn()) {
    NARROWER.set(Some(width));
    body();
    NARROWER.set(None);
}

macro_rules! native {
    ($scalar:ty, $foreign:path, $wide:ident, $narrow:ident) => {
        #[allow(unsafe_code)]
        impl SimdScalar for $scalar {
            const FOREIGN: MatrixmultiplyFn<Self> = $foreign;

            unsafe fn dispatch(job: impl SimdKernel<Self>) {
                // SAFETY: the processor has what each is compiled for: it was detected. The rest
                // is the caller's.
                unsafe {
                    match width() {
                        #[cfg(target_arch = "x86_64")]
                        SimdLevel::Avx512 => avx512::<std::arch::x86_64::$wide>(job),
                        #[cfg(target_arch = "x86_64")]
                        SimdLevel::Avx2 => avx2::<std::arch::x86_64::$narrow>(job),
                        SimdLevel::Portable => job.run::<[Self; 4]>(),
                    }
                }
            }
        }
    };
}
native!(f32, matrixmultiply::sgemm, __m512, __m256);
native!(f64, matrixmultiply::dgemm, __m512d, __m256d);

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
#[allow(unsafe_code)]
unsafe fn avx512<L: SimdVector>(job: impl SimdKernel<L::Scalar>) {
    // SAFETY: handed on; compiled for what `L` needs.
    unsafe { job.run::<L>() }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c")]
#[allow(unsafe_code)]
unsafe fn avx2<L: SimdVector>(job: impl SimdKernel<L::Scalar>) {
    // SAFETY: handed on; compiled for what `L` needs.
    unsafe { job.run::<L>() }
}

/// Which kernel computes a product. It is chosen for the whole, not for each thread's part: then
/// parts have the bits of the whole.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum GemmPath {
    /// Operands are read where they lie.
    Unpacked,
    /// Panels of both operands are packed.
    Packed,
}

impl GemmPath {
    /// The faster for `op`, as measured.
    pub(crate) fn of<S: SimdScalar>(op: &Gemm<S>) -> Self {
        if unpacked::unpacked_is_faster(op) { Self::Unpacked } else { Self::Packed }
    }

    /// One single-threaded product.
    ///
    /// # Safety
    /// `op.check` holds for `a` and `b`; `c` is valid for writes to all elements that `op`
    /// covers, for reads too if β ≠ 0, and nobody else uses these meanwhile.
    #[allow(unsafe_code)]
    pub(crate) unsafe fn run<S: SimdScalar>(self, op: &Gemm<S>, a: &[S], b: &[S], c: *mut S) {
        debug_assert!(op.check(a.len(), b.len(), usize::MAX).is_ok());
        let product = RawGemm::new(op, a, b, c);
        // SAFETY: the caller vouches for the extents.
        unsafe {
            match self {
                Self::Unpacked => {
                    let (a, b, times) = (op.trans_a, op.trans_b, unpacked::BatchStrides::ONE);
                    S::dispatch(unpacked::UnpackedGemm { a, b, p: &product, times });
                }
                Self::Packed if width() == SimdLevel::Portable => {
                    foreign(S::FOREIGN, op.trans_a, op.trans_b, &product);
                }
                Self::Packed => {
                    let a = StridedSource::rows(op.trans_a, a, op.lda);
                    let b = StridedSource::columns(op.trans_b, b, op.ldb);
                    multiply_lines(&a, Some(strides(op)), &b, &product);
                }
            }
        }
    }
}

/// One single-threaded product with a matrix whose columns are `b`'s lines.
///
/// # Safety
/// As [`Kernel::enter`], but for `b`, which has `op.n` lines of `op.k` elements; `bias` has one for
/// each row of `C`, which is added to all of it.
#[allow(unsafe_code)]
pub(crate) unsafe fn gemm_with_pack_source<S: SimdScalar>(
    op: &Gemm<S>,
    a: &[S],
    b: &dyn PackSource<S>,
    bias: Option<&[S]>,
    c: *mut S,
) {
    debug_assert!(bias.is_none_or(|bias| bias.len() >= op.m));
    // SAFETY: the caller vouches for the extents.
    unsafe {
        if width() != SimdLevel::Portable {
            let rows = StridedSource::rows(op.trans_a, a, op.lda);
            let bias = bias.map_or(std::ptr::null(), <[S]>::as_ptr);
            let p = &RawGemm { bias, ..RawGemm::new(op, a, &[], c) };
            return multiply_lines(&rows, Some(strides(op)), b, p);
        }
        with_scratch(op.k * op.n + macro_kernel::PANEL_SLACK * op.n, |matrix: &mut [S]| {
            // A single panel is the matrix by rows.
            b.pack(0..op.n, 0..op.k, op.n, matrix);
            let product = RawGemm { ldb: op.n, ..RawGemm::new(op, a, matrix, c) };
            foreign(S::FOREIGN, op.trans_a, Transpose::No, &product);
        });
        for (row, &bias) in bias.unwrap_or_default().iter().enumerate().take(op.m) {
            let row = std::slice::from_raw_parts_mut(c.add(row * op.ldc), op.n);
            row.iter_mut().for_each(|c| *c = *c + bias);
        }
    }
}

/// `C(m×n) ← A·B` on the calling thread: `A`'s rows and `B`'s columns are lines of k elements.
pub(crate) fn gemm_from_pack_sources<S: SimdScalar>(
    [m, n, k]: [usize; 3],
    a: &dyn PackSource<S>,
    b: &dyn PackSource<S>,
    c: &mut [S],
) {
    assert!(m * n <= c.len(), "{m}×{n} of {}", c.len());
    let p = &RawGemm::new(&Gemm::new(m, n, k), &[], &[], c.as_mut_ptr());
    // SAFETY: `c` has room, and no operand is said to lie anywhere but in panels.
    #[allow(unsafe_code)]
    unsafe {
        if width() != SimdLevel::Portable {
            return multiply_lines(a, None, b, p);
        }
        // A single panel is a matrix: of lines side by side.
        with_scratch((k + macro_kernel::PANEL_SLACK) * m, |rows: &mut [S]| {
            a.pack(0..m, 0..k, m, rows);
            with_scratch((k + macro_kernel::PANEL_SLACK) * n, |columns: &mut [S]| {
                b.pack(0..n, 0..k, n, columns);
                let (a, b) = (rows.as_ptr(), columns.as_ptr());
                let p = RawGemm { a, lda: m, b, ldb: n, ..*p };
                foreign(S::FOREIGN, Transpose::Yes, Transpose::No, &p);
            });
        });
    }
}

/// `A`'s strides along m and k.
fn strides<S: Element>(op: &Gemm<S>) -> (usize, usize) {
    if op.trans_a == Transpose::No { (op.lda, 1) } else { (1, op.lda) }
}

/// By packed panels; what `p` says of `B` is not used, and what it says of `A` only if there are
/// `strides` of it along m and k.
#[allow(unsafe_code)]
unsafe fn multiply_lines<S: SimdScalar>(
    a: &dyn PackSource<S>,
    strides: Option<(usize, usize)>,
    b: &dyn PackSource<S>,
    p: &RawGemm<S>,
) {
    with_scratch(macro_kernel::workspace_len::<S>(p.m, p.n, p.k), |room: &mut [S]| {
        let job = macro_kernel::PackedGemm { a, strides, b, p, room };
        // SAFETY: the caller's.
        unsafe { S::dispatch(job) }
    });
}

/// `matrixmultiply`, on processors that we have no vectors for.
#[allow(unsafe_code)]
unsafe fn foreign<S>(
    multiply: MatrixmultiplyFn<S>,
    trans_a: Transpose,
    trans_b: Transpose,
    p: &RawGemm<S>,
) where
    S: Copy,
{
    let strides = |trans, ld: usize| match trans {
        Transpose::No => (ld as isize, 1),
        Transpose::Yes => (1, ld as isize),
    };
    let ((rsa, csa), (rsb, csb)) = (strides(trans_a, p.lda), strides(trans_b, p.ldb));
    let RawGemm { m, n, k, alpha, beta, a, b, c, .. } = *p;
    // SAFETY: the caller vouches for the extents.
    unsafe { multiply(m, k, n, alpha, a, rsa, csa, b, rsb, csb, beta, c, p.ldc as isize, 1) };
}
