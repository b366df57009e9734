//! Normalisation.

use super::source_of;
use crate::{
    device::WgpuDevice,
    kernel::{EACH, Kernel, Launch},
};
use cortado::{
    Element, Error, Result, Src, View, ViewMut,
    error::expect_len,
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
    scalars: REGION,
    body: &[MATH, ABOUT, include_str!("../shaders/lrn.wgsl"), EACH],
};

const LRN_BACKWARD: Kernel = Kernel {
    name: "lrn_backward",
    reads: &["x", "y", "scale", "dy"],
    writes: &["dx"],
    scalars: REGION,
    body: &[MATH, ABOUT, include_str!("../shaders/lrn_backward.wgsl"), EACH],
};

const MATH: &str = include_str!("../shaders/math.wgsl");
const ABOUT: &str = include_str!("../shaders/lrn_region.wgsl");
const REGION: &[&str] =
    &["channels", "height", "width", "half", "k: f32", "factor: f32", "beta: f32"];

const MOMENTS: Kernel = Kernel {
    name: "moments",
    reads: &["x"],
    writes: &["mean", "variance"],
    scalars: &["outer", "extent", "inner"],
    body: &[include_str!("../shaders/moments.wgsl")],
};

impl WgpuDevice {
    /// Kernel `kernel`, which is of regions as `op` says; and the scalars.
    fn regions(&self, kernel: &Kernel, op: &Lrn) -> (Launch<'_>, [usize; 4], [f32; 3]) {
        let within = op.region == LrnRegion::WithinChannel;
        let size = op.size as f64;
        let (k, n) = if within { (1.0, size * size) } else { (op.k, size) };
        let source = || format!("const WITHIN = {within};\n");
        let launch = kernel.variant(self, if within { "within" } else { "across" }, source);
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
        let Some(_running) = self.native::<T>("softmax") else {
            return fallback::softmax(self, axis, x, y);
        };
        if let Src::From(x) = x {
            expect_len("softmax", "x", axis.count(), x.len())?;
        }
        expect_len("softmax", "y", axis.count(), y.len())?;
        let launch = match x {
            Src::From(x) => SOFTMAX
                .variant(self, "", || source_of("x"))
                .read(x.device()?)
                .write(y.device_write_only()?),
            Src::InPlace => {
                SOFTMAX_IN_PLACE.variant(self, "", || source_of("y")).write(y.device_mut()?)
            }
        };
        launch.sizes([axis.extent, axis.inner]).each(axis.rest())
    }

    fn softmax_backward<T: Element>(
        &self,
        axis: &Axis,
        y: View<'_, T, Self>,
        dy: Src<'_, T, Self>,
        mut dx: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let Some(_running) = self.native::<T>("softmax_backward") else {
            return fallback::softmax_backward(self, axis, y, dy, dx);
        };
        if let Src::From(dy) = dy {
            expect_len("softmax_backward", "dy", axis.count(), dy.len())?;
        }
        expect_len("softmax_backward", "dx", axis.count(), dx.len())?;
        expect_len("softmax_backward", "y", axis.count(), y.len())?;
        let launch = match dy {
            Src::From(dy) => BACKWARD
                .variant(self, "", || source_of("dy"))
                .read(y.device()?)
                .read(dy.device()?)
                .write(dx.device_write_only()?),
            Src::InPlace => BACKWARD_IN_PLACE
                .variant(self, "", || source_of("dx"))
                .read(y.device()?)
                .write(dx.device_mut()?),
        };
        launch.sizes([axis.extent, axis.inner]).each(axis.rest())
    }

    fn lrn<T: Element>(
        &self,
        op: &Lrn,
        x: View<'_, T, Self>,
        mut scale: ViewMut<'_, T, Self>,
        mut y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let Some(_running) = self.native::<T>("lrn") else {
            return fallback::lrn(self, op, x, scale, y);
        };
        op.check()?;
        for (operand, len) in [("x", x.len()), ("scale", scale.len()), ("y", y.len())] {
            expect_len("lrn", operand, op.count(), len)?;
        }
        let (launch, sizes, floats) = self.regions(&LRN, op);
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
        let Some(_running) = self.native::<T>("lrn_backward") else {
            return fallback::lrn_backward(self, op, x, y, scale, dy, dx);
        };
        op.check()?;
        let given = [("x", x.len()), ("y", y.len()), ("scale", scale.len()), ("dy", dy.len())];
        for (operand, len) in given.into_iter().chain([("dx", dx.len())]) {
            expect_len("lrn_backward", operand, op.count(), len)?;
        }
        let (launch, sizes, floats) = self.regions(&LRN_BACKWARD, op);
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
        let Some(_running) = self.native::<T>("moments") else {
            return fallback::moments(self, axis, x, mean, variance);
        };
        expect_len("moments", "x", axis.count(), x.len())?;
        expect_len("moments", "mean", axis.extent, mean.len())?;
        expect_len("moments", "variance", axis.extent, variance.len())?;
        if axis.extent != 0 && axis.rest() == 0 {
            return Err(Error::value("moments", "there are no elements to take a mean of"));
        }
        let launch = MOMENTS.on(self).read(x.device()?).write(mean.device_write_only()?);
        let launch = launch.write(variance.device_write_only()?);
        let launch = launch.sizes([axis.outer, axis.extent, axis.inner]);
        launch.groups(axis.extent, axis.extent)
    }
}
