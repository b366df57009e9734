//! Reductions.

use super::fold::{Fold, Items};
use crate::{
    device::CudaDevice,
    element::Element,
    error::{Error, Result, expect_len},
    kernel::{Reductions, fallback},
    memory::{View, ViewMut},
    op::{Axis, Reduce, TopK},
};
use bytemuck::{Pod, Zeroable};

/// An axis, as the kernels declare it.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Extents {
    outer: u64,
    extent: u64,
    inner: u64,
}

impl Extents {
    fn of(axis: &Axis) -> Self {
        let Axis { outer, extent, inner } = *axis;
        Self { outer: outer as u64, extent: extent as u64, inner: inner as u64 }
    }
}

/// Where the items of `y[e]` are, which is of all elements but those along the axis.
fn onto(axis: &Axis) -> Items {
    let Axis { extent, inner, .. } = *axis;
    match inner {
        1 => Items::Columns { inner: extent },
        _ => Items::Rows { q_step: inner, run: inner, run_step: extent * inner, steps: [1, 1] },
    }
}

impl Reductions for CudaDevice {
    fn reduce<T: Element>(
        &self,
        op: Reduce,
        axis: &Axis,
        x: View<'_, T, Self>,
        y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        expect_len(op.name(), "x", axis.count(), x.len())?;
        expect_len(op.name(), "y", axis.rest(), y.len())?;
        let rule = match op {
            Reduce::Sum | Reduce::Mean => "sum",
            Reduce::AbsSum => "abs_sum",
            // Of two operands, of which one is left away.
            Reduce::SumSq => "dot",
            Reduce::Max | Reduce::Min => {
                axis.expect_non_empty(op.name())?;
                op.name()
            }
        };
        let mut fold = Fold::new("reduce", rule);
        if op == Reduce::Mean {
            fold.divisor = T::acc(axis.extent as f64);
        }
        let Axis { extent, inner, .. } = *axis;
        let place = match inner {
            1 => Items::Rows { q_step: extent, run: extent, run_step: 0, steps: [1, 1] },
            _ => Items::Columns { inner },
        };
        self.fold(fold, (axis.rest(), extent), place, (x, None), y)
    }

    fn sum_onto<T: Element>(
        &self,
        axis: &Axis,
        beta: T::Acc,
        x: View<'_, T, Self>,
        y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        expect_len("sum_onto", "x", axis.count(), x.len())?;
        expect_len("sum_onto", "y", axis.extent, y.len())?;
        let fold = Fold { beta, ..Fold::new("sum_onto", "sum") };
        self.fold(fold, (axis.extent, axis.rest()), onto(axis), (x, None), y)
    }

    fn dot_onto<T: Element>(
        &self,
        axis: &Axis,
        beta: T::Acc,
        a: View<'_, T, Self>,
        b: View<'_, T, Self>,
        y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        expect_len("dot_onto", "a", axis.count(), a.len())?;
        expect_len("dot_onto", "b", axis.count(), b.len())?;
        expect_len("dot_onto", "y", axis.extent, y.len())?;
        let fold = Fold { beta, ..Fold::new("dot_onto", "dot") };
        self.fold(fold, (axis.extent, axis.rest()), onto(axis), (a, Some(b)), y)
    }

    fn arg_max<T: Element>(
        &self,
        axis: &Axis,
        x: View<'_, T, Self>,
        mut y: ViewMut<'_, u32, Self>,
    ) -> Result<()> {
        expect_len("arg_max", "x", axis.count(), x.len())?;
        expect_len("arg_max", "y", axis.rest(), y.len())?;
        axis.expect_non_empty("arg_max")?;
        if u32::try_from(axis.extent).is_err() {
            return Err(Error::value("arg_max", format!("an axis of {} elements", axis.extent)));
        }
        let lanes = if axis.inner == 1 { 32 } else { 1 };
        let launch = self.kernel::<T>("arg_max")?.arg(Extents::of(axis)).read(x.device()?);
        launch.write(y.device_write_only()?).each(axis.rest().saturating_mul(lanes))
    }

    fn top_k<T: Element>(
        &self,
        op: &TopK,
        x: View<'_, T, Self>,
        mut values: ViewMut<'_, T, Self>,
        mut places: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        if u32::try_from(op.axis.extent).is_err() {
            return fallback::top_k(self, op, x, values, places);
        }
        op.check(x.len(), values.len(), places.len())?;
        let launch = self.kernel::<T>("top_k")?.arg(Extents::of(&op.axis)).size(op.k);
        let launch = launch.read(x.device()?).write(values.device_write_only()?);
        let launch = launch.write(places.device_write_only()?);
        launch.each(op.axis.rest().saturating_mul(32))
    }
}
