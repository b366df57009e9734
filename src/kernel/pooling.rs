//! Pooling kernels.

use crate::{element::Element, op::Pool2d};

macro_rules! kernels {
    ($then:ident) => {
        $then! {
            /// Maximum, average and stochastic pooling of planes. The [module page](crate::kernel)
            /// lists the rules that all kernels share.
            ///
            /// ```
            /// use cortado::{kernel::Pooling, op::{Pool2d, PoolRounding}, prelude::*};
            ///
            /// let device = CpuDevice::new();
            /// let x = Blob::from_slice(&device, &[1, 4], &[1.0f32, 3.0, 5.0, 9.0])?;
            /// let y = Blob::zeros(&device, &[1, 2])?;
            /// let op = Pool2d::new(1, [1, 4], [1, 2], [1, 2], [0, 0], PoolRounding::Floor)?;
            /// device.average_pool(&op, x.data()?.view(), y.data_mut()?.view_mut())?;
            /// assert_eq!(y.to_vec()?, [2.0, 7.0]);
            /// # Ok::<(), cortado::Error>(())
            /// ```
            trait Pooling {}

            /// `y ← the maximum of each window`; `mask ← the index of the maximum in the plane`. If
            /// several elements of a window equal the maximum, the mask is the index of the first
            /// of these elements.
            ///
            /// As in Caffe, the initial maximum is the lowest finite number of `T`, or of `f32` if
            /// `T` is `f64`. Only a greater element replaces the initial maximum. NaN, −∞ and
            /// elements that do not exceed the initial maximum never become the maximum. If no
            /// element of a window exceeds the initial maximum, for example because the window lies
            /// in the padding, `y` is the initial maximum and the mask is −1.
            ///
            /// Lengths: `x` has `op.input_len()` elements, and `y` and `mask` have
            /// `op.output_len()`.
            fn max_pool<T: Element>(op: &Pool2d, x: read T, y: overwrite T, mask: overwrite i32) {
                op.check("max_pool", ("x", x), ("y", y))?;
                check_len("max_pool", "mask", op.output_len(), mask)
            }

            /// Sets `dx[i]` to the sum of the elements of `dy` whose mask is `i`. A mask of −1
            /// selects no element, and `dx[i]` is 0 if no mask is `i`. For a mask below −1 or
            /// beyond the plane, the kernel may fail or return any result, but writes only to `dx`.
            ///
            /// Lengths: `dy` and `mask` have `op.output_len()` elements, and `dx` has
            /// `op.input_len()`.
            fn max_pool_backward<T: Element>(
                op: &Pool2d, dy: read T, mask: read i32, dx: overwrite T
            ) {
                op.check("max_pool_backward", ("dx", dx), ("dy", dy))?;
                check_len("max_pool_backward", "mask", op.output_len(), mask)
            }

            /// `y ← the mean of each window`, where padding counts as zeros. Elements of a window
            /// beyond the padded input count neither for the sum nor for the divisor. The mean of a
            /// window that begins beyond the padded input is NaN or 0. A NaN or an infinity reaches
            /// only the windows that contain it.
            ///
            /// Lengths: `x` has `op.input_len()` elements, and `y` has `op.output_len()`.
            fn average_pool<T: Element>(op: &Pool2d, x: read T, y: overwrite T) {
                op.check("average_pool", ("x", x), ("y", y))
            }

            /// Sets each element of `dx` to a sum over the windows that cover the element. Each
            /// window contributes its element of `dy`, divided by the number of elements of the
            /// window, which includes padding but no elements beyond the padded input. An element
            /// that no window covers is 0.
            ///
            /// Lengths: `dy` has `op.output_len()` elements, and `dx` has `op.input_len()`.
            fn average_pool_backward<T: Element>(op: &Pool2d, dy: read T, dx: overwrite T) {
                op.check("average_pool_backward", ("dx", dx), ("dy", dy))
            }

            /// `y ← one element of each window`, drawn with probability proportional to the
            /// element's value; `mask ← the index of the drawn element in the plane`. The operand
            /// `u` holds one random number in [0, 1) per window.
            /// [`max_pool_backward`](Self::max_pool_backward) also computes the gradient of
            /// stochastic pooling.
            ///
            /// Every device draws the same element of a window: the first at which the running sum,
            /// in row-major order and in `f64`, exceeds `u` times the total sum. In the running sum
            /// and the total sum, negative elements and NaN count as zero. If the running sum never
            /// exceeds `u` times the total, for example because the total is 0, every device draws
            /// the first element of the window. For a window that contains no input element, `y` is
            /// 0 and the mask is −1. Stochastic pooling was introduced by Zeiler and Fergus (2013).
            ///
            /// Lengths: `x` has `op.input_len()` elements, and `u`, `y` and `mask` have
            /// `op.output_len()`.
            fn stochastic_pool<T: Element>(
                op: &Pool2d, x: read T, u: read f32, y: overwrite T, mask: overwrite i32
            ) {
                op.check("stochastic_pool", ("x", x), ("y", y))?;
                check_len("stochastic_pool", "u", op.output_len(), u)?;
                check_len("stochastic_pool", "mask", op.output_len(), mask)
            }
        }
    };
}
kernels!(declare_family);
pub(crate) use kernels;
