//! Normalization kernels: softmax, local response normalization and standardization.

use crate::{
    element::Element,
    op::{Axis, Lrn, Standardize},
};

macro_rules! kernels {
    ($then:ident) => {
        $then! {
            /// Normalization kernels: softmax, local response normalization (LRN) and
            /// standardization, with their gradients. The [module page](crate::kernel) lists the
            /// rules that all kernels share.
            ///
            /// ```
            /// use cortado::{kernel::Normalize, op::Axis, prelude::*};
            ///
            /// let device = CpuDevice::new();
            /// let scores = Blob::from_slice(&device, &[2, 2], &[999.0f32, 999.0, -999.0, 0.0])?;
            /// let p = Blob::zeros(&device, &[2, 2])?;
            /// let classes = Axis::of(scores.shape(), 1)?;
            /// device.softmax(&classes, scores.data()?.view().into(), p.data_mut()?.view_mut())?;
            /// assert_eq!(p.to_vec()?, [0.5, 0.5, 0.0, 1.0]);
            /// # Ok::<(), cortado::Error>(())
            /// ```
            trait Normalize {}

            /// `y ← eˣ / Σ eˣ` along an axis, computed with `x` minus its maximum, so that no
            /// exponential of a finite element overflows. `y` is 0 where `x` is −∞. All results
            /// along an axis are NaN if one of the elements is NaN or +∞, or if all elements are
            /// −∞.
            ///
            /// Lengths: `x` and `y` have `axis.count()` elements.
            fn softmax<T: Element>(axis: &Axis, x: src(softmax_in_place) T, y: overwrite T) {
                axis.check_counts("softmax", &[("y", y), ("x", x.unwrap_or(y))])
            }

            /// `dx ← (dy − Σ dy·y) · y` along an axis; `y` is the result of `softmax`. `y` and `dy`
            /// may be the same view.
            ///
            /// Lengths: `y`, `dy` and `dx` have `axis.count()` elements.
            fn softmax_backward<T: Element>(
                axis: &Axis, y: read T, dy: src(softmax_backward_in_place) T, dx: overwrite T
            ) {
                let operands = [("dx", dx), ("dy", dy.unwrap_or(dx)), ("y", y)];
                axis.check_counts("softmax_backward", &operands)
            }

            /// `y ← x · s^(−β)` and `scale ← s`, where `s` is the base defined by [`Lrn`]. A device
            /// may compute `y` from `s` before `s` is rounded to `T`.
            ///
            /// Lengths: `x`, `scale` and `y` have `op.count()` elements.
            fn lrn<T: Element>(op: &Lrn, x: read T, scale: overwrite T, y: overwrite T) {
                op.check_operands("lrn", &[("x", x), ("scale", scale), ("y", y)])
            }

            /// `dx ← the gradient of x`, given the gradient of `y` and the results `y` and `scale`
            /// of [`lrn`](Self::lrn).
            ///
            /// Lengths: all operands have `op.count()` elements.
            fn lrn_backward<T: Element>(
                op: &Lrn, x: read T, y: read T, scale: read T, dy: read T, dx: overwrite T
            ) {
                let operands = [("x", x), ("y", y), ("scale", scale), ("dy", dy), ("dx", dx)];
                op.check_operands("lrn_backward", &operands)
            }

            /// `mean[e], variance[e] ← the mean and variance of x[o,e,i] over o and i`; the
            /// variance is biased: its divisor is the number of elements. The error of the variance
            /// must not grow with the mean, so an override must not compute the variance as the
            /// mean of the squares minus the square of the mean. If an element is NaN or infinite,
            /// neither the mean nor the variance is finite. If an axis of nonzero extent has no
            /// elements per position, the kernel returns an error, because the mean would be 0/0.
            ///
            /// Lengths: `x` has `axis.count()` elements, and `mean` and `variance` have
            /// `axis.extent`.
            fn moments<T: Element>(
                axis: &Axis, x: read T, mean: overwrite T, variance: overwrite T
            ) { axis.check_moments(x, mean, variance) }

            /// `y ← (x − mean) · rate`, where the rate is the inverse standard deviation; see
            /// [`Standardize`]. The `mean` and the `variance` need not be the moments of `x`.
            ///
            /// Lengths: `x` and `y` have `op.axis.count()` elements, and `mean` and `variance` have
            /// `op.axis.extent`.
            fn standardize<T: Element>(
                op: &Standardize,
                x: src(standardize_in_place) T,
                mean: read T,
                variance: read T,
                y: overwrite T
            ) { op.check(x, mean, variance, y) }

            /// `dx ← the gradient of x`, given the gradient `dy` and the [`moments`](Self::moments)
            /// of `x`; see [`Standardize`].
            ///
            /// Lengths: `x`, `dy` and `dx` have `op.axis.count()` elements, and `mean` and
            /// `variance` have `op.axis.extent`.
            fn standardize_backward<T: Element>(
                op: &Standardize,
                x: read T,
                mean: read T,
                variance: read T,
                dy: src(standardize_backward_in_place) T,
                dx: overwrite T
            ) { op.check_backward(x, mean, variance, dy, dx) }
        }
    };
}
kernels!(declare_family);
pub(crate) use kernels;
