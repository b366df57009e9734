//! Pooling.

use crate::{
    device::SimulatedDevice,
    element::Element,
    error::{Result, check_len},
    host,
    kernel::Pooling,
    memory::{View, ViewMut},
    op::Pool2d,
};

impl Pooling for SimulatedDevice {
    fn max_pool<T: Element>(
        &self,
        op: &Pool2d,
        x: View<'_, T, Self>,
        y: ViewMut<'_, T, Self>,
        mask: ViewMut<'_, i32, Self>,
    ) -> Result<()> {
        op.check("max_pool", ("x", x.len()), ("y", y.len()))?;
        check_len("max_pool", "mask", op.output_len(), mask.len())?;
        let mut launch = self.launch::<T>("max_pool")?;
        let (op, x) = (*op, launch.reads(x)?);
        let (y, mask) = (launch.writes(y)?, launch.writes(mask)?);
        launch.queue(move |workers| {
            host::max_pool(workers, &op, &x.read(), &mut y.write(), &mut mask.write())
        })
    }

    fn max_pool_backward<T: Element>(
        &self,
        op: &Pool2d,
        dy: View<'_, T, Self>,
        mask: View<'_, i32, Self>,
        dx: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        op.check("max_pool_backward", ("dx", dx.len()), ("dy", dy.len()))?;
        check_len("max_pool_backward", "mask", op.output_len(), mask.len())?;
        let mut launch = self.launch::<T>("max_pool_backward")?;
        let (op, dy) = (*op, launch.reads(dy)?);
        let (mask, dx) = (launch.reads(mask)?, launch.writes(dx)?);
        launch.queue(move |workers| {
            host::max_pool_backward(workers, &op, &dy.read(), &mask.read(), &mut dx.write())
        })
    }

    fn average_pool<T: Element>(
        &self,
        op: &Pool2d,
        x: View<'_, T, Self>,
        y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        op.check("average_pool", ("x", x.len()), ("y", y.len()))?;
        let mut launch = self.launch::<T>("average_pool")?;
        let (op, x, y) = (*op, launch.reads(x)?, launch.writes(y)?);
        launch.queue(move |workers| host::average_pool(workers, &op, &x.read(), &mut y.write()))
    }

    fn average_pool_backward<T: Element>(
        &self,
        op: &Pool2d,
        dy: View<'_, T, Self>,
        dx: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        op.check("average_pool_backward", ("dx", dx.len()), ("dy", dy.len()))?;
        let mut launch = self.launch::<T>("average_pool_backward")?;
        let (op, dy, dx) = (*op, launch.reads(dy)?, launch.writes(dx)?);
        launch.queue(move |workers| {
            host::average_pool_backward(workers, &op, &dy.read(), &mut dx.write())
        })
    }

    fn stochastic_pool<T: Element>(
        &self,
        op: &Pool2d,
        x: View<'_, T, Self>,
        u: View<'_, f32, Self>,
        y: ViewMut<'_, T, Self>,
        mask: ViewMut<'_, i32, Self>,
    ) -> Result<()> {
        op.check("stochastic_pool", ("x", x.len()), ("y", y.len()))?;
        check_len("stochastic_pool", "u", op.output_len(), u.len())?;
        check_len("stochastic_pool", "mask", op.output_len(), mask.len())?;
        let mut launch = self.launch::<T>("stochastic_pool")?;
        let (op, x, u) = (*op, launch.reads(x)?, launch.reads(u)?);
        let (y, mask) = (launch.writes(y)?, launch.writes(mask)?);
        launch.queue(move |workers| {
            let (x, u) = (x.read(), u.read());
            host::stochastic_pool(workers, &op, &x, &u, &mut y.write(), &mut mask.write())
        })
    }
}
