//! Single-threaded products of the two types that processors multiply.

use super::{
    direct::{self, Product},
    lanes::Lanes,
    packed,
};
use crate::{
    element::Element,
    host::scratch::with_scratch,
    op::{Gemm, Transpose},
};
use num_traits::Float;
use std::sync::LazyLock;

/// `f32` or `f64`, with the kernels that multiply it.
#[allow(unsafe_code)]
pub(super) trait Native: Element<Acc = Self> + Float {
    /// `matrixmultiply`'s function for the type.
    const PACKED: Packed<Self>;

    /// What `kernel` does, with this processor's vectors and [`packed::room`].
    ///
    /// # Safety
    /// As [`direct::product`] but for the processor.
    unsafe fn product(
        kernel: Kernel,
        trans_a: Transpose,
        trans_b: Transpose,
        product: &Product<Self>,
        room: &mut [Self],
    );
}

/// m, k, n, α, then each operand with its strides along rows and columns: `A`, `B`, β, `C`.
type Packed<S> = unsafe fn(
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
#[derive(Clone, Copy)]
enum Width {
    #[cfg(target_arch = "x86_64")]
    Avx512,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    Portable,
}

static WIDTH: LazyLock<Width> = LazyLock::new(|| {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f") {
            return Width::Avx512;
        }
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            return Width::Avx2;
        }
    }
    Width::Portable
});

macro_rules! native {
    ($scalar:ty, $packed:path, $wide:ident, $narrow:ident) => {
        #[allow(unsafe_code)]
        impl Native for $scalar {
            const PACKED: Packed<Self> = $packed;

            unsafe fn product(
                k: Kernel,
                a: Transpose,
                b: Transpose,
                p: &Product<Self>,
                room: &mut [Self],
            ) {
                // SAFETY: the processor has what each is compiled for: it was detected. The rest
                // is the caller's.
                unsafe {
                    match *WIDTH {
                        #[cfg(target_arch = "x86_64")]
                        Width::Avx512 => avx512::<std::arch::x86_64::$wide>(k, a, b, p, room),
                        #[cfg(target_arch = "x86_64")]
                        Width::Avx2 => avx2::<std::arch::x86_64::$narrow>(k, a, b, p, room),
                        Width::Portable => match k {
                            Kernel::Direct => direct::product::<[Self; 4]>(a, b, p),
                            Kernel::Packed => foreign(Self::PACKED, a, b, p),
                        },
                    }
                }
            }
        }
    };
}
native!(f32, matrixmultiply::sgemm, __m512, __m256);
native!(f64, matrixmultiply::dgemm, __m512d, __m256d);

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
#[allow(unsafe_code)]
unsafe fn avx512<L: Lanes>(
    k: Kernel,
    a: Transpose,
    b: Transpose,
    p: &Product<L::Scalar>,
    room: &mut [L::Scalar],
) {
    // SAFETY: handed on; compiled for what `L` needs.
    unsafe { product::<L>(k, a, b, p, room) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
#[allow(unsafe_code)]
pub(super) unsafe fn avx2<L: Lanes>(
    k: Kernel,
    a: Transpose,
    b: Transpose,
    p: &Product<L::Scalar>,
    room: &mut [L::Scalar],
) {
    // SAFETY: handed on; compiled for what `L` needs.
    unsafe { product::<L>(k, a, b, p, room) }
}

#[allow(unsafe_code)]
#[inline(always)]
pub(super) unsafe fn product<L: Lanes>(
    kernel: Kernel,
    a: Transpose,
    b: Transpose,
    p: &Product<L::Scalar>,
    room: &mut [L::Scalar],
) {
    // SAFETY: handed on.
    unsafe {
        match kernel {
            Kernel::Direct => direct::product::<L>(a, b, p),
            Kernel::Packed => packed::product::<L>(a, b, p, room),
        }
    }
}

/// `matrixmultiply`, on processors that we have no vectors for.
#[allow(unsafe_code)]
pub(super) unsafe fn foreign<S>(
    packed: Packed<S>,
    trans_a: Transpose,
    trans_b: Transpose,
    p: &Product<S>,
) where
    S: Copy,
{
    let strides = |trans, ld: usize| match trans {
        Transpose::No => (ld as isize, 1),
        Transpose::Yes => (1, ld as isize),
    };
    let ((rsa, csa), (rsb, csb)) = (strides(trans_a, p.lda), strides(trans_b, p.ldb));
    let Product { m, n, k, alpha, beta, a, b, c, .. } = *p;
    // SAFETY: the caller vouches for the extents.
    unsafe { packed(m, k, n, alpha, a, rsa, csa, b, rsb, csb, beta, c, p.ldc as isize, 1) };
}

/// Which kernel computes a product. It is chosen for the whole, not for each thread's part: then
/// parts have the bits of the whole.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kernel {
    /// Operands are read where they lie.
    Direct,
    /// Panels of both operands are packed.
    Packed,
}

impl Kernel {
    /// The faster for `op`, as measured.
    pub(super) fn of<S: Native>(op: &Gemm<S>) -> Self {
        if direct::suits(op) { Self::Direct } else { Self::Packed }
    }

    /// One single-threaded product.
    ///
    /// # Safety
    /// `op.check` holds for `a` and `b`; `c` is valid for writes to all elements that `op`
    /// covers, for reads too if β ≠ 0, and nobody else uses these meanwhile.
    #[allow(unsafe_code)]
    pub(super) unsafe fn run<S: Native>(self, op: &Gemm<S>, a: &[S], b: &[S], c: *mut S) {
        debug_assert!(op.check(a.len(), b.len(), usize::MAX).is_ok());
        let product = Product::new(op, a, b, c);
        // SAFETY: the caller vouches for the extents.
        let run =
            |room: &mut [S]| unsafe { S::product(self, op.trans_a, op.trans_b, &product, room) };
        match self {
            Self::Direct => run(&mut []),
            Self::Packed => with_scratch(packed::room::<S>(op.m, op.n, op.k), run),
        }
    }
}
