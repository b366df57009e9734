//! Normalisation.

use crate::{
    device::{
        CudaDevice,
        cuda::{CudaBuffer, launch::Launch},
    },
    element::Element,
    error::{Error, Result, check_len},
    kernel::Normalize,
    memory::{Src, View, ViewMut},
    op::{Axis, EpsilonPlacement, Lrn, LrnRegion, Standardize},
};

/// Rows side by side, at least as many as a warp has lanes, are a thread's each.
const BESIDE: usize = 32;

/// Rows up to this long are a warp's, longer ones a block's.
const SHORT: usize = 512;

/// Blocks that share the sums at a position.
const PARTS: usize = 64;

/// Elements that are worth a block of them.
const PART: usize = 1 << 12;

/// Sums of two kinds, in double precision.
type Sums = [f64; 2];

impl CudaDevice {
    /// A kernel along an axis, on the account of `name`: a thread's rows or, under the name of
    /// `by_block`, a block's.
    #[track_caller]
    fn along<T: Element>(
        &self,
        axis: &Axis,
        [name, by_block]: [&'static str; 2],
    ) -> Result<Launch<'_>> {
        let symbol = if axis.inner < BESIDE { by_block } else { name };
        let launch = self.variant::<T>(name, symbol)?;
        Ok(launch.sizes([axis.reduced_count(), axis.extent, axis.inner]))
    }
}

impl Launch<'_> {
    /// On a grid for what [`along`](CudaDevice::along) chose.
    fn all_along(self, axis: &Axis) -> Result<()> {
        match (axis.inner < BESIDE, axis.extent <= SHORT) {
            (false, _) => self.grid_1d(axis.reduced_count()),
            (true, true) => self.blocks(axis.reduced_count(), 32),
            (true, false) => self.blocks(axis.reduced_count(), 256),
        }
    }

    /// On a grid that sums at all positions, in `parts` of each.
    fn sums(self, axis: &Axis, parts: usize) -> Result<()> {
        if axis.inner == 1 {
            let blocks = axis.extent.div_ceil(32).min(i32::MAX as usize);
            return self.grid([blocks, parts, 1], [256, 1, 1]);
        }
        self.grid([parts, axis.extent.min(65535), 1], [256, 1, 1])
    }
}

/// Into how many parts the sums at each position of an axis are taken.
fn parts(axis: &Axis) -> usize {
    axis.reduced_count().div_ceil(PART).clamp(1, PARTS)
}

fn extents(axis: &Axis) -> [u64; 3] {
    [axis.outer as u64, axis.extent as u64, axis.inner as u64]
}

/// As the kernels of regions take them: extents, and k, α/n, β and 2αβ/n.
fn region<T: Element>(op: &Lrn) -> ([u64; 5], [T::Acc; 4]) {
    let [height, width] = op.plane;
    let extents = [op.batch, op.channels, height, width, op.size / 2].map(|extent| extent as u64);
    let size = op.size as f64;
    let (k, n) = match op.region {
        LrnRegion::AcrossChannels => (op.k, size),
        LrnRegion::WithinChannel => (1.0, size * size),
    };
    let factor = op.alpha / n;
    (extents, [k, factor, op.beta, 2.0 * op.beta * factor].map(T::acc))
}

impl Normalize for CudaDevice {
    fn softmax<T: Element>(
        &self,
        axis: &Axis,
        x: Src<'_, T, Self>,
        mut y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        if let Src::View(x) = x {
            check_len("softmax", "x", axis.count(), x.len())?;
        }
        check_len("softmax", "y", axis.count(), y.len())?;
        let launch = self.along::<T>(axis, ["softmax", "softmax_by_block"])?;
        launch.src_dst(x, &mut y)?.all_along(axis)
    }

    fn softmax_backward<T: Element>(
        &self,
        axis: &Axis,
        y: View<'_, T, Self>,
        dy: Src<'_, T, Self>,
        mut dx: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        const OP: &str = "softmax_backward";
        if let Src::View(dy) = dy {
            check_len(OP, "dy", axis.count(), dy.len())?;
        }
        check_len(OP, "dx", axis.count(), dx.len())?;
        check_len(OP, "y", axis.count(), y.len())?;
        let launch = self.along::<T>(axis, [OP, "softmax_backward_by_block"])?;
        launch.read(y.device()?).src_dst(dy, &mut dx)?.all_along(axis)
    }

    fn lrn<T: Element>(
        &self,
        op: &Lrn,
        x: View<'_, T, Self>,
        mut scale: ViewMut<'_, T, Self>,
        mut y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        op.check()?;
        for (operand, len) in [("x", x.len()), ("scale", scale.len()), ("y", y.len())] {
            check_len("lrn", operand, op.count(), len)?;
        }
        let symbol = match op.region {
            LrnRegion::AcrossChannels => "lrn_across",
            LrnRegion::WithinChannel => "lrn_within",
        };
        let (extents, power) = region::<T>(op);
        let launch = self.variant::<T>("lrn", symbol)?.arg(extents).arg(power).read(x.device()?);
        let launch = launch.write(scale.device_write_only()?).write(y.device_write_only()?);
        launch.over_channels(op)
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
        const OP: &str = "lrn_backward";
        op.check()?;
        let given = [("x", x.len()), ("y", y.len()), ("scale", scale.len()), ("dy", dy.len())];
        for (operand, len) in given.into_iter().chain([("dx", dx.len())]) {
            check_len(OP, operand, op.count(), len)?;
        }
        let symbol = match op.region {
            LrnRegion::AcrossChannels => "lrn_across_backward",
            LrnRegion::WithinChannel => "lrn_within_backward",
        };
        let (extents, power) = region::<T>(op);
        let launch = self.variant::<T>(OP, symbol)?.arg(extents).arg(power);
        let launch = launch.read(x.device()?).read(y.device()?).read(scale.device()?);
        launch.read(dy.device()?).write(dx.device_write_only()?).over_channels(op)
    }

    fn moments<T: Element>(
        &self,
        axis: &Axis,
        x: View<'_, T, Self>,
        mut mean: ViewMut<'_, T, Self>,
        mut variance: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        const OP: &str = "moments";
        check_len(OP, "x", axis.count(), x.len())?;
        check_len(OP, "mean", axis.extent, mean.len())?;
        check_len(OP, "variance", axis.extent, variance.len())?;
        if axis.extent != 0 && axis.reduced_count() == 0 {
            return Err(Error::invalid_input(OP, "there are no elements to take a mean of"));
        }
        let parts = parts(axis);
        let sums = self.scratch::<Sums>(axis.extent * parts)?;
        let launch = self.variant::<T>(OP, "moment_sums")?.arg(extents(axis));
        launch.read(x.device()?).operand(&sums, 0).sums(axis, parts)?;
        let launch = self.kernel::<T>(OP)?.arg(extents(axis)).read(x.device()?);
        let launch = launch.operand(&sums, 0).size(parts).write(mean.device_write_only()?);
        launch.write(variance.device_write_only()?).grid_1d(32 * axis.extent)
    }

    fn standardize<T: Element>(
        &self,
        op: &Standardize,
        x: Src<'_, T, Self>,
        mean: View<'_, T, Self>,
        variance: View<'_, T, Self>,
        mut y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        const OP: &str = "standardize";
        let axis = &op.axis;
        if let Src::View(x) = x {
            check_len(OP, "x", axis.count(), x.len())?;
        }
        check_len(OP, "mean", axis.extent, mean.len())?;
        check_len(OP, "variance", axis.extent, variance.len())?;
        check_len(OP, "y", axis.count(), y.len())?;
        let launch = self.kernel::<T>(OP)?.arg(extents(axis)).rate::<T>(op);
        let launch = launch.read(mean.device()?).read(variance.device()?);
        launch.src_dst(x, &mut y)?.over_packs::<T>(axis.outer * axis.extent, axis.inner)
    }

    fn standardize_backward<T: Element>(
        &self,
        op: &Standardize,
        x: View<'_, T, Self>,
        mean: View<'_, T, Self>,
        variance: View<'_, T, Self>,
        dy: Src<'_, T, Self>,
        mut dx: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        const OP: &str = "standardize_backward";
        let axis = &op.axis;
        check_len(OP, "x", axis.count(), x.len())?;
        check_len(OP, "mean", axis.extent, mean.len())?;
        check_len(OP, "variance", axis.extent, variance.len())?;
        check_len(OP, "dx", axis.count(), dx.len())?;
        if let Src::View(dy) = dy {
            check_len(OP, "dy", axis.count(), dy.len())?;
        }
        if dx.is_empty() {
            return Ok(());
        }
        let parts = parts(axis);
        let sums = self.scratch::<Sums>(axis.extent * parts)?;
        let lines: CudaBuffer = self.scratch::<[T::Acc; 4]>(axis.extent)?;
        let launch = self.variant::<T>(OP, "slope_sums")?.arg(extents(axis));
        let launch = launch.read(x.device()?).read(mean.device()?);
        let launch = match dy {
            Src::View(dy) => launch.read(dy.device()?),
            Src::InPlace => launch.read(dx.as_view().device()?),
        };
        launch.operand(&sums, 0).sums(axis, parts)?;
        let launch = self.variant::<T>(OP, "lines")?.arg(extents(axis)).rate::<T>(op);
        let launch = launch.read(mean.device()?).read(variance.device()?);
        let launch = launch.operand(&sums, 0).size(parts).operand(&lines, 0);
        launch.grid_1d(32 * axis.extent)?;
        let launch = self.kernel::<T>(OP)?.arg(extents(axis)).operand(&lines, 0);
        let launch = launch.read(x.device()?).src_dst(dy, &mut dx)?;
        launch.over_packs::<T>(axis.outer * axis.extent, axis.inner)
    }
}

impl Launch<'_> {
    fn over_channels(self, op: &Lrn) -> Result<()> {
        self.grid_2d(op.batch * op.channels, op.plane[0] * op.plane[1])
    }

    /// ε, and what it is added to.
    fn rate<T: Element>(self, op: &Standardize) -> Self {
        let in_variance = u32::from(op.place == EpsilonPlacement::AddedToVariance);
        self.arg(T::acc(op.epsilon)).arg(in_variance)
    }
}
