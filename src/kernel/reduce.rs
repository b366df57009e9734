//! Reductions.

use crate::{
    element::Element,
    error::Result,
    host,
    memory::{Memory, View, ViewMut},
    op::{Axis, Reduce},
};
use num_traits::Zero;

/// Functions of many elements, whose results stay on the device.
pub trait Reductions: Memory {
    /// `y[o,i] ← op over e of x[o,e,i]`: the axis disappears.
    fn reduce<T: Element>(
        &self,
        op: Reduce,
        axis: &Axis,
        x: View<'_, T, Self>,
        mut y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        host::reduce(self.workers(), op, axis, x.host()?, y.host_write_only()?)
    }

    /// `y[e] ← β·y[e] + Σ over o, i of x[o,e,i]`: only the axis remains, as in the gradient of
    /// a bias. β = 0 does not read `y`.
    fn sum_onto<T: Element>(
        &self,
        axis: &Axis,
        beta: T::Acc,
        x: View<'_, T, Self>,
        mut y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let x = x.host()?;
        let y = if beta.is_zero() { y.host_write_only()? } else { y.host_mut()? };
        host::sum_onto(self.workers(), axis, beta, x, y)
    }

    /// `y[o,i] ← the least e whose x[o,e,i] is greatest`.
    fn arg_max<T: Element>(
        &self,
        axis: &Axis,
        x: View<'_, T, Self>,
        mut y: ViewMut<'_, u32, Self>,
    ) -> Result<()> {
        host::arg_max(self.workers(), axis, x.host()?, y.host_write_only()?)
    }
}
