//! Launches of matrix-vector products (`kernels/gemv.cu`).

use super::{output_slice, reduce_launch::warps};
use crate::{
    device::CudaDevice,
    element::Element,
    error::Result,
    memory::{View, ViewMut, ledger},
    op::{self, Transpose},
};
use num_traits::{One, Zero};

/// Bytes of a row that a warp loads at once.
const WARP_BYTES: usize = 512;

/// Largest number of blocks in a grid; the blocks loop over any remaining work.
const MAX_BLOCKS: usize = 1 << 20;

impl CudaDevice {
    /// Computes `y ← α·op(A)·x + β·y`; the ledger records the call as `kernel_name`. The caller has
    /// checked the operand lengths.
    #[track_caller]
    pub(super) fn launch_gemv<T: Element>(
        &self,
        kernel_name: &'static str,
        op: &op::Gemv<T>,
        a: View<'_, T, Self>,
        x: View<'_, T, Self>,
        mut y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let (items, outputs) = op.lengths();
        if outputs == 0 {
            return Ok(());
        }
        // As in BLAS, the kernel does not read `A` and `x` if α = 0.
        let items = if op.alpha.is_zero() { 0 } else { items };
        let (symbol, (m, n), blocks, min_items) = match op.trans {
            Transpose::No => {
                ("gemv_rows", (outputs, items), outputs.div_ceil(8 / warps(items)), 4096)
            }
            Transpose::Yes => {
                let columns = WARP_BYTES / T::DTYPE.size();
                ("gemv_columns", (items, outputs), outputs.div_ceil(columns), 128)
            }
        };
        // Open a ledger scope, because the operands are uploaded before the first launch opens its
        // own scope.
        let _scope = ledger::enter_kernel(kernel_name, T::DTYPE.name());
        let split = self.split(blocks, items, min_items);
        let parts = self.partial_sums::<T>(split, outputs)?;
        let finish = [op.alpha, T::Acc::one(), op.beta];
        let (a, x) = (a.device()?, x.device()?);
        let y = output_slice(&mut y, op.beta.is_zero())?;
        let (buffer, offset) = (&*y.buffer, y.offset);
        // Fields of the argument struct `Gemv` of the CUDA kernels.
        let fields = [m, n, op.lda, split.parts, split.part_len, warps(items)];
        let launch = self.variant::<T>(kernel_name, symbol)?.struct_of(fields);
        let launch = launch.arg(finish).read(a).read(x);
        let launch = launch.operand(buffer, offset).scratch(parts.as_ref());
        launch.grid([(blocks * split.parts).min(MAX_BLOCKS), 1, 1], [256, 1, 1])?;
        let Some(parts) = parts else { return Ok(()) };
        let launch = self.variant::<T>(kernel_name, "finish_sum")?.sizes([outputs, split.parts]);
        let launch = launch.arg(finish).operand(&parts, 0).operand(buffer, offset);
        launch.grid_1d(outputs.saturating_mul(32))
    }
}
