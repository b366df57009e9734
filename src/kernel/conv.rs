//! Sliding windows: columns and convolution.

use crate::{
    element::Element,
    error::Result,
    kernel::{Elementwise, fallback},
    memory::{Memory, Src, View, ViewMut},
    op::{Convolution, Unary, Window},
};

/// Sliding windows over images of any number of spatial axes.
pub trait Conv: Memory {
    /// `columns ← the windows of x`, one a column; padding reads as zero.
    #[doc(alias = "im2col_nd_cpu")]
    #[track_caller]
    fn im2col<T: Element>(
        &self,
        op: &Window,
        x: View<'_, T, Self>,
        columns: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        fallback::im2col(self, op, x, columns)
    }

    /// `x ← Σ of the columns' elements that were taken from each place`: the transpose of
    /// [`im2col`](Self::im2col).
    #[doc(alias = "col2im_nd_cpu")]
    #[track_caller]
    fn col2im<T: Element>(
        &self,
        op: &Window,
        columns: View<'_, T, Self>,
        x: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        fallback::col2im(self, op, columns, x)
    }

    /// `y ← x ∗ filters + bias`, as [`Convolution`] says.
    #[track_caller]
    fn convolve<T: Element>(
        &self,
        op: &Convolution,
        x: View<'_, T, Self>,
        filters: View<'_, T, Self>,
        bias: Option<View<'_, T, Self>>,
        y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        fallback::convolve(self, op, x, filters, bias, y)
    }

    /// `y ← function(x ∗ filters + bias)`, with the bits that [`convolve`](Self::convolve) and then
    /// [`unary`](Elementwise::unary) in place give: by default it is these two.
    ///
    /// An override applies the function to results as they are stored, rounded, while they are at
    /// hand.
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

    /// `dx ← the gradient of x`, given that of `y`.
    #[track_caller]
    fn convolve_backward_input<T: Element>(
        &self,
        op: &Convolution,
        filters: View<'_, T, Self>,
        dy: View<'_, T, Self>,
        dx: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        fallback::convolve_backward_input(self, op, filters, dy, dx)
    }

    /// `dfilters ← dfilters + the gradient of the filters`, given that of `y`.
    #[track_caller]
    fn convolve_backward_filters<T: Element>(
        &self,
        op: &Convolution,
        x: View<'_, T, Self>,
        dy: View<'_, T, Self>,
        dfilters: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        fallback::convolve_backward_filters(self, op, x, dy, dfilters)
    }
}
