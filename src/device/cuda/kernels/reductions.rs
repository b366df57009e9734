//! Launches of reductions along axes.

use super::reduce_launch::{Layout, ReductionLaunch};
use crate::{
    device::CudaDevice,
    element::Element,
    error::Result,
    kernel::{Reductions, fallback},
    memory::{View, ViewMut},
    op::{Axis, Reduce, TopK},
};

/// Returns the layout of reductions over all axes but `axis`.
fn layout_to_axis(axis: &Axis) -> Layout {
    let Axis { extent, inner, .. } = *axis;
    match inner {
        1 => Layout::Columns { inner: extent },
        _ => Layout::Rows { q_step: inner, run: inner, run_step: extent * inner, steps: [1, 1] },
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
        op.check(axis, x.len(), y.len())?;
        let rule = match op {
            Reduce::Sum | Reduce::Mean => "sum",
            Reduce::AbsSum => "abs_sum",
            // Without a second operand, the kernel `dot` multiplies the first operand by itself.
            Reduce::SumSq => "dot",
            Reduce::Max | Reduce::Min => op.name(),
        };
        let mut reduction = ReductionLaunch::new(op.kernel_name(), rule);
        if op == Reduce::Mean {
            reduction.divisor = T::acc(axis.extent as f64);
        }
        let Axis { extent, inner, .. } = *axis;
        let layout = match inner {
            1 => Layout::Rows { q_step: extent, run: extent, run_step: 0, steps: [1, 1] },
            _ => Layout::Columns { inner },
        };
        self.reduce_to(reduction, (axis.reduced_count(), extent), layout, (x, None), y)
    }

    fn sum_to_axis<T: Element>(
        &self,
        axis: &Axis,
        beta: T::Acc,
        x: View<'_, T, Self>,
        y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        axis.check_counts("sum_to_axis", &[("x", x.len())])?;
        axis.check_extents("sum_to_axis", &[("y", y.len())])?;
        let reduction = ReductionLaunch { beta, ..ReductionLaunch::new("sum_to_axis", "sum") };
        let extents = (axis.extent, axis.reduced_count());
        self.reduce_to(reduction, extents, layout_to_axis(axis), (x, None), y)
    }

    fn dot_to_axis<T: Element>(
        &self,
        axis: &Axis,
        beta: T::Acc,
        a: View<'_, T, Self>,
        b: View<'_, T, Self>,
        y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        axis.check_counts("dot_to_axis", &[("a", a.len()), ("b", b.len())])?;
        axis.check_extents("dot_to_axis", &[("y", y.len())])?;
        let reduction = ReductionLaunch { beta, ..ReductionLaunch::new("dot_to_axis", "dot") };
        let extents = (axis.extent, axis.reduced_count());
        self.reduce_to(reduction, extents, layout_to_axis(axis), (a, Some(b)), y)
    }

    fn arg_max<T: Element>(
        &self,
        axis: &Axis,
        x: View<'_, T, Self>,
        mut y: ViewMut<'_, u32, Self>,
    ) -> Result<()> {
        axis.check_arg_max(x.len(), y.len())?;
        let lanes = if axis.inner == 1 { 32 } else { 1 };
        let launch = self.kernel::<T>("arg_max")?.axis(axis).read(x.device()?);
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
        let launch = self.kernel::<T>("top_k")?.axis(&op.axis).size(op.k);
        values.reserve_device()?;
        places.reserve_device()?;
        let launch = launch.read(x.device()?).write(values.device_write_only()?);
        let launch = launch.write(places.device_write_only()?);
        launch.grid_1d(op.axis.reduced_count().saturating_mul(32))
    }
}
