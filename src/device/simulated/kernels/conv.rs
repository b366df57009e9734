//! Sliding windows: columns and convolution.

use crate::{
    device::SimulatedDevice,
    element::Element,
    error::{Result, check_len},
    host,
    kernel::Conv,
    memory::{View, ViewMut},
    op::{Convolution, Window},
};

impl Conv for SimulatedDevice {
    fn im2col<T: Element>(
        &self,
        op: &Window,
        x: View<'_, T, Self>,
        columns: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        op.check("im2col", ("x", x.len()), ("columns", columns.len()))?;
        let mut launch = self.launch::<T>("im2col")?;
        let (op, x, columns) = (op.clone(), launch.reads(x)?, launch.writes(columns)?);
        launch.queue(move |workers| host::im2col(workers, &op, &x.read(), &mut columns.write()))
    }

    fn col2im<T: Element>(
        &self,
        op: &Window,
        columns: View<'_, T, Self>,
        x: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        op.check("col2im", ("x", x.len()), ("columns", columns.len()))?;
        let mut launch = self.launch::<T>("col2im")?;
        let (op, columns, x) = (op.clone(), launch.reads(columns)?, launch.writes(x)?);
        launch.queue(move |workers| host::col2im(workers, &op, &columns.read(), &mut x.write()))
    }

    fn convolve<T: Element>(
        &self,
        op: &Convolution,
        x: View<'_, T, Self>,
        filters: View<'_, T, Self>,
        bias: Option<View<'_, T, Self>>,
        y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        op.check("convolve", ("x", x.len()), ("filters", filters.len()), ("y", y.len()))?;
        if let Some(bias) = bias {
            check_len("convolve", "bias", op.outputs(), bias.len())?;
        }
        let mut launch = self.launch::<T>("convolve")?;
        let (x, filters) = (launch.reads(x)?, launch.reads(filters)?);
        let bias = match bias {
            Some(bias) => Some(launch.reads(bias)?),
            None => None,
        };
        let (op, y) = (op.clone(), launch.writes(y)?);
        launch.queue(move |workers| {
            let bias = bias.as_ref().map(|bias| bias.read());
            let (x, filters, bias) = (x.read(), filters.read(), bias.as_deref());
            host::convolve(workers, &op, &x, &filters, bias, &mut y.write())
        })
    }

    fn convolve_backward_input<T: Element>(
        &self,
        op: &Convolution,
        filters: View<'_, T, Self>,
        dy: View<'_, T, Self>,
        dx: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        const OP: &str = "convolve_backward_input";
        op.check(OP, ("dx", dx.len()), ("filters", filters.len()), ("dy", dy.len()))?;
        let mut launch = self.launch::<T>(OP)?;
        let (filters, dy) = (launch.reads(filters)?, launch.reads(dy)?);
        let (op, dx) = (op.clone(), launch.writes(dx)?);
        launch.queue(move |workers| {
            host::convolve_backward_input(
                workers,
                &op,
                &filters.read(),
                &dy.read(),
                &mut dx.write(),
            )
        })
    }

    fn convolve_backward_filters<T: Element>(
        &self,
        op: &Convolution,
        x: View<'_, T, Self>,
        dy: View<'_, T, Self>,
        dfilters: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        const OP: &str = "convolve_backward_filters";
        op.check(OP, ("x", x.len()), ("dfilters", dfilters.len()), ("dy", dy.len()))?;
        let mut launch = self.launch::<T>(OP)?;
        let (x, dy) = (launch.reads(x)?, launch.reads(dy)?);
        let (op, dfilters) = (op.clone(), launch.updates(dfilters)?);
        launch.queue(move |workers| {
            host::convolve_backward_filters(
                workers,
                &op,
                &x.read(),
                &dy.read(),
                &mut dfilters.write(),
            )
        })
    }
}
