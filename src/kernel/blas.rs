//! Basic linear algebra.

use crate::{
    element::Element,
    op::{Gemm, GemmBatch, Gemv},
};
use num_traits::Zero;

macro_rules! kernels {
    ($then:ident) => {
        $then! {
            /// Basic linear algebra with the names of BLAS routines. Matrices are row-major;
            /// scalars and sums have the accumulator type `T::Acc`.
            ///
            /// ```
            /// use cortado::{kernel::Blas, prelude::*};
            ///
            /// let device = CpuDevice::new();
            /// let x = Blob::from_slice(&device, &[3], &[1.0f32, 2.0, 3.0])?;
            /// let y = Blob::from_slice(&device, &[3], &[1.0, 1.0, 1.0])?;
            /// device.axpy(10.0, x.data()?.view(), y.data_mut()?.view_mut())?;
            /// assert_eq!(y.to_vec()?, [11.0, 21.0, 31.0]);
            /// assert_eq!(device.dot(x.data()?.view(), y.data()?.view())?, 146.0);
            /// # Ok::<(), cortado::Error>(())
            /// ```
            trait Blas {}

            /// `y ← x`
            #[doc(alias = "caffe_copy")]
            fn copy<T: Element>(x: read T, y: overwrite T) { check_len("copy", "y", x, y) }

            /// `x ← α·x`
            #[doc(alias = "caffe_scal")]
            fn scal<T: Element>(alpha: T::Acc, x: update T) { Ok(()) }

            /// `y ← α·x + y`
            #[doc(alias = "caffe_axpy")]
            fn axpy<T: Element>(alpha: T::Acc, x: read T, y: update T) {
                check_len("axpy", "y", x, y)
            }

            /// `y ← α·x + β·y`. If β = 0, the kernel does not read `y`.
            #[doc(alias = "caffe_cpu_axpby")]
            fn axpby<T: Element>(
                alpha: T::Acc, x: read T, beta: T::Acc, y: overwrite(if beta.is_zero()) T
            ) { check_len("axpby", "y", x, y) }

            /// `Σ xᵢ·yᵢ`; `x` and `y` may be the same view.
            #[doc(alias = "caffe_cpu_dot")]
            fn dot<T: Element>(x: read T, y: read T) -> T::Acc { check_len("dot", "y", x, y) }

            /// `Σ x[i·incx]·y[i·incy]` over `i < n`.
            #[doc(alias = "caffe_cpu_strided_dot")]
            fn dot_strided<T: Element>(
                n: usize, x: read T, incx: usize, y: read T, incy: usize
            ) -> T::Acc { check_strided(n, (x, incx), (y, incy)) }

            /// `Σ |xᵢ|`
            #[doc(alias = "caffe_cpu_asum")]
            fn asum<T: Element>(x: read T) -> T::Acc { Ok(()) }

            /// `Σ xᵢ²`
            fn sumsq<T: Element>(x: read T) -> T::Acc { Ok(()) }

            /// `max |xᵢ|`; 0 if `x` has no elements.
            fn amax<T: Element>(x: read T) -> T::Acc { Ok(()) }

            /// `y ← α·op(A)·x + β·y`. If β = 0, the kernel does not read `y`.
            #[doc(alias = "caffe_cpu_gemv")]
            fn gemv<T: Element>(
                op: &Gemv<T>, a: read T, x: read T, y: overwrite(if op.beta.is_zero()) T
            ) { op.check(a, x, y) }

            /// `C ← α·op(A)·op(B) + β·C`. If β = 0, the kernel does not read `C`. If α = 0 or
            /// k = 0, the kernel does not read `A` and `B`. In all other cases, a NaN or an
            /// infinity in `A` or `B` propagates to each dependent element of `C`, even if the
            /// other factor is zero. `A` and `B` may be the same view.
            #[doc(alias = "caffe_cpu_gemm")]
            fn gemm<T: Element>(
                op: &Gemm<T>,
                a: read T,
                b: read T,
                // Elements of the view `c` that lie outside the matrix C keep their values.
                c: overwrite(if op.overwrites() && op.m.checked_mul(op.n) == Some(c.len())) T
            ) { op.check(a, b, c) }

            /// `Cᵢ ← α·op(Aᵢ)·op(Bᵢ) + β·Cᵢ` for each GEMM of the batch.
            fn gemm_batched<T: Element>(
                op: &Gemm<T>, batch: &GemmBatch, a: read T, b: read T, c: update T
            ) { batch.check(op, a, b, c) }
        }
    };
}
kernels!(declare_family);
pub(crate) use kernels;
