//! Columns of images: `kernels/windows.cu`; convolution is in `convolution`.

use super::convolution;
use crate::{
    device::CudaDevice,
    element::Element,
    error::{Result, check_len},
    kernel::{Conv, fallback},
    memory::{View, ViewMut},
    op::{Convolution, SpatialAxis, Window},
};
use bytemuck::{Pod, Zeroable};

/// Axes that kernels know.
pub(super) const AXES: usize = 3;

/// A window along an axis, as the kernels declare it.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
pub(super) struct Along {
    pub input: i32,
    pub output: i32,
    pub kernel: i32,
    pub stride: i32,
    pub pad: i32,
    pub dilation: i32,
}

/// Windows along all axes, those that there are not first: of one element.
///
/// None if there are too many of them, or places in the padded image that are not counted in 32
/// bits.
pub(super) fn along(window: &Window) -> Option<[Along; AXES]> {
    let mut all = [Along { input: 1, output: 1, kernel: 1, stride: 1, pad: 0, dilation: 1 }; AXES];
    let missing = AXES.checked_sub(window.axes().len())?;
    let most = |counts: [usize; 2]| {
        counts[0].checked_mul(counts[1].max(1)).filter(|most| *most <= i32::MAX as usize / 4)
    };
    most([window.plane_len(), window.channels()])?;
    for (i, (axis, &output)) in window.axes().iter().zip(window.output()).enumerate() {
        let &SpatialAxis { input, kernel, stride, pad, dilation } = axis;
        most([output, stride])?;
        most([kernel, dilation])?;
        most([input.checked_add(pad)?, 1])?;
        let count = |count: usize| i32::try_from(count).ok();
        all[missing + i] = Along {
            input: count(input)?,
            output: count(output)?,
            kernel: count(kernel)?,
            stride: count(stride)?,
            pad: count(pad)?,
            dilation: count(dilation)?,
        };
    }
    Some(all)
}

impl Conv for CudaDevice {
    fn im2col<T: Element>(
        &self,
        op: &Window,
        x: View<'_, T, Self>,
        mut columns: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let Some(along) = along(op) else { return fallback::im2col(self, op, x, columns) };
        op.check("im2col", ("x", x.len()), ("columns", columns.len()))?;
        let launch = self.kernel::<T>("im2col")?.arg(along).size(op.channels());
        let launch = launch.read(x.device()?).write(columns.device_write_only()?);
        launch.grid_1d(op.channels() * op.positions())
    }

    fn col2im<T: Element>(
        &self,
        op: &Window,
        columns: View<'_, T, Self>,
        mut x: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let Some(along) = along(op) else { return fallback::col2im(self, op, columns, x) };
        op.check("col2im", ("x", x.len()), ("columns", columns.len()))?;
        let launch = self.kernel::<T>("col2im")?.arg(along).size(op.channels());
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
        let Some(groups) = convolution::Groups::of(op) else {
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
        let Some(groups) = convolution::Groups::of(op) else {
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
        let Some(groups) = convolution::Groups::of(op) else {
            return fallback::convolve_backward_filters(self, op, x, dy, dfilters);
        };
        let lengths = [("x", x.len()), ("dfilters", dfilters.len()), ("dy", dy.len())];
        op.check("convolve_backward_filters", lengths[0], lengths[1], lengths[2])?;
        groups.backward_filters(self, x, dy, dfilters)
    }
}
