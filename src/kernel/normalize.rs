//! Normalisation.

use crate::{
    element::Element,
    error::Result,
    kernel::fallback,
    memory::{Memory, Src, View, ViewMut},
    op::{Axis, Lrn, Standardize},
};

/// Elements in relation to their neighbours.
pub trait Normalize: Memory {
    /// `y ← eˣ / Σ eˣ` along an axis.
    #[track_caller]
    fn softmax<T: Element>(
        &self,
        axis: &Axis,
        x: Src<'_, T, Self>,
        y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        fallback::softmax(self, axis, x, y)
    }

    /// `dx ← (dy − Σ dy·y) · y` along an axis; `y` is the softmax.
    #[track_caller]
    fn softmax_backward<T: Element>(
        &self,
        axis: &Axis,
        y: View<'_, T, Self>,
        dy: Src<'_, T, Self>,
        dx: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        fallback::softmax_backward(self, axis, y, dy, dx)
    }

    /// `y ← x · s^(−β)`, and `scale ← s`, as [`Lrn`] says.
    #[track_caller]
    fn lrn<T: Element>(
        &self,
        op: &Lrn,
        x: View<'_, T, Self>,
        scale: ViewMut<'_, T, Self>,
        y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        fallback::lrn(self, op, x, scale, y)
    }

    /// `dx ← the gradient of x`, given that of `y` and what [`lrn`](Self::lrn) left in `y` and
    /// `scale`.
    #[track_caller]
    fn lrn_backward<T: Element>(
        &self,
        op: &Lrn,
        x: View<'_, T, Self>,
        y: View<'_, T, Self>,
        scale: View<'_, T, Self>,
        dy: View<'_, T, Self>,
        dx: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        fallback::lrn_backward(self, op, x, y, scale, dy, dx)
    }

    /// `mean[e], variance[e] ← those of x[o,e,i] over o and i`; the variance divides by the
    /// number of elements.
    #[track_caller]
    fn moments<T: Element>(
        &self,
        axis: &Axis,
        x: View<'_, T, Self>,
        mean: ViewMut<'_, T, Self>,
        variance: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        fallback::moments(self, axis, x, mean, variance)
    }

    /// `y ← (x − mean) · rate`, as [`Standardize`] says.
    #[track_caller]
    fn standardize<T: Element>(
        &self,
        op: &Standardize,
        x: Src<'_, T, Self>,
        mean: View<'_, T, Self>,
        variance: View<'_, T, Self>,
        y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        fallback::standardize(self, op, x, mean, variance, y)
    }

    /// `dx ← the gradient of x`, given `dy` and the [`moments`](Self::moments) of `x`, as
    /// [`Standardize`] says.
    #[track_caller]
    fn standardize_backward<T: Element>(
        &self,
        op: &Standardize,
        x: View<'_, T, Self>,
        mean: View<'_, T, Self>,
        variance: View<'_, T, Self>,
        dy: Src<'_, T, Self>,
        dx: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        fallback::standardize_backward(self, op, x, mean, variance, dy, dx)
    }
}
