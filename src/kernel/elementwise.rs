//! Elementwise maps.

use crate::{
    element::Element,
    error::Result,
    host,
    memory::{Memory, Src, View, ViewMut},
    op::{Axis, Binary, Unary},
};

/// Functions of elements, one by one.
pub trait Elementwise: Memory {
    /// `y ← value`
    #[doc(alias = "caffe_set")]
    fn fill<T: Element>(&self, value: T, mut y: ViewMut<'_, T, Self>) -> Result<()> {
        host::fill(self.workers(), value, y.host_write_only()?)
    }

    /// `y ← op(x)`
    #[doc(alias = "caffe_powx")]
    #[doc(alias = "caffe_exp")]
    #[doc(alias = "caffe_cpu_scale")]
    fn unary<T: Element>(
        &self,
        op: Unary<T::Acc>,
        x: Src<'_, T, Self>,
        mut y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        match x {
            Src::From(x) => host::unary(self.workers(), op, x.host()?, y.host_write_only()?),
            Src::InPlace => host::unary_in_place(self.workers(), op, y.host_mut()?),
        }
    }

    /// `y ← a op b`
    #[doc(alias = "caffe_add")]
    #[doc(alias = "caffe_mul")]
    fn binary<T: Element>(
        &self,
        op: Binary<T::Acc>,
        a: Src<'_, T, Self>,
        b: View<'_, T, Self>,
        mut y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let (workers, b) = (self.workers(), b.host()?);
        match a {
            Src::From(a) => host::binary(workers, op, a.host()?, b, y.host_write_only()?),
            Src::InPlace => host::binary_in_place(workers, op, b, y.host_mut()?),
        }
    }

    /// `y[o,e,i] ← a[o,e,i] op b[e]`: `b`, of `axis.extent` elements, along one axis.
    fn broadcast<T: Element>(
        &self,
        op: Binary<T::Acc>,
        axis: &Axis,
        a: Src<'_, T, Self>,
        b: View<'_, T, Self>,
        mut y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let (workers, b) = (self.workers(), b.host()?);
        match a {
            Src::From(a) => host::broadcast(workers, op, axis, a.host()?, b, y.host_write_only()?),
            Src::InPlace => host::broadcast_in_place(workers, op, axis, b, y.host_mut()?),
        }
    }

    /// `y ← x` in another element type, rounded once.
    fn convert<T: Element, U: Element>(
        &self,
        x: View<'_, T, Self>,
        mut y: ViewMut<'_, U, Self>,
    ) -> Result<()> {
        host::convert(self.workers(), x.host()?, y.host_write_only()?)
    }
}
