//! Raw-pointer arguments of the GEMM kernels, for one GEMM or a batch.

use crate::{element::Element, host::simd::vector::SimdVector, op::Gemm};

/// Raw-pointer arguments of `C ← α·op(A)·op(B) + β·C + bias`. The leading dimensions are counted in
/// elements.
///
/// The `# Safety` section of each kernel says which elements the kernel accesses.
#[derive(Clone, Copy)]
pub(crate) struct RawGemm<S> {
    pub(crate) m: usize,
    pub(crate) n: usize,
    pub(crate) k: usize,
    pub(crate) alpha: S,
    pub(crate) beta: S,
    pub(crate) a: *const S,
    pub(crate) lda: usize,
    pub(crate) b: *const S,
    pub(crate) ldb: usize,
    pub(crate) c: *mut S,
    pub(crate) ldc: usize,
    /// Bias: null, or a pointer to an array whose element i is added to row i of `C`. The dot
    /// kernel ignores the bias.
    pub(crate) bias: *const S,
    /// Prefetch distance, in rows of `B`, at which the micro-kernel prefetches `B` into L2, or 0
    /// for no prefetch. The micro-kernel prefetches rows of `B` only with 32 registers, in tiles of
    /// two vectors, in the mode [`B_WHOLE_VECTORS`](super::micro_kernel::B_WHOLE_VECTORS).
    pub(crate) prefetch_rows: usize,
}

impl<S: Element<Acc = S>> RawGemm<S> {
    /// Returns the arguments of `op`, without bias.
    pub(crate) fn new(op: &Gemm<S>, a: &[S], b: &[S], c: *mut S) -> Self {
        let Gemm { m, n, k, alpha, beta, lda, ldb, ldc, .. } = *op;
        let (a, b, bias) = (a.as_ptr(), b.as_ptr(), std::ptr::null());
        Self { m, n, k, alpha, beta, a, lda, b, ldb, c, ldc, bias, prefetch_rows: 0 }
    }
}

/// Number of GEMMs in a batch, and the distances in elements between the operands of consecutive
/// GEMMs.
#[derive(Clone, Copy)]
pub(crate) struct BatchStrides {
    pub(crate) count: usize,
    pub(crate) a: usize,
    pub(crate) b: usize,
    pub(crate) c: usize,
}

impl BatchStrides {
    pub(crate) const ONE: Self = Self { count: 1, a: 0, b: 0, c: 0 };
}

/// Returns the offset of each row of `B`, in elements, from the preceding vector-aligned address.
/// Returns 0 if the rows of `B` differ in alignment.
pub(crate) fn unaligned_prefix<V: SimdVector>(p: &RawGemm<V::Scalar>) -> usize {
    let size = size_of::<V::Scalar>();
    let vector = V::WIDTH * size;
    if (p.ldb * size).is_multiple_of(vector) { p.b.addr() % vector / size } else { 0 }
}

/// Returns `op` with scalars of type `S`, which is `T` or `T::Acc`.
pub(crate) fn convert_op<T: Element, S: Element>(op: &Gemm<T>) -> Gemm<S> {
    let Gemm { m, n, k, trans_a, trans_b, lda, ldb, ldc, .. } = *op;
    let (alpha, beta) = (S::acc(op.alpha.to_f64()), S::acc(op.beta.to_f64()));
    Gemm { m, n, k, trans_a, trans_b, alpha, beta, lda, ldb, ldc }
}
