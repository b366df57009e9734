//! Kernels of softmax, LRN and moments.

use super::source_function;
use crate::{
    device::WgpuDevice,
    kernel::{EACH, Kernel, Launch},
};
use cortado::{
    Element, Error, Result, Src, View, ViewMut,
    error::check_len,
    kernel::{Normalize, fallback},
    op::{Axis, Lrn, LrnRegion},
};

const SOFTMAX: Kernel = Kernel {
    name: "softmax",
    reads: &["x"],
    writes: &["y"],
    scalars: &["extent", "inner"],
    body: &[MATH, include_str!("../shaders/softmax.wgsl"), EACH],
};

const SOFTMAX_IN_PLACE: Kernel = Kernel { name: "softmax in place", reads: &[], ..SOFTMAX };

const BACKWARD: Kernel = Kernel {
    name: "softmax_backward",
    reads: &["y", "dy"],
    writes: &["dx"],
    scalars: &["extent", "inner"],
    body: &[include_str!("../shaders/softmax_backward.wgsl"), EACH],
};

const BACKWARD_IN_PLACE: Kernel =
    Kernel { name: "softmax_backward in place", reads: &["y"], ..BACKWARD };

const LRN: Kernel = Kernel {
    name: "lrn",
    reads: &["x"],
    writes: &["scale", "y"],
    scalars: REGION_SCALARS,
    body: &[MATH, LRN_REGION, include_str!("../shaders/lrn.wgsl"), EACH],
};

const LRN_BACKWARD: Kernel = Kernel {
    name: "lrn_backward",
    reads: &["x", "y", "scale", "dy"],
    writes: &["dx"],
    scalars: REGION_SCALARS,
    body: &[MATH, LRN_REGION, include_str!("../shaders/lrn_backward.wgsl"), EACH],
};

const MATH: &str = include_str!("../shaders/math.wgsl");
const LRN_REGION: &str = include_str!("../shaders/lrn_region.wgsl");
const REGION_SCALARS: &[&str] =
    &["channels", "height", "width", "half", "k: f32", "factor: f32", "beta: f32"];

const MOMENTS: Kernel = Kernel {
    name: "moments",
    reads: &["x"],
    writes: &["mean", "variance"],
    scalars: &["outer", "extent", "inner"],
    body: &[include_str!("../shaders/moments.wgsl")],
};

impl WgpuDevice {
    /// Prepares a launch of an LRN kernel for the region of `op`. Returns the launch, and the
    /// kernel's integer and `f32` scalars.
    fn lrn_launch(&self, kernel: &Kernel, op: &Lrn) -> (Launch<'_>, [usize; 4], [f32; 3]) {
        let within_channel = op.region == LrnRegion::WithinChannel;
        let size = op.size as f64;
        let (k, n) = if within_channel { (1.0, size * size) } else { (op.k, size) };
        let source = || format!("const WITHIN = {within_channel};\n");
        let launch = kernel.variant(self, if within_channel { "within" } else { "across" }, source);
        let [height, width] = op.plane;
        let floats = [k, op.alpha / n, op.beta].map(|scalar| scalar as f32);
        (launch, [op.channels, height, width, op.size / 2], floats)
    }
}

impl Normalize for WgpuDevice {
    fn softmax<T: Element>(
        &self,
        axis: &Axis,
        x: Src<'_, T, Self>,
        mut y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let Some(_scope) = self.native::<T>("softmax") else {
            return fallback::softmax(self, axis, x, y);
        };
        if let Src::View(x) = x {
            check_len("softmax", "x", axis.count(), x.len())?;
        }
        check_len("softmax", "y", axis.count(), y.len())?;
        let launch = match x {
            Src::View(x) => SOFTMAX
                .variant(self, "", || source_function("x"))
                .read(x.device()?)
                .write(y.device_write_only()?),
            Src::InPlace => {
                SOFTMAX_IN_PLACE.variant(self, "", || source_function("y")).write(y.device_mut()?)
            }
        };
        launch.sizes([axis.extent, axis.inner]).each(axis.reduced_count())
    }

    fn softmax_backward<T: Element>(
        &self,
        axis: &Axis,
        y: View<'_, T, Self>,
        dy: Src<'_, T, Self>,
        mut dx: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let Some(_scope) = self.native::<T>("softmax_backward") else {
            return fallback::softmax_backward(self, axis, y, dy, dx);
        };
        if let Src::View(dy) = dy {
            check_len("softmax_backward", "dy", axis.count(), dy.len())?;
        }
        check_len("softmax_backward", "dx", axis.count(), dx.len())?;
        check_len("softmax_backward", "y", axis.count(), y.len())?;
        let launch = match dy {
            Src::View(dy) => BACKWARD
                .variant(self, "", || source_function("dy"))
                .read(y.device()?)
                .read(dy.device()?)
                .write(dx.device_write_only()?),
            Src::InPlace => BACKWARD_IN_PLACE
                .variant(self, "", || source_function("dx"))
                .read(y.device()?)
                .write(dx.device_mut()?),
        };
        launch.sizes([axis.extent, axis.inner]).each(axis.reduced_count())
    }

    fn lrn<T: Element>(
        &self,
        op: &Lrn,
        x: View<'_, T, Self>,
        mut scale: ViewMut<'_, T, Self>,
        mut y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let Some(_scope) = self.native::<T>("lrn") else {
            return fallback::lrn(self, op, x, scale, y);
        };
        op.check()?;
        for (operand, len) in [("x", x.len()), ("scale", scale.len()), ("y", y.len())] {
            check_len("lrn", operand, op.count(), len)?;
        }
        let (launch, sizes, floats) = self.lrn_launch(&LRN, op);
        scale.reserve_device()?;
        y.reserve_device()?;
        let launch = launch.read(x.device()?).write(scale.device_write_only()?);
        launch.write(y.device_write_only()?).sizes(sizes).floats(floats).each(op.count())
    }

    fn lrn_backward<T: Element>(
        &self,
        op: &Lrn,
        x: View<'_, T, Self>,
        y: View<'_, T, Self>,
        scale: View<'_, T, Self>,
        dy: View<'_, T, Self>,
        mut dx: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let Some(_scope) = self.native::<T>("lrn_backward") else {
            return fallback::lrn_backward(self, op, x, y, scale, dy, dx);
        };
        op.check()?;
        let lens = [x.len(), y.len(), scale.len(), dy.len(), dx.len()];
        for (operand, len) in ["x", "y", "scale", "dy", "dx"].into_iter().zip(lens) {
            check_len("lrn_backward", operand, op.count(), len)?;
        }
        let (launch, sizes, floats) = self.lrn_launch(&LRN_BACKWARD, op);
        let launch = launch.read(x.device()?).read(y.device()?).read(scale.device()?);
        let launch = launch.read(dy.device()?).write(dx.device_write_only()?);
        launch.sizes(sizes).floats(floats).each(op.count())
    }

    fn moments<T: Element>(
        &self,
        axis: &Axis,
        x: View<'_, T, Self>,
        mut mean: ViewMut<'_, T, Self>,
        mut variance: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let Some(_scope) = self.native::<T>("moments") else {
            return fallback::moments(self, axis, x, mean, variance);
        };
        check_len("moments", "x", axis.count(), x.len())?;
        check_len("moments", "mean", axis.extent, mean.len())?;
        check_len("moments", "variance", axis.extent, variance.len())?;
        if axis.extent != 0 && axis.reduced_count() == 0 {
            return Err(Error::invalid_input("moments", "the mean of no elements is undefined"));
        }
        mean.reserve_device()?;
        variance.reserve_device()?;
        let launch = MOMENTS.on(self).read(x.device()?).write(mean.device_write_only()?);
        let launch = launch.write(variance.device_write_only()?);
        let launch = launch.sizes([axis.outer, axis.extent, axis.inner]);
        launch.groups(axis.extent, axis.extent)
    }
}
