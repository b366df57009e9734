//! Normalisation.

use crate::{
    device::SimulatedDevice,
    element::Element,
    error::{Error, Result, check_len},
    host,
    kernel::Normalize,
    memory::{Src, View, ViewMut},
    op::{Axis, Lrn, Standardize},
};

impl Normalize for SimulatedDevice {
    fn softmax<T: Element>(
        &self,
        axis: &Axis,
        x: Src<'_, T, Self>,
        y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        if let Src::View(x) = x {
            check_len("softmax", "x", axis.count(), x.len())?;
        }
        check_len("softmax", "y", axis.count(), y.len())?;
        let mut launch = self.launch::<T>("softmax")?;
        let axis = *axis;
        match x {
            Src::View(x) => {
                let (x, y) = (launch.reads(x)?, launch.writes(y)?);
                launch
                    .queue(move |workers| host::softmax(workers, &axis, &x.read(), &mut y.write()))
            }
            Src::InPlace => {
                let y = launch.updates(y)?;
                launch.queue(move |workers| host::softmax_in_place(workers, &axis, &mut y.write()))
            }
        }
    }

    fn softmax_backward<T: Element>(
        &self,
        axis: &Axis,
        y: View<'_, T, Self>,
        dy: Src<'_, T, Self>,
        dx: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        if let Src::View(dy) = dy {
            check_len("softmax_backward", "dy", axis.count(), dy.len())?;
        }
        check_len("softmax_backward", "dx", axis.count(), dx.len())?;
        check_len("softmax_backward", "y", axis.count(), y.len())?;
        let mut launch = self.launch::<T>("softmax_backward")?;
        let (axis, y) = (*axis, launch.reads(y)?);
        match dy {
            Src::View(dy) => {
                let (dy, dx) = (launch.reads(dy)?, launch.writes(dx)?);
                launch.queue(move |workers| {
                    host::softmax_backward(workers, &axis, &y.read(), &dy.read(), &mut dx.write())
                })
            }
            Src::InPlace => {
                let dx = launch.updates(dx)?;
                launch.queue(move |workers| {
                    host::softmax_backward_in_place(workers, &axis, &y.read(), &mut dx.write())
                })
            }
        }
    }

    fn lrn<T: Element>(
        &self,
        op: &Lrn,
        x: View<'_, T, Self>,
        scale: ViewMut<'_, T, Self>,
        y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        op.check()?;
        for (operand, len) in [("x", x.len()), ("scale", scale.len()), ("y", y.len())] {
            check_len("lrn", operand, op.count(), len)?;
        }
        let mut launch = self.launch::<T>("lrn")?;
        let (op, x) = (*op, launch.reads(x)?);
        let (scale, y) = (launch.writes(scale)?, launch.writes(y)?);
        launch.queue(move |workers| {
            host::lrn(workers, &op, &x.read(), &mut scale.write(), &mut y.write())
        })
    }

    fn lrn_backward<T: Element>(
        &self,
        op: &Lrn,
        x: View<'_, T, Self>,
        y: View<'_, T, Self>,
        scale: View<'_, T, Self>,
        dy: View<'_, T, Self>,
        dx: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        op.check()?;
        let inputs = [("x", x.len()), ("y", y.len()), ("scale", scale.len()), ("dy", dy.len())];
        for (operand, len) in inputs.into_iter().chain([("dx", dx.len())]) {
            check_len("lrn_backward", operand, op.count(), len)?;
        }
        let mut launch = self.launch::<T>("lrn_backward")?;
        let (op, x, y) = (*op, launch.reads(x)?, launch.reads(y)?);
        let (scale, dy, dx) = (launch.reads(scale)?, launch.reads(dy)?, launch.writes(dx)?);
        launch.queue(move |workers| {
            let (x, y, scale, dy) = (x.read(), y.read(), scale.read(), dy.read());
            host::lrn_backward(workers, &op, &x, &y, &scale, &dy, &mut dx.write())
        })
    }

    fn moments<T: Element>(
        &self,
        axis: &Axis,
        x: View<'_, T, Self>,
        mean: ViewMut<'_, T, Self>,
        variance: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        check_len("moments", "x", axis.count(), x.len())?;
        check_len("moments", "mean", axis.extent, mean.len())?;
        check_len("moments", "variance", axis.extent, variance.len())?;
        if axis.extent != 0 && axis.reduced_count() == 0 {
            return Err(Error::invalid_input("moments", "there are no elements to take a mean of"));
        }
        let mut launch = self.launch::<T>("moments")?;
        let (axis, x) = (*axis, launch.reads(x)?);
        let (mean, variance) = (launch.writes(mean)?, launch.writes(variance)?);
        launch.queue(move |workers| {
            host::moments(workers, &axis, &x.read(), &mut mean.write(), &mut variance.write())
        })
    }

    fn standardize<T: Element>(
        &self,
        op: &Standardize,
        x: Src<'_, T, Self>,
        mean: View<'_, T, Self>,
        variance: View<'_, T, Self>,
        y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        if let Src::View(x) = x {
            check_len("standardize", "x", op.axis.count(), x.len())?;
        }
        check_len("standardize", "mean", op.axis.extent, mean.len())?;
        check_len("standardize", "variance", op.axis.extent, variance.len())?;
        check_len("standardize", "y", op.axis.count(), y.len())?;
        let mut launch = self.launch::<T>("standardize")?;
        let (op, mean, variance) = (*op, launch.reads(mean)?, launch.reads(variance)?);
        match x {
            Src::View(x) => {
                let (x, y) = (launch.reads(x)?, launch.writes(y)?);
                launch.queue(move |workers| {
                    let (x, mean, variance) = (x.read(), mean.read(), variance.read());
                    host::standardize(workers, &op, &x, &mean, &variance, &mut y.write())
                })
            }
            Src::InPlace => {
                let y = launch.updates(y)?;
                launch.queue(move |workers| {
                    let (mean, variance) = (mean.read(), variance.read());
                    host::standardize_in_place(workers, &op, &mean, &variance, &mut y.write())
                })
            }
        }
    }

    fn standardize_backward<T: Element>(
        &self,
        op: &Standardize,
        x: View<'_, T, Self>,
        mean: View<'_, T, Self>,
        variance: View<'_, T, Self>,
        dy: Src<'_, T, Self>,
        dx: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        if let Src::View(dy) = dy {
            check_len("standardize_backward", "dy", op.axis.count(), dy.len())?;
        }
        for (operand, len) in [("x", x.len()), ("dx", dx.len())] {
            check_len("standardize_backward", operand, op.axis.count(), len)?;
        }
        for (operand, len) in [("mean", mean.len()), ("variance", variance.len())] {
            check_len("standardize_backward", operand, op.axis.extent, len)?;
        }
        let mut launch = self.launch::<T>("standardize_backward")?;
        let (op, x) = (*op, launch.reads(x)?);
        let (mean, variance) = (launch.reads(mean)?, launch.reads(variance)?);
        match dy {
            Src::View(dy) => {
                let (dy, dx) = (launch.reads(dy)?, launch.writes(dx)?);
                launch.queue(move |workers| {
                    let (x, mean, variance) = (x.read(), mean.read(), variance.read());
                    let (dy, mut dx) = (dy.read(), dx.write());
                    host::standardize_backward(workers, &op, &x, &mean, &variance, &dy, &mut dx)
                })
            }
            Src::InPlace => {
                let dx = launch.updates(dx)?;
                launch.queue(move |workers| {
                    let (x, mean, variance) = (x.read(), mean.read(), variance.read());
                    let mut dx = dx.write();
                    host::standardize_backward_in_place(workers, &op, &x, &mean, &variance, &mut dx)
                })
            }
        }
    }
}
