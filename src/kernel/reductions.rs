//! Reduction kernels.

use crate::{
    element::Element,
    op::{Axis, Reduce, TopK},
};
use num_traits::Zero;

macro_rules! kernels {
    ($then:ident) => {
        $then! {
            /// Reductions along an axis; the results stay on the device. The [module
            /// page](crate::kernel) lists the rules that all kernels share.
            ///
            /// ```
            /// use cortado::{kernel::Reductions, op::Axis, prelude::*};
            ///
            /// let device = CpuDevice::new();
            /// let dy = Blob::from_slice(&device, &[2, 3], &[1.0f32, 2.0, 3.0, 10.0, 20.0, 30.0])?;
            /// let bias = Blob::<f32, _>::zeros(&device, &[3])?;
            /// let outputs = Axis::of(dy.shape(), 1)?;
            /// device.sum_to_axis(&outputs, 0.0, dy.data()?.view(), bias.diff_mut()?.view_mut())?;
            /// assert_eq!(bias.diff()?.host()?, [11.0, 22.0, 33.0]);
            /// # Ok::<(), cortado::Error>(())
            /// ```
            trait Reductions {}

            /// `y[o,i] ← the reduction op over e of x[o,e,i]`, which removes the axis.
            ///
            /// - `Max` and `Min` are exact, ignore NaN elements, and are NaN if all elements are
            ///   NaN. `Max` and `Min` refuse an axis of extent 0, unless `y` is empty.
            /// - `Mean` may divide by `n` or multiply by the rounded `1/n`. The mean along an axis
            ///   of extent 0 is NaN.
            /// - `Sum`, `AbsSum` and `SumSq` along an axis of extent 0 are 0.
            ///
            /// Lengths: `x` has `axis.count()` elements, and `y` has `axis.reduced_count()`.
            fn reduce<T: Element>(op: Reduce, axis: &Axis, x: read T, y: overwrite T) {
                op.check(axis, x, y)
            }

            /// `y[e] ← β·y[e] + Σ over o, i of x[o,e,i]`, as in the gradient of a bias. If β = 0,
            /// the kernel does not read `y`. A sum without terms is 0.
            ///
            /// Lengths: `x` has `axis.count()` elements, and `y` has `axis.extent`.
            fn sum_to_axis<T: Element>(
                axis: &Axis, beta: T::Acc, x: read T, y: overwrite(if beta.is_zero()) T
            ) {
                axis.check_counts("sum_to_axis", &[("x", x)])?;
                axis.check_extents("sum_to_axis", &[("y", y)])
            }

            /// `y[e] ← β·y[e] + Σ over o, i of a[o,e,i]·b[o,e,i]`, as in the gradient of a scale
            /// factor. If β = 0, the kernel does not read `y`. `a` and `b` may be the same view.
            ///
            /// Lengths: `a` and `b` have `axis.count()` elements, and `y` has `axis.extent`.
            fn dot_to_axis<T: Element>(
                axis: &Axis, beta: T::Acc, a: read T, b: read T, y: overwrite(if beta.is_zero()) T
            ) {
                axis.check_counts("dot_to_axis", &[("a", a), ("b", b)])?;
                axis.check_extents("dot_to_axis", &[("y", y)])
            }

            /// `y[o,i] ← the index e of the maximum of x[o,e,i]`, or the least such `e` if several
            /// elements equal the maximum. NaN elements are ignored; if all elements are NaN, the
            /// index is 0. The kernel refuses an axis of extent 0, unless `y` is empty.
            ///
            /// Lengths: `x` has `axis.count()` elements, and `y` has `axis.reduced_count()`.
            fn arg_max<T: Element>(axis: &Axis, x: read T, y: overwrite u32) {
                axis.check_arg_max(x, y)
            }

            /// `values[o,j,i], places[o,j,i] ← the j-th greatest of x[o,:,i] and its index`. Each
            /// index in `places` is stored as a floating-point element; see [`TopK`]. Among equal
            /// elements, the larger index comes first, and NaN ranks below every number. The kernel
            /// copies the elements bit for bit. The kernel refuses a `k` above the extent of the
            /// axis.
            ///
            /// Lengths: `x` has `op.axis.count()` elements. `values` and `places` have
            /// `op.k · op.axis.reduced_count()` elements.
            fn top_k<T: Element>(op: &TopK, x: read T, values: overwrite T, places: overwrite T) {
                op.check(x, values, places)
            }
        }
    };
}
kernels!(declare_family);
pub(crate) use kernels;
