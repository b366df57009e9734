//! Reductions.

use crate::{
    element::Element,
    error::Result,
    kernel::fallback,
    memory::{Memory, View, ViewMut},
    op::{Axis, Reduce, TopK},
};

/// Functions of many elements, whose results stay on the device.
pub trait Reductions: Memory {
    /// `y[o,i] ← op over e of x[o,e,i]`: the axis disappears.
    #[track_caller]
    fn reduce<T: Element>(
        &self,
        op: Reduce,
        axis: &Axis,
        x: View<'_, T, Self>,
        y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        fallback::reduce(self, op, axis, x, y)
    }

    /// `y[e] ← β·y[e] + Σ over o, i of x[o,e,i]`: only the axis remains, as in the gradient of
    /// a bias. β = 0 does not read `y`.
    #[track_caller]
    fn sum_to_axis<T: Element>(
        &self,
        axis: &Axis,
        beta: T::Acc,
        x: View<'_, T, Self>,
        y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        fallback::sum_to_axis(self, axis, beta, x, y)
    }

    /// `y[e] ← β·y[e] + Σ over o, i of a[o,e,i]·b[o,e,i]`, as in the gradient of a factor. β = 0
    /// does not read `y`.
    #[track_caller]
    fn dot_to_axis<T: Element>(
        &self,
        axis: &Axis,
        beta: T::Acc,
        a: View<'_, T, Self>,
        b: View<'_, T, Self>,
        y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        fallback::dot_to_axis(self, axis, beta, a, b, y)
    }

    /// `y[o,i] ← the least e whose x[o,e,i] is greatest`.
    #[track_caller]
    fn arg_max<T: Element>(
        &self,
        axis: &Axis,
        x: View<'_, T, Self>,
        y: ViewMut<'_, u32, Self>,
    ) -> Result<()> {
        fallback::arg_max(self, axis, x, y)
    }

    /// `values[o,j,i], places[o,j,i] ← the j-th greatest of x[o,:,i] and its index`, held in an
    /// element, as [`TopK`] says.
    #[track_caller]
    fn top_k<T: Element>(
        &self,
        op: &TopK,
        x: View<'_, T, Self>,
        values: ViewMut<'_, T, Self>,
        places: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        fallback::top_k(self, op, x, values, places)
    }
}
