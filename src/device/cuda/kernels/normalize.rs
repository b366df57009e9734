//! Launches of normalization kernels.

use super::src_len;
use crate::{
    device::{CudaDevice, cuda::launch::Launch},
    element::Element,
    error::Result,
    kernel::Normalize,
    memory::{Src, View, ViewMut},
    op::{Axis, EpsilonPlacement, Lrn, LrnRegion, Standardize},
};

/// Smallest `inner` extent at which one thread of a softmax kernel computes a whole row. If `inner`
/// is at least 32, the threads of a warp read neighbouring elements.
const MIN_INNER: usize = 32;

/// Largest length, in elements, of a softmax row that a block of one warp computes; a longer row
/// gets a block of [`THREADS`] threads.
const MAX_WARP_ROW: usize = 512;

/// Threads per block.
const THREADS: u32 = 256;

/// Largest number of thread blocks among which the reduction at one position of the axis is split.
const MAX_PARTS: usize = 64;

/// Largest number of elements per part of a reduction, unless the reduction needs more than
/// [`MAX_PARTS`] such parts.
const PART_LEN: usize = 1 << 12;

/// Pair of partial sums in double precision; equivalent to the struct `Sums` of the CUDA kernels.
type Sums = [f64; 2];

impl CudaDevice {
    /// Prepares a launch of a softmax kernel: `name`, which uses one thread per row, or `by_block`,
    /// which uses one thread block per row.
    #[track_caller]
    fn softmax_kernel<T: Element>(
        &self,
        axis: &Axis,
        [name, by_block]: [&'static str; 2],
    ) -> Result<Launch<'_>> {
        let symbol = if axis.inner < MIN_INNER { by_block } else { name };
        let launch = self.variant::<T>(name, symbol)?;
        Ok(launch.sizes([axis.reduced_count(), axis.extent, axis.inner]))
    }
}

impl Launch<'_> {
    /// Launches the kernel that [`softmax_kernel`](CudaDevice::softmax_kernel) prepared.
    fn softmax_grid(self, axis: &Axis) -> Result<()> {
        let rows = axis.reduced_count();
        if axis.inner >= MIN_INNER {
            return self.grid_1d(rows);
        }
        self.blocks(rows, if axis.extent <= MAX_WARP_ROW { 32 } else { THREADS })
    }

    /// Launches a kernel that computes a sum for each position of an axis, and splits each sum into
    /// `parts` partial sums.
    fn sums_grid(self, axis: &Axis, parts: usize) -> Result<()> {
        let blocks = match axis.inner {
            1 => [axis.extent.div_ceil(32).min(i32::MAX as usize), parts, 1],
            _ => [parts, axis.extent.min(65535), 1],
        };
        self.grid(blocks, [THREADS, 1, 1])
    }

    /// Adds the fields of the struct `Rate` of the CUDA kernels as arguments: ε, and whether ε is
    /// added to the variance.
    fn rate<T: Element>(self, op: &Standardize) -> Self {
        let in_variance = u32::from(op.epsilon_placement == EpsilonPlacement::AddedToVariance);
        self.arg(T::acc(op.epsilon)).arg(in_variance)
    }
}

/// Returns the number of parts into which the sums at each position of an axis are split.
fn part_count(axis: &Axis) -> usize {
    axis.reduced_count().div_ceil(PART_LEN).clamp(1, MAX_PARTS)
}

impl CudaDevice {
    /// Prepares a launch of the LRN kernel for the normalization region of `op`. Adds the LRN
    /// parameters as arguments: the extents, k, α/n, β and 2αβ/n.
    #[track_caller]
    fn lrn_kernel<T: Element>(
        &self,
        name: &'static str,
        op: &Lrn,
        [across, within]: [&str; 2],
    ) -> Result<Launch<'_>> {
        let [height, width] = op.plane;
        let extents = [op.batch, op.channels, height, width, op.size / 2];
        let size = op.size as f64;
        let (symbol, k, n) = match op.region {
            LrnRegion::AcrossChannels => (across, op.k, size),
            LrnRegion::WithinChannel => (within, 1.0, size * size),
        };
        let factor = op.alpha / n;
        let power = [k, factor, op.beta, 2.0 * op.beta * factor].map(T::acc);
        Ok(self.variant::<T>(name, symbol)?.struct_of(extents).arg(power))
    }
}

impl Normalize for CudaDevice {
    fn softmax<T: Element>(
        &self,
        axis: &Axis,
        x: Src<'_, T, Self>,
        mut y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        axis.check_counts("softmax", &[("x", src_len(&x).unwrap_or(y.len())), ("y", y.len())])?;
        let launch = self.softmax_kernel::<T>(axis, ["softmax", "softmax_by_block"])?;
        launch.src_dst(x, &mut y)?.softmax_grid(axis)
    }

    fn softmax_backward<T: Element>(
        &self,
        axis: &Axis,
        y: View<'_, T, Self>,
        dy: Src<'_, T, Self>,
        mut dx: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        const OP: &str = "softmax_backward";
        let dy_len = src_len(&dy).unwrap_or(dx.len());
        axis.check_counts(OP, &[("dy", dy_len), ("dx", dx.len()), ("y", y.len())])?;
        let launch = self.softmax_kernel::<T>(axis, [OP, "softmax_backward_by_block"])?;
        launch.read(y.device()?).src_dst(dy, &mut dx)?.softmax_grid(axis)
    }

    fn lrn<T: Element>(
        &self,
        op: &Lrn,
        x: View<'_, T, Self>,
        mut scale: ViewMut<'_, T, Self>,
        mut y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        op.check_operands("lrn", &[("x", x.len()), ("scale", scale.len()), ("y", y.len())])?;
        let launch = self.lrn_kernel::<T>(op.kernel_name(), op, ["lrn_across", "lrn_within"])?;
        scale.reserve_device()?;
        y.reserve_device()?;
        let launch = launch.read(x.device()?).write(scale.device_write_only()?);
        let launch = launch.write(y.device_write_only()?);
        launch.grid_2d(op.batch * op.channels, op.plane[0] * op.plane[1])
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
        let inputs = [("x", x.len()), ("y", y.len()), ("scale", scale.len()), ("dy", dy.len())];
        op.check_operands(OP, &[&inputs[..], &[("dx", dx.len())]].concat())?;
        let symbols = ["lrn_across_backward", "lrn_within_backward"];
        let launch = self.lrn_kernel::<T>(op.backward_kernel_name(), op, symbols)?;
        let launch = launch.read(x.device()?).read(y.device()?);
        let launch = launch.read(scale.device()?).read(dy.device()?);
        let launch = launch.write(dx.device_write_only()?);
        launch.grid_2d(op.batch * op.channels, op.plane[0] * op.plane[1])
    }

    fn moments<T: Element>(
        &self,
        axis: &Axis,
        x: View<'_, T, Self>,
        mut mean: ViewMut<'_, T, Self>,
        mut variance: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        const OP: &str = "moments";
        axis.check_moments(x.len(), mean.len(), variance.len())?;
        let parts = part_count(axis);
        let sums = self.scratch::<Sums>(axis.extent * parts)?;
        let launch = self.variant::<T>(OP, "moment_sums")?.axis(axis);
        launch.read(x.device()?).operand(&sums, 0).sums_grid(axis, parts)?;
        let launch = self.kernel::<T>(OP)?.axis(axis).read(x.device()?);
        mean.reserve_device()?;
        variance.reserve_device()?;
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
        let axis = &op.axis;
        op.check(src_len(&x), mean.len(), variance.len(), y.len())?;
        let launch = self.kernel::<T>("standardize")?.axis(axis).rate::<T>(op);
        let launch = launch.read(mean.device()?).read(variance.device()?);
        launch.src_dst(x, &mut y)?.grid_2d_packs::<T>(axis.outer * axis.extent, axis.inner)
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
        op.check_backward(x.len(), mean.len(), variance.len(), src_len(&dy), dx.len())?;
        if dx.is_empty() {
            return Ok(());
        }
        let parts = part_count(axis);
        let sums = self.scratch::<Sums>(axis.extent * parts)?;
        let coefficients = self.scratch::<T::Acc>(axis.extent.saturating_mul(4))?;
        let launch = self.variant::<T>(OP, "slope_sums")?.axis(axis);
        let launch = launch.read(x.device()?).read(mean.device()?);
        let launch = match dy {
            Src::View(dy) => launch.read(dy.device()?),
            Src::InPlace => launch.read(dx.as_view().device()?),
        };
        launch.operand(&sums, 0).sums_grid(axis, parts)?;
        let launch = self.variant::<T>(OP, "lines")?.axis(axis).rate::<T>(op);
        let launch = launch.read(mean.device()?).read(variance.device()?);
        let launch = launch.operand(&sums, 0).size(parts).operand(&coefficients, 0);
        launch.grid_1d(32 * axis.extent)?;
        let launch = self.kernel::<T>(OP)?.axis(axis).operand(&coefficients, 0);
        let launch = launch.read(x.device()?).src_dst(dy, &mut dx)?;
        launch.grid_2d_packs::<T>(axis.outer * axis.extent, axis.inner)
    }
}
