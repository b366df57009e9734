//! Basic linear algebra.

use crate::{
    element::Element,
    error::Result,
    kernel::Elementwise,
    memory::{Src, View, ViewMut},
    op::{Axis, Binary, Gemm, GemmBatch, Gemv, Unary},
};
use num_traits::Zero;

macro_rules! kernels {
    ($then:ident) => {
        $then! {
            /// Basic linear algebra kernels, named after the BLAS routines. Matrices are row-major;
            /// scalars and sums have the accumulator type `T::Acc`. The [module
            /// page](crate::kernel) lists the rules that all kernels share. Unless a method says
            /// otherwise, a scalar of 0 is a factor like any other, so 0·NaN is NaN.
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
            trait Blas {
                // `declare_family!` does not declare `gemm_with_bias`, because its default
                // implementation runs several kernels of the device.
                /// `C ← function(α·op(A)·op(B) + β·C + bias)`, where `bias` has one element for
                /// each column of `C`, and `C` has no gaps between rows. Without `function`, the
                /// kernel stores the sum as it is. The default implementation runs
                /// [`gemm`](Self::gemm), [`broadcast`](Elementwise::broadcast) and
                /// [`unary`](Elementwise::unary).
                ///
                /// An override can save passes over `C` by combining the three steps. The override
                /// may leave out the roundings to `T` between the steps, so that each element is
                /// rounded once. ReLU with the slope 0 may return 0 or NaN for −∞, and must return
                /// NaN for NaN.
                ///
                /// Lengths: `a` and `b` have at least the lengths that [`Gemm::spans`] returns,
                /// `bias` has n elements, and `c` has m·n.
                #[track_caller]
                fn gemm_with_bias<T: Element>(
                    &self,
                    op: &Gemm<T>,
                    a: View<'_, T, Self>,
                    b: View<'_, T, Self>,
                    bias: View<'_, T, Self>,
                    function: Option<Unary<T::Acc>>,
                    c: ViewMut<'_, T, Self>,
                ) -> Result<()>
                where
                    Self: Elementwise,
                {
                    gemm_then_bias(self, op, (a, b), bias, function, c)
                }
            }

            /// `y ← x`; the kernel copies each element bit for bit, even a NaN.
            ///
            /// Lengths: `y` has as many elements as `x`.
            #[doc(alias = "caffe_copy")]
            fn copy<T: Element>(x: read T, y: overwrite T) { check_len("copy", "y", x, y) }

            /// `x ← α·x`, with one rounding to `T::Acc`. If α = 0, a NaN or an infinity in `x`
            /// becomes NaN.
            ///
            /// Lengths: `x` may have any length.
            #[doc(alias = "caffe_scal")]
            fn scal<T: Element>(alpha: T::Acc, x: update T) { Ok(()) }

            /// `y ← α·x + y`; the product may be rounded to `T::Acc` or not (FMA). If α = 0, the
            /// kernel still reads `x`, so a NaN or an infinity in `x` makes `y` NaN.
            ///
            /// Lengths: `y` has as many elements as `x`.
            #[doc(alias = "caffe_axpy")]
            fn axpy<T: Element>(alpha: T::Acc, x: read T, y: update T) {
                check_len("axpy", "y", x, y)
            }

            /// `y ← α·x + β·y`, with roundings as in [`axpy`](Self::axpy). If β = 0, the kernel
            /// does not read `y`. If α = 0, the kernel still reads `x`.
            ///
            /// Lengths: `y` has as many elements as `x`.
            #[doc(alias = "caffe_cpu_axpby")]
            fn axpby<T: Element>(
                alpha: T::Acc, x: read T, beta: T::Acc, y: overwrite(if beta.is_zero()) T
            ) { check_len("axpby", "y", x, y) }

            /// `Σ xᵢ·yᵢ`, or 0 if the operands are empty; `x` and `y` may be the same view.
            ///
            /// Lengths: `y` has as many elements as `x`.
            #[doc(alias = "caffe_cpu_dot")]
            fn dot<T: Element>(x: read T, y: read T) -> T::Acc { check_len("dot", "y", x, y) }

            /// `Σ x[i·incx]·y[i·incy]` over `i < n`, or 0 if `n` is 0. With an increment of 0, the
            /// first element of the operand is used `n` times. An operand may be longer than
            /// needed. Elements that an increment skips do not affect the result. `x` and `y` may
            /// be the same view.
            ///
            /// Lengths: `x` has at least `(n − 1)·incx + 1` elements and `y` at least
            /// `(n − 1)·incy + 1`. If `n` is 0, `x` and `y` may have any length.
            #[doc(alias = "caffe_cpu_strided_dot")]
            fn dot_strided<T: Element>(
                n: usize, x: read T, incx: usize, y: read T, incy: usize
            ) -> T::Acc { check_strided(n, (x, incx), (y, incy)) }

            /// `Σ |xᵢ|`, or 0 if `x` is empty.
            ///
            /// Lengths: `x` may have any length.
            #[doc(alias = "caffe_cpu_asum")]
            fn asum<T: Element>(x: read T) -> T::Acc { Ok(()) }

            /// `Σ xᵢ²`, or 0 if `x` is empty.
            ///
            /// Lengths: `x` may have any length.
            fn sumsq<T: Element>(x: read T) -> T::Acc { Ok(()) }

            /// `max |xᵢ|`, without a rounding error; 0 if `x` is empty, and NaN if an element is
            /// NaN.
            ///
            /// Lengths: `x` may have any length.
            fn amax<T: Element>(x: read T) -> T::Acc { Ok(()) }

            /// `y ← α·op(A)·x + β·y`. If β = 0, the kernel does not read `y`. If α = 0 or `x` is
            /// empty, the kernel reads neither `A` nor `x`, and `y ← β·y`. Elements between the
            /// rows of `A` do not affect the result. `x` may be a part of the view `a`.
            ///
            /// Lengths: `a` has at least `(m − 1)·lda + n` elements, or may be empty if `m` or `n`
            /// is 0. `x` and `y` have the lengths that [`Gemv::lengths`] returns.
            #[doc(alias = "caffe_cpu_gemv")]
            fn gemv<T: Element>(
                op: &Gemv<T>, a: read T, x: read T, y: overwrite(if op.beta.is_zero()) T
            ) { op.check(a, x, y) }

            /// `C ← α·op(A)·op(B) + β·C`. If β = 0, the kernel does not read `C`. If α = 0 or k =
            /// 0, the kernel reads neither `A` nor `B`, and `C ← β·C`. If α ≠ 0, a NaN or an
            /// infinity in `A` or `B` reaches each element of `C` that depends on it, even if the
            /// other factor is 0. `A` and `B` may be the same view. Elements between the rows of a
            /// matrix, and after its last row, do not affect the result. Elements of `c` between
            /// and after the rows of `C` are unchanged.
            ///
            /// Lengths: `a`, `b` and `c` have at least the lengths that [`Gemm::spans`] returns.
            #[doc(alias = "caffe_cpu_gemm")]
            fn gemm<T: Element>(
                op: &Gemm<T>,
                a: read T,
                b: read T,
                // Elements of the view `c` that lie outside the matrix C keep their values.
                c: overwrite(if op.overwrites() && op.m.checked_mul(op.n) == Some(c.len())) T
            ) { op.check(a, b, c) }

            /// `Cᵢ ← α·op(Aᵢ)·op(Bᵢ) + β·Cᵢ` for each GEMM of the batch, with the rules of
            /// [`gemm`](Self::gemm). Elements of the view `c` between the matrices `Cᵢ` are
            /// unchanged. A batch of 0 GEMMs changes nothing, and accepts operands of any length.
            ///
            /// Lengths: with `count` GEMMs, `a` has at least `(count − 1)·stride_a` elements more
            /// than its span in [`Gemm::spans`]. Likewise, `b` and `c` each have at least
            /// `(count − 1)·stride_b` and `(count − 1)·stride_c` elements more than their spans.
            fn gemm_batched<T: Element>(
                op: &Gemm<T>, batch: &GemmBatch, a: read T, b: read T, c: update T
            ) { batch.check(op, a, b, c) }
        }
    };
}
kernels!(declare_family);

/// Runs [`Blas::gemm_with_bias`] as separate kernels of the device.
#[track_caller]
pub(crate) fn gemm_then_bias<T: Element, D: Blas + Elementwise>(
    device: &D,
    op: &Gemm<T>,
    (a, b): (View<'_, T, D>, View<'_, T, D>),
    bias: View<'_, T, D>,
    function: Option<Unary<T::Acc>>,
    mut c: ViewMut<'_, T, D>,
) -> Result<()> {
    op.check_with_bias(a.len(), b.len(), bias.len(), c.len())?;
    device.gemm(op, a, b, c.reborrow())?;
    let columns = Axis::new(op.m, op.n, 1)?;
    device.broadcast(Binary::Add, &columns, Src::InPlace, bias, c.reborrow())?;
    match function {
        Some(function) => device.unary(function, Src::InPlace, c),
        None => Ok(()),
    }
}
pub(crate) use kernels;
