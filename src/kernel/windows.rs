//! Sliding windows: columns and convolution.

use crate::{
    element::Element,
    error::Result,
    host,
    memory::{Memory, View, ViewMut},
    op::{Convolution, Window},
};

/// Sliding windows over images of any number of spatial axes.
pub trait Windows: Memory {
    /// `columns ← the windows of x`, one a column; padding reads as zero.
    #[doc(alias = "im2col_nd_cpu")]
    fn im2col<T: Element>(
        &self,
        op: &Window,
        x: View<'_, T, Self>,
        mut columns: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        host::im2col(self.workers(), op, x.host()?, columns.host_write_only()?)
    }

    /// `x ← Σ of the columns' elements that were taken from each place`: the transpose of
    /// [`im2col`](Self::im2col).
    #[doc(alias = "col2im_nd_cpu")]
    fn col2im<T: Element>(
        &self,
        op: &Window,
        columns: View<'_, T, Self>,
        mut x: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        host::col2im(self.workers(), op, columns.host()?, x.host_write_only()?)
    }

    /// `y ← x ∗ filters + bias`, as [`Convolution`] says.
    fn convolve<T: Element>(
        &self,
        op: &Convolution,
        x: View<'_, T, Self>,
        filters: View<'_, T, Self>,
        bias: Option<View<'_, T, Self>>,
        mut y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let bias = bias.map(View::host).transpose()?;
        host::convolve(self.workers(), op, x.host()?, filters.host()?, bias, y.host_write_only()?)
    }

    /// `dx ← the gradient of x`, given that of `y`.
    fn convolve_backward_input<T: Element>(
        &self,
        op: &Convolution,
        filters: View<'_, T, Self>,
        dy: View<'_, T, Self>,
        mut dx: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let (filters, dy) = (filters.host()?, dy.host()?);
        host::convolve_backward_input(self.workers(), op, filters, dy, dx.host_write_only()?)
    }

    /// `dfilters ← dfilters + the gradient of the filters`, given that of `y`.
    fn convolve_backward_filters<T: Element>(
        &self,
        op: &Convolution,
        x: View<'_, T, Self>,
        dy: View<'_, T, Self>,
        mut dfilters: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let (x, dy) = (x.host()?, dy.host()?);
        host::convolve_backward_filters(self.workers(), op, x, dy, dfilters.host_mut()?)
    }
}
