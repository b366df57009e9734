//! Reductions.

use super::reduce_launch::{Items, ReductionLaunch};
use crate::{
    device::CudaDevice,
    element::Element,
    error::{Error, Result, check_len},
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
        check_len(op.name(), "x", axis.count(), x.len())?;
        check_len(op.name(), "y", axis.reduced_count(), y.len())?;
        let rule = match op {
            Reduce::Sum | Reduce::Mean => "sum",
            Reduce::AbsSum => "abs_sum",
            // Of two operands, of which one is left away.
            Reduce::SumSq => "dot",
            Reduce::Max | Reduce::Min => {
                axis.check_non_empty(op.name())?;
                op.name()
            }
        };
        let mut fold = ReductionLaunch::new("reduce", rule);
        if op == Reduce::Mean {
            fold.divisor = T::acc(axis.extent as f64);
        }
        let Axis { extent, inner, .. } = *axis;
        let place = match inner {
            1 => Items::Rows { q_step: extent, run: extent, run_step: 0, steps: [1, 1] },
            _ => Items::Columns { inner },
        };
        self.fold(fold, (axis.reduced_count(), extent), place, (x, None), y)
    }

    fn sum_to_axis<T: Element>(
        &self,
        axis: &Axis,
        beta: T::Acc,
        x: View<'_, T, Self>,
        y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        check_len("sum_to_axis", "x", axis.count(), x.len())?;
        check_len("sum_to_axis", "y", axis.extent, y.len())?;
        let fold = ReductionLaunch { beta, ..ReductionLaunch::new("sum_to_axis", "sum") };
        self.fold(fold, (axis.extent, axis.reduced_count()), onto(axis), (x, None), y)
    }

    fn dot_to_axis<T: Element>(
        &self,
        axis: &Axis,
        beta: T::Acc,
        a: View<'_, T, Self>,
        b: View<'_, T, Self>,
        y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        check_len("dot_to_axis", "a", axis.count(), a.len())?;
        check_len("dot_to_axis", "b", axis.count(), b.len())?;
        check_len("dot_to_axis", "y", axis.extent, y.len())?;
        let fold = ReductionLaunch { beta, ..ReductionLaunch::new("dot_to_axis", "dot") };
        self.fold(fold, (axis.extent, axis.reduced_count()), onto(axis), (a, Some(b)), y)
    }

    fn arg_max<T: Element>(
        &self,
        axis: &Axis,
        x: View<'_, T, Self>,
        mut y: ViewMut<'_, u32, Self>,
    ) -> Result<()> {
        check_len("arg_max", "x", axis.count(), x.len())?;
        check_len("arg_max", "y", axis.reduced_count(), y.len())?;
        axis.check_non_empty("arg_max")?;
        if u32::try_from(axis.extent).is_err() {
            return Err(Error::invalid_input(
                "arg_max",
                format!("an axis of {} elements", axis.extent),
            ));
        }
        let lanes = if axis.inner == 1 { 32 } else { 1 };
        let launch = self.kernel::<T>("arg_max")?.arg(Extents::of(axis)).read(x.device()?);
        launch.write(y.device_write_only()?).grid_1d(axis.reduced_count().saturating_mul(lanes))
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
        launch.grid_1d(op.axis.reduced_count().saturating_mul(32))
    }
}
