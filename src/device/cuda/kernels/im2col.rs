//! Launches of im2col and col2im (`kernels/im2col.cu`), and dispatch of convolutions.

use super::{convolution::Groups, window_axis::window_axes};
use crate::{
    device::CudaDevice,
    element::Element,
    error::{Result, check_len},
    kernel::{Conv, fallback},
    memory::{View, ViewMut},
    op::{Convolution, Window},
};

impl Conv for CudaDevice {
    fn im2col<T: Element>(
        &self,
        op: &Window,
        x: View<'_, T, Self>,
        mut columns: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let Some(axes) = window_axes(op) else { return fallback::im2col(self, op, x, columns) };
        op.check("im2col", ("x", x.len()), ("columns", columns.len()))?;
        let launch = self.kernel::<T>("im2col")?.arg(axes).size(op.channels());
        let launch = launch.read(x.device()?).write(columns.device_write_only()?);
        launch.grid_1d(op.channels() * op.positions())
    }

    fn col2im<T: Element>(
        &self,
        op: &Window,
        columns: View<'_, T, Self>,
        mut x: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let Some(axes) = window_axes(op) else { return fallback::col2im(self, op, columns, x) };
        op.check("col2im", ("x", x.len()), ("columns", columns.len()))?;
        let launch = self.kernel::<T>("col2im")?.arg(axes).size(op.channels());
        let launch = launch.read(columns.device()?).write(x.device_write_only()?);
        launch.grid_1d(op.image_len())
    }

    fn convolve<T: Element>(
        &self,
        op: &Convolution,
        x: View<'_, T, Self>,
        filters: View<'_, T, Self>,
        bias: Option<View<'_, T, Self>>,
        y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let Some(groups) = Groups::new::<T>(self, op) else {
            return fallback::convolve(self, op, x, filters, bias, y);
        };
        op.check("convolve", ("x", x.len()), ("filters", filters.len()), ("y", y.len()))?;
        if let Some(bias) = &bias {
            check_len("convolve", "bias", op.outputs(), bias.len())?;
        }
        groups.convolve(self, x, filters, bias, y)
    }

    fn convolve_backward_input<T: Element>(
        &self,
        op: &Convolution,
        filters: View<'_, T, Self>,
        dy: View<'_, T, Self>,
        dx: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let Some(groups) = Groups::new::<T>(self, op) else {
            return fallback::convolve_backward_input(self, op, filters, dy, dx);
        };
        let lengths = [("dx", dx.len()), ("filters", filters.len()), ("dy", dy.len())];
        op.check("convolve_backward_input", lengths[0], lengths[1], lengths[2])?;
        groups.backward_input(self, filters, dy, dx)
    }

    fn convolve_backward_filters<T: Element>(
        &self,
        op: &Convolution,
        x: View<'_, T, Self>,
        dy: View<'_, T, Self>,
        dfilters: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let Some(groups) = Groups::new::<T>(self, op) else {
            return fallback::convolve_backward_filters(self, op, x, dy, dfilters);
        };
        let lengths = [("x", x.len()), ("dfilters", dfilters.len()), ("dy", dy.len())];
        op.check("convolve_backward_filters", lengths[0], lengths[1], lengths[2])?;
        groups.backward_filters(self, x, dy, dfilters)
    }
}
