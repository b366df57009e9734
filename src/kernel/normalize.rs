//! Normalisation.

use crate::{
    element::Element,
    error::Result,
    host,
    memory::{Memory, Src, View, ViewMut},
    op::{Axis, Lrn},
};

/// Elements in relation to their neighbours.
pub trait Normalize: Memory {
    /// `y ← eˣ / Σ eˣ` along an axis.
    fn softmax<T: Element>(
        &self,
        axis: &Axis,
        x: Src<'_, T, Self>,
        mut y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        match x {
            Src::From(x) => host::softmax(self.workers(), axis, x.host()?, y.host_write_only()?),
            Src::InPlace => host::softmax_in_place(self.workers(), axis, y.host_mut()?),
        }
    }

    /// `dx ← (dy − Σ dy·y) · y` along an axis; `y` is the softmax.
    fn softmax_backward<T: Element>(
        &self,
        axis: &Axis,
        y: View<'_, T, Self>,
        dy: Src<'_, T, Self>,
        mut dx: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let (workers, y) = (self.workers(), y.host()?);
        match dy {
            Src::From(dy) => {
                host::softmax_backward(workers, axis, y, dy.host()?, dx.host_write_only()?)
            }
            Src::InPlace => host::softmax_backward_in_place(workers, axis, y, dx.host_mut()?),
        }
    }

    /// `y ← x · s^(−β)`, and `scale ← s`, as [`Lrn`] says.
    fn lrn<T: Element>(
        &self,
        op: &Lrn,
        x: View<'_, T, Self>,
        mut scale: ViewMut<'_, T, Self>,
        mut y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let (x, scale, y) = (x.host()?, scale.host_write_only()?, y.host_write_only()?);
        host::lrn(self.workers(), op, x, scale, y)
    }

    /// `dx ← the gradient of x`, given that of `y` and what [`lrn`](Self::lrn) left in `y` and
    /// `scale`.
    fn lrn_backward<T: Element>(
        &self,
        op: &Lrn,
        x: View<'_, T, Self>,
        y: View<'_, T, Self>,
        scale: View<'_, T, Self>,
        dy: View<'_, T, Self>,
        mut dx: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let (x, y, scale, dy) = (x.host()?, y.host()?, scale.host()?, dy.host()?);
        host::lrn_backward(self.workers(), op, x, y, scale, dy, dx.host_write_only()?)
    }

    /// `mean[e], variance[e] ← those of x[o,e,i] over o and i`; the variance divides by the
    /// number of elements.
    fn moments<T: Element>(
        &self,
        axis: &Axis,
        x: View<'_, T, Self>,
        mut mean: ViewMut<'_, T, Self>,
        mut variance: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let (mean, variance) = (mean.host_write_only()?, variance.host_write_only()?);
        host::moments(self.workers(), axis, x.host()?, mean, variance)
    }
}
