//! Elementwise maps.

use crate::{
    element::{Element, Storable},
    error::Result,
    kernel::fallback,
    memory::{Memory, Src, View, ViewMut},
    op::{Axis, Binary, Lstm, Unary},
};

/// Functions of elements, one by one.
pub trait Elementwise: Memory {
    /// `y ← value`
    #[doc(alias = "caffe_set")]
    #[track_caller]
    fn fill<T: Element>(&self, value: T, y: ViewMut<'_, T, Self>) -> Result<()> {
        fallback::fill(self, value, y)
    }

    /// `y ← op(x)`
    #[doc(alias = "caffe_powx")]
    #[doc(alias = "caffe_exp")]
    #[doc(alias = "caffe_cpu_scale")]
    #[track_caller]
    fn unary<T: Element>(
        &self,
        op: Unary<T::Acc>,
        x: Src<'_, T, Self>,
        y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        fallback::unary(self, op, x, y)
    }

    /// `y ← a op b`
    #[doc(alias = "caffe_add")]
    #[doc(alias = "caffe_mul")]
    #[track_caller]
    fn binary<T: Element>(
        &self,
        op: Binary<T::Acc>,
        a: Src<'_, T, Self>,
        b: View<'_, T, Self>,
        y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        fallback::binary(self, op, a, b, y)
    }

    /// `y[o,e,i] ← a[o,e,i] op b[e]`: `b`, of `axis.extent` elements, along one axis.
    #[track_caller]
    fn broadcast<T: Element>(
        &self,
        op: Binary<T::Acc>,
        axis: &Axis,
        a: Src<'_, T, Self>,
        b: View<'_, T, Self>,
        y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        fallback::broadcast(self, op, axis, a, b, y)
    }

    /// `y[o,e,i] ← x[o,e,i] · scale[e] + shift[e]`: both, of `axis.extent` elements, along one axis.
    #[track_caller]
    fn affine<T: Element>(
        &self,
        axis: &Axis,
        x: Src<'_, T, Self>,
        scale: View<'_, T, Self>,
        shift: View<'_, T, Self>,
        y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        fallback::affine(self, axis, x, scale, shift, y)
    }

    /// `y ← x` in another element type, rounded once.
    #[track_caller]
    fn convert<T: Element, U: Element>(
        &self,
        x: View<'_, T, Self>,
        y: ViewMut<'_, U, Self>,
    ) -> Result<()> {
        fallback::convert(self, x, y)
    }

    /// `y ← x`, whole numbers such as places and counts, as elements, rounded once.
    #[track_caller]
    fn convert_integers<N: Storable + Into<f64>, T: Element>(
        &self,
        x: View<'_, N, Self>,
        y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        fallback::convert_integers(self, x, y)
    }

    /// A time step as [`Lstm`] says: `gates ← their activations`, and from them `c` and `h`.
    #[track_caller]
    fn lstm<T: Element>(
        &self,
        op: &Lstm,
        c_prev: View<'_, T, Self>,
        cont: View<'_, T, Self>,
        gates: ViewMut<'_, T, Self>,
        c: ViewMut<'_, T, Self>,
        h: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        fallback::lstm(self, op, c_prev, cont, gates, c, h)
    }

    /// A time step back: `gates`, as [`lstm`](Self::lstm) left them, become the gradients of what
    /// they were made of, and `dc`, the gradient of `c`, that of `c_prev`.
    #[track_caller]
    fn lstm_backward<T: Element>(
        &self,
        op: &Lstm,
        c_prev: View<'_, T, Self>,
        c: View<'_, T, Self>,
        dh: View<'_, T, Self>,
        dc: ViewMut<'_, T, Self>,
        gates: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        fallback::lstm_backward(self, op, c_prev, c, dh, dc, gates)
    }
}
