//! Convolution kernels: im2col, col2im, convolution and its gradients.

use crate::{
    element::Element,
    error::Result,
    kernel::Elementwise,
    memory::{Src, View, ViewMut},
    op::{Convolution, Unary, Window},
};

macro_rules! kernels {
    ($then:ident) => {
        $then! {
            /// Convolution, im2col and col2im over images with any number of spatial axes. The
            /// [module page](crate::kernel) lists the rules that all kernels share.
            ///
            /// ```
            /// use cortado::{kernel::Conv, op::{Convolution, SpatialAxis, Window}, prelude::*};
            ///
            /// let device = CpuDevice::new();
            /// let x = Blob::from_slice(&device, &[4], &[1.0f32, 2.0, 4.0, 8.0])?;
            /// let difference = Blob::from_slice(&device, &[2], &[-1.0, 1.0])?;
            /// let y = Blob::zeros(&device, &[3])?;
            /// let op = Convolution::new(1, 1, 1, Window::new(1, &[SpatialAxis::new(4, 2)])?)?;
            /// let (x, filters, mut out) = (x.data()?, difference.data()?, y.data_mut()?);
            /// device.convolve(&op, x.view(), filters.view(), None, out.view_mut())?;
            /// assert_eq!(out.host_mut()?, [1.0, 2.0, 4.0]);
            /// # Ok::<(), cortado::Error>(())
            /// ```
            trait Conv {
                // `declare_family!` does not declare `convolve_with_activation`, because its
                // default implementation runs two kernels of the device.
                /// `y ← function(x ∗ filters + bias)`, bit-identical to
                /// [`convolve`](Self::convolve) followed by [`unary`](Elementwise::unary) in place.
                /// The default implementation runs `convolve` and then `unary`.
                ///
                /// An override that fuses the convolution and the activation saves a pass over `y`.
                /// The override must round each result of the convolution to `T` before it applies
                /// `function`.
                ///
                /// Lengths: as in [`convolve`](Self::convolve).
                #[track_caller]
                fn convolve_with_activation<T: Element>(
                    &self,
                    op: &Convolution,
                    x: View<'_, T, Self>,
                    filters: View<'_, T, Self>,
                    bias: Option<View<'_, T, Self>>,
                    function: Unary<T::Acc>,
                    mut y: ViewMut<'_, T, Self>,
                ) -> Result<()>
                where
                    Self: Elementwise,
                {
                    self.convolve(op, x, filters, bias, y.reborrow())?;
                    self.unary(function, Src::InPlace, y)
                }
            }

            /// `columns ← the im2col matrix of x`, with one window per column; taps in the padding
            /// are +0. Elements of `x` are copied bit for bit.
            ///
            /// Lengths: `x` has `op.image_len()` elements, and `columns` has `op.columns_len()`.
            #[doc(alias = "im2col_nd_cpu")]
            fn im2col<T: Element>(op: &Window, x: read T, columns: overwrite T) {
                op.check("im2col", ("x", x), ("columns", columns))
            }

            /// Sets each element of `x` to the sum of the elements of `columns` that
            /// [`im2col`](Self::im2col) copies from it. `col2im` is the transpose of `im2col`. An
            /// element that no window covers is 0.
            ///
            /// Lengths: `columns` has `op.columns_len()` elements, and `x` has `op.image_len()`.
            #[doc(alias = "col2im_nd_cpu")]
            fn col2im<T: Element>(op: &Window, columns: read T, x: overwrite T) {
                op.check("col2im", ("x", x), ("columns", columns))
            }

            /// `y ← x ∗ filters + bias`; see [`Convolution`].
            ///
            /// Each element of `y` is one sum, which is rounded once, after the bias is added. If
            /// the images have no channels, `y` is the bias, or 0 if there is no bias. A NaN or an
            /// infinity reaches exactly those elements of `y` that depend on it, even if the other
            /// factor is 0. For a tap in the padding, a device may add 0 times the filter element
            /// or nothing.
            ///
            /// Lengths: `x` has `op.input_len()` elements, `filters` has `op.filter_len()`, `bias`
            /// has `op.outputs()`, and `y` has `op.output_len()`.
            fn convolve<T: Element>(
                op: &Convolution, x: read T, filters: read T, bias: optional T, y: overwrite T
            ) {
                op.check("convolve", ("x", x), ("filters", filters), ("y", y))?;
                check_len("convolve", "bias", op.outputs(), bias.unwrap_or(op.outputs()))
            }

            /// `dx ← the gradient of x`, given the gradient of `y`. The gradient is 0 where no
            /// window covers `x`.
            ///
            /// Lengths: `filters` has `op.filter_len()` elements, `dy` has `op.output_len()`, and
            /// `dx` has `op.input_len()`.
            fn convolve_backward_input<T: Element>(
                op: &Convolution, filters: read T, dy: read T, dx: overwrite T
            ) { op.check("convolve_backward_input", ("dx", dx), ("filters", filters), ("dy", dy)) }

            /// `dfilters ← dfilters + the gradient of the filters`, given the gradient of `y`. An
            /// empty batch leaves `dfilters` unchanged.
            ///
            /// Lengths: `x` has `op.input_len()` elements, `dy` has `op.output_len()`, and
            /// `dfilters` has `op.filter_len()`.
            fn convolve_backward_filters<T: Element>(
                op: &Convolution, x: read T, dy: read T, dfilters: update T
            ) {
                let filters = ("dfilters", dfilters);
                op.check("convolve_backward_filters", ("x", x), filters, ("dy", dy))
            }
        }
    };
}
kernels!(declare_family);
pub(crate) use kernels;
