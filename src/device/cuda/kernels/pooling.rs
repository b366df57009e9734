//! Launches of pooling kernels.

use crate::{
    device::{CudaDevice, cuda::launch::Launch},
    element::Element,
    error::{Error, Result, check_len},
    kernel::Pooling,
    memory::{View, ViewMut},
    op::Pool2d,
};
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// Rust equivalent of the argument struct `Pool` of the CUDA kernels; pairs are (height, width).
#[derive(Clone, Copy, FromBytes, Immutable, IntoBytes)]
#[repr(C)]
struct PoolArgs {
    planes: u64,
    input: [u32; 2],
    output: [u32; 2],
    kernel: [u32; 2],
    stride: [u32; 2],
    pad: [u32; 2],
}

/// Returns the argument struct of the pooling kernels.
///
/// # Errors
/// [`Error::InvalidInput`] if a plane has more elements than `i32` mask indices can address.
fn pool_args(name: &'static str, op: &Pool2d) -> Result<PoolArgs> {
    let planes = [op.input, op.output()].map(|[height, width]| height * width);
    if let Some(plane) = planes.into_iter().find(|plane| i32::try_from(*plane).is_err()) {
        let reason = format!("plane of {plane} elements exceeds {}", i32::MAX);
        return Err(Error::invalid_input(name, reason));
    }
    // A window extent, stride or padding that does not fit in 32 bits exceeds every plane, so
    // `u32::MAX` has the same effect.
    let saturate = |pair: [usize; 2]| pair.map(|extent| u32::try_from(extent).unwrap_or(u32::MAX));
    Ok(PoolArgs {
        planes: op.planes as u64,
        input: saturate(op.input),
        output: saturate(op.output()),
        kernel: saturate(op.kernel),
        stride: saturate(op.stride),
        pad: saturate(op.pad),
    })
}

fn area([height, width]: [usize; 2]) -> usize {
    height.saturating_mul(width)
}

impl Launch<'_> {
    fn grid_over_outputs(self, op: &Pool2d) -> Result<()> {
        self.grid_2d(op.planes, area(op.output()))
    }

    fn grid_over_inputs(self, op: &Pool2d) -> Result<()> {
        self.grid_2d(op.planes, area(op.input))
    }
}

impl Pooling for CudaDevice {
    fn max_pool<T: Element>(
        &self,
        op: &Pool2d,
        x: View<'_, T, Self>,
        mut y: ViewMut<'_, T, Self>,
        mut mask: ViewMut<'_, i32, Self>,
    ) -> Result<()> {
        op.check("max_pool", ("x", x.len()), ("y", y.len()))?;
        check_len("max_pool", "mask", op.output_len(), mask.len())?;
        let launch = self.kernel::<T>("max_pool")?.arg(pool_args("max_pool", op)?);
        y.reserve_device()?;
        mask.reserve_device()?;
        let launch = launch.read(x.device()?).write(y.device_write_only()?);
        launch.write(mask.device_write_only()?).grid_over_outputs(op)
    }

    fn max_pool_backward<T: Element>(
        &self,
        op: &Pool2d,
        dy: View<'_, T, Self>,
        mask: View<'_, i32, Self>,
        mut dx: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        const OP: &str = "max_pool_backward";
        op.check(OP, ("dx", dx.len()), ("dy", dy.len()))?;
        check_len(OP, "mask", op.output_len(), mask.len())?;
        let launch = self.kernel::<T>(OP)?.arg(pool_args(OP, op)?);
        let launch = launch.read(dy.device()?).read(mask.device()?);
        launch.write(dx.device_write_only()?).grid_over_inputs(op)
    }

    fn average_pool<T: Element>(
        &self,
        op: &Pool2d,
        x: View<'_, T, Self>,
        mut y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        const OP: &str = "average_pool";
        op.check(OP, ("x", x.len()), ("y", y.len()))?;
        // If the outputs are few and the windows are large, such as whole planes, a warp computes
        // each output.
        let by_warp = area(op.output()) < 32 && area(op.kernel) >= 32;
        let symbol = if by_warp { "average_pool_by_warp" } else { OP };
        let launch = self.variant::<T>(OP, symbol)?.arg(pool_args(OP, op)?);
        let launch = launch.read(x.device()?).write(y.device_write_only()?);
        if by_warp { launch.grid_1d(32 * op.output_len()) } else { launch.grid_over_outputs(op) }
    }

    fn average_pool_backward<T: Element>(
        &self,
        op: &Pool2d,
        dy: View<'_, T, Self>,
        mut dx: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        const OP: &str = "average_pool_backward";
        op.check(OP, ("dx", dx.len()), ("dy", dy.len()))?;
        let launch = self.kernel::<T>(OP)?.arg(pool_args(OP, op)?).read(dy.device()?);
        launch.write(dx.device_write_only()?).grid_over_inputs(op)
    }

    fn stochastic_pool<T: Element>(
        &self,
        op: &Pool2d,
        x: View<'_, T, Self>,
        u: View<'_, f32, Self>,
        mut y: ViewMut<'_, T, Self>,
        mut mask: ViewMut<'_, i32, Self>,
    ) -> Result<()> {
        const OP: &str = "stochastic_pool";
        op.check(OP, ("x", x.len()), ("y", y.len()))?;
        check_len(OP, "u", op.output_len(), u.len())?;
        check_len(OP, "mask", op.output_len(), mask.len())?;
        let launch =
            self.kernel::<T>(OP)?.arg(pool_args(OP, op)?).read(x.device()?).read(u.device()?);
        y.reserve_device()?;
        mask.reserve_device()?;
        let launch = launch.write(y.device_write_only()?).write(mask.device_write_only()?);
        launch.grid_over_outputs(op)
    }
}
