//! Reductions.

use crate::{
    device::SimulatedDevice,
    element::Element,
    error::{Result, check_len},
    host,
    kernel::Reductions,
    memory::{View, ViewMut},
    op::{Axis, Reduce, TopK},
};
use num_traits::Zero;

impl Reductions for SimulatedDevice {
    fn reduce<T: Element>(
        &self,
        op: Reduce,
        axis: &Axis,
        x: View<'_, T, Self>,
        y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        check_len(op.name(), "x", axis.count(), x.len())?;
        check_len(op.name(), "y", axis.reduced_count(), y.len())?;
        if matches!(op, Reduce::Max | Reduce::Min) {
            axis.check_non_empty(op.name())?;
        }
        let mut launch = self.launch::<T>("reduce")?;
        let (axis, x, y) = (*axis, launch.reads(x)?, launch.writes(y)?);
        launch.queue(move |workers| host::reduce(workers, op, &axis, &x.read(), &mut y.write()))
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
        let mut launch = self.launch::<T>("sum_to_axis")?;
        let (axis, x, y) = (*axis, launch.reads(x)?, launch.writes_if(beta.is_zero(), y)?);
        launch.queue(move |workers| {
            host::sum_to_axis(workers, &axis, beta, &x.read(), &mut y.write())
        })
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
        let mut launch = self.launch::<T>("dot_to_axis")?;
        let (axis, a, b) = (*axis, launch.reads(a)?, launch.reads(b)?);
        let y = launch.writes_if(beta.is_zero(), y)?;
        launch.queue(move |workers| {
            host::dot_to_axis(workers, &axis, beta, &a.read(), &b.read(), &mut y.write())
        })
    }

    fn arg_max<T: Element>(
        &self,
        axis: &Axis,
        x: View<'_, T, Self>,
        y: ViewMut<'_, u32, Self>,
    ) -> Result<()> {
        check_len("arg_max", "x", axis.count(), x.len())?;
        check_len("arg_max", "y", axis.reduced_count(), y.len())?;
        axis.check_non_empty("arg_max")?;
        let mut launch = self.launch::<T>("arg_max")?;
        let (axis, x, y) = (*axis, launch.reads(x)?, launch.writes(y)?);
        launch.queue(move |workers| host::arg_max(workers, &axis, &x.read(), &mut y.write()))
    }

    fn top_k<T: Element>(
        &self,
        op: &TopK,
        x: View<'_, T, Self>,
        values: ViewMut<'_, T, Self>,
        places: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        op.check(x.len(), values.len(), places.len())?;
        let mut launch = self.launch::<T>("top_k")?;
        let (op, x) = (*op, launch.reads(x)?);
        let (values, places) = (launch.writes(values)?, launch.writes(places)?);
        launch.queue(move |workers| {
            host::top_k(workers, &op, &x.read(), &mut values.write(), &mut places.write())
        })
    }
}
