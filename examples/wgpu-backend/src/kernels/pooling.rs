//! Kernels of max and average pooling, forward and backward.

use crate::{
    device::WgpuDevice,
    kernel::{EACH, Kernel, Launch},
};
use cortado::{
    Element, Error, Result, View, ViewMut,
    error::check_len,
    kernel::{Pooling, fallback},
    op::Pool2d,
};

const SCALARS: &[&str] = &[
    "height", "width", "down", "across", "kernel_h", "kernel_w", "stride_h", "stride_w", "pad_h",
    "pad_w",
];

const WINDOW: &str = include_str!("../shaders/pool_window.wgsl");

const MAX: Kernel = Kernel {
    name: "max_pool",
    reads: &["x"],
    writes: &["y", "mask: i32"],
    scalars: SCALARS,
    body: &[WINDOW, include_str!("../shaders/max_pool.wgsl"), EACH],
};

const MAX_BACKWARD: Kernel = Kernel {
    name: "max_pool_backward",
    reads: &["dy", "mask: i32"],
    writes: &["dx"],
    scalars: SCALARS,
    body: &[include_str!("../shaders/max_pool_backward.wgsl"), EACH],
};

const AVERAGE: Kernel = Kernel {
    name: "average_pool",
    reads: &["x"],
    writes: &["y"],
    scalars: SCALARS,
    body: &[WINDOW, include_str!("../shaders/average_pool.wgsl"), EACH],
};

const AVERAGE_BACKWARD: Kernel = Kernel {
    name: "average_pool_backward",
    reads: &["dy"],
    writes: &["dx"],
    scalars: SCALARS,
    body: &[WINDOW, include_str!("../shaders/average_pool_backward.wgsl"), EACH],
};

fn with_shape<'d>(launch: Launch<'d>, op: &Pool2d) -> Launch<'d> {
    let [down, across] = op.output();
    let ([height, width], [kernel_h, kernel_w]) = (op.input, op.kernel);
    let ([stride_h, stride_w], [pad_h, pad_w]) = (op.stride, op.pad);
    launch
        .sizes([height, width, down, across, kernel_h, kernel_w])
        .sizes([stride_h, stride_w, pad_h, pad_w])
}

impl Pooling for WgpuDevice {
    fn max_pool<T: Element>(
        &self,
        op: &Pool2d,
        x: View<'_, T, Self>,
        mut y: ViewMut<'_, T, Self>,
        mut mask: ViewMut<'_, i32, Self>,
    ) -> Result<()> {
        let Some(_scope) = self.native::<T>("max_pool") else {
            return fallback::max_pool(self, op, x, y, mask);
        };
        op.check("max_pool", ("x", x.len()), ("y", y.len()))?;
        check_len("max_pool", "mask", op.output_len(), mask.len())?;
        let plane = op.input[0] * op.input[1];
        if i32::try_from(plane).is_err() {
            return Err(Error::invalid_input(
                "max_pool",
                format!("a plane of {plane} elements exceeds the range of the mask"),
            ));
        }
        // Reserve memory for both outputs first, so that `y` keeps its value if the mask does not
        // fit.
        y.reserve_device()?;
        mask.reserve_device()?;
        let launch = MAX.on(self).read(x.device()?).write(y.device_write_only()?);
        let launch = launch.write(mask.device_write_only()?);
        with_shape(launch, op).each(op.output_len())
    }

    fn max_pool_backward<T: Element>(
        &self,
        op: &Pool2d,
        dy: View<'_, T, Self>,
        mask: View<'_, i32, Self>,
        mut dx: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let Some(_scope) = self.native::<T>("max_pool_backward") else {
            return fallback::max_pool_backward(self, op, dy, mask, dx);
        };
        op.check("max_pool_backward", ("dx", dx.len()), ("dy", dy.len()))?;
        check_len("max_pool_backward", "mask", op.output_len(), mask.len())?;
        let launch = MAX_BACKWARD.on(self).read(dy.device()?).read(mask.device()?);
        let launch = launch.write(dx.device_write_only()?);
        with_shape(launch, op).each(op.planes)
    }

    fn average_pool<T: Element>(
        &self,
        op: &Pool2d,
        x: View<'_, T, Self>,
        mut y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let Some(_scope) = self.native::<T>("average_pool") else {
            return fallback::average_pool(self, op, x, y);
        };
        op.check("average_pool", ("x", x.len()), ("y", y.len()))?;
        let launch = AVERAGE.on(self).read(x.device()?).write(y.device_write_only()?);
        with_shape(launch, op).each(op.output_len())
    }

    fn average_pool_backward<T: Element>(
        &self,
        op: &Pool2d,
        dy: View<'_, T, Self>,
        mut dx: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let Some(_scope) = self.native::<T>("average_pool_backward") else {
            return fallback::average_pool_backward(self, op, dy, dx);
        };
        op.check("average_pool_backward", ("dx", dx.len()), ("dy", dy.len()))?;
        let launch = AVERAGE_BACKWARD.on(self).read(dy.device()?).write(dx.device_write_only()?);
        with_shape(launch, op).each(op.input_len())
    }
}
