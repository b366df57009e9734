//! Matrix-vector products: `kernels/gemv.cu`.

use super::reduce_launch::warps;
use crate::{
    device::CudaDevice,
    element::Element,
    error::Result,
    memory::{View, ViewMut},
    op::{self, Transpose},
};
use bytemuck::{Pod, Zeroable};
use num_traits::{One, Zero};

/// Bytes of a row that a warp takes at once.
const WIDE: usize = 512;

/// Blocks of a grid at most: each goes on with what is left.
const BLOCKS: usize = 1 << 20;

/// As the kernels declare it.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Gemv {
    m: u64,
    n: u64,
    lda: u64,
    splits: u64,
    chunk: u64,
    warps: u64,
}

impl CudaDevice {
    /// `y ← α·op(A)·x + β·y`, for the kernel `account`; lengths were checked.
    #[track_caller]
    pub(super) fn times_vector<T: Element>(
        &self,
        account: &'static str,
        op: &op::Gemv<T>,
        a: View<'_, T, Self>,
        x: View<'_, T, Self>,
        mut y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let (items, outputs) = op.lengths();
        if outputs == 0 {
            return Ok(());
        }
        // As in the BLAS, α = 0 reads neither operand.
        let items = if op.alpha.is_zero() { 0 } else { items };
        let (symbol, (m, n), blocks, least) = match op.trans {
            Transpose::No => {
                ("gemv_rows", (outputs, items), outputs.div_ceil(8 / warps(items)), 4096)
            }
            Transpose::Yes => {
                let wide = WIDE / T::DTYPE.size();
                ("gemv_columns", (items, outputs), outputs.div_ceil(wide), 128)
            }
        };
        let split = self.split(blocks, items, least);
        let parts = match split.parts {
            1 => None,
            parts => Some(self.scratch::<T::Acc>(outputs.saturating_mul(parts))?),
        };
        let finish = [op.alpha, T::Acc::one(), op.beta];
        let y = if op.beta.is_zero() { y.device_write_only()? } else { y.device_mut()? };
        let (buffer, offset) = (&*y.buffer, y.offset);
        let launch = self.variant::<T>(account, symbol)?.arg(Gemv {
            m: m as u64,
            n: n as u64,
            lda: op.lda as u64,
            splits: split.parts as u64,
            chunk: split.chunk as u64,
            warps: warps(items) as u64,
        });
        let launch = launch.arg(finish).read(a.device()?).read(x.device()?);
        let launch = launch.operand(buffer, offset);
        let launch = match &parts {
            Some(parts) => launch.operand(parts, 0),
            None => launch.arg(0u64),
        };
        launch.grid([(blocks * split.parts).min(BLOCKS), 1, 1], [256, 1, 1])?;
        let Some(parts) = parts else { return Ok(()) };
        let launch = self.variant::<T>(account, "finish_sum")?.sizes([outputs, split.parts]);
        let launch = launch.arg(finish).operand(&parts, 0).operand(buffer, offset);
        launch.grid_1d(outputs.saturating_mul(32))
    }
}
