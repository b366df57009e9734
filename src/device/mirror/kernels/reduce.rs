//! Reductions.

use crate::{
    device::MirrorDevice,
    element::Element,
    error::{Result, expect_len},
    host,
    kernel::Reductions,
    memory::{View, ViewMut},
    op::{Axis, Reduce, TopK},
};
use num_traits::Zero;

impl Reductions for MirrorDevice {
    fn reduce<T: Element>(
        &self,
        op: Reduce,
        axis: &Axis,
        x: View<'_, T, Self>,
        y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        expect_len(op.name(), "x", axis.count(), x.len())?;
        expect_len(op.name(), "y", axis.rest(), y.len())?;
        if matches!(op, Reduce::Max | Reduce::Min) {
            axis.expect_non_empty(op.name())?;
        }
        let mut launch = self.launch::<T>("reduce")?;
        let (axis, x, y) = (*axis, launch.reads(x)?, launch.writes(y)?);
        launch.queue(move |workers| host::reduce(workers, op, &axis, &x.read(), &mut y.write()))
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
        let mut launch = self.launch::<T>("sum_onto")?;
        let (axis, x, y) = (*axis, launch.reads(x)?, launch.writes_if(beta.is_zero(), y)?);
        launch.queue(move |workers| host::sum_onto(workers, &axis, beta, &x.read(), &mut y.write()))
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
        let mut launch = self.launch::<T>("dot_onto")?;
        let (axis, a, b) = (*axis, launch.reads(a)?, launch.reads(b)?);
        let y = launch.writes_if(beta.is_zero(), y)?;
        launch.queue(move |workers| {
            host::dot_onto(workers, &axis, beta, &a.read(), &b.read(), &mut y.write())
        })
    }

    fn arg_max<T: Element>(
        &self,
        axis: &Axis,
        x: View<'_, T, Self>,
        y: ViewMut<'_, u32, Self>,
    ) -> Result<()> {
        expect_len("arg_max", "x", axis.count(), x.len())?;
        expect_len("arg_max", "y", axis.rest(), y.len())?;
        axis.expect_non_empty("arg_max")?;
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
