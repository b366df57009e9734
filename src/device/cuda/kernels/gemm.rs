//! Matrix products in tiles: `kernels/gemm.cu`, and the shapes of tiles that convolutions have too.

use super::split_reduction::SplitReduction;
use crate::{
    device::{
        CudaDevice,
        cuda::{CudaBuffer, cublas::Cublas},
    },
    element::{DType, Element},
    error::Result,
    memory::{DeviceSlice, DeviceSliceMut},
    op::{self, GemmBatch, Transpose},
};
use bytemuck::{Pod, Zeroable};
use num_traits::Zero;

/// Threads of a block.
pub(super) const THREADS: u32 = 256;

/// Terms of a sum that pay for a block of its own.
const CHUNK: usize = 256;

/// As the kernels declare it.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct GemmArgs {
    m: u64,
    n: u64,
    k: u64,
    leading: [u64; 3],
    strides: [u64; 3],
    count: u64,
    splits: u64,
    chunk: u64,
    a_along_k: u32,
    b_along_k: u32,
}

/// The shape of a product's tiles, as `kernels/tiled_gemm.cuh` has them.
#[derive(Clone, Copy)]
pub(super) struct TileShape {
    name: &'static str,
    pub down: usize,
    pub across: usize,
    tf32: bool,
}

impl TileShape {
    const LARGE: Self = Self::new("large", 128, 128);
    const LOW: Self = Self::new("low", 32, 128);
    const SMALL: Self = Self::new("small", 64, 64);

    const fn new(name: &'static str, down: usize, across: usize) -> Self {
        Self { name, down, across, tf32: false }
    }

    /// The kernel of this shape: what symbols begin with.
    pub(super) fn symbol(self, kernel: &str) -> String {
        let rounded = if self.tf32 { "tf32_" } else { "" };
        format!("{kernel}_{rounded}{}", self.name)
    }

    /// Tiles of a product of so many rows and columns.
    pub(super) fn count(self, rows: usize, columns: usize) -> usize {
        rows.div_ceil(self.down).saturating_mul(columns.div_ceil(self.across))
    }
}

impl CudaDevice {
    /// The tiles for `count` products: large ones if there are enough to fill the GPU.
    pub(super) fn tiles(
        &self,
        element: DType,
        rows: usize,
        columns: usize,
        count: usize,
    ) -> TileShape {
        let large = TileShape::LARGE.count(rows, columns).saturating_mul(count);
        let tiles = match element {
            DType::F64 => TileShape::SMALL,
            _ if rows <= TileShape::LOW.down => TileShape::LOW,
            _ if columns > TileShape::SMALL.across && large >= self.context().multiprocessors => {
                TileShape::LARGE
            }
            _ => TileShape::SMALL,
        };
        TileShape { tf32: self.tf32 && element == DType::F32, ..tiles }
    }

    /// How the sums of `blocks` tiles are split.
    pub(super) fn split_tiles(&self, blocks: usize, k: usize) -> SplitReduction {
        // A multiprocessor is full with fewer blocks of tiles than of other things.
        self.split(2 * blocks, k, CHUNK)
    }

    /// Whether products of these extents are counted in 32 bits, as kernels do.
    pub(super) fn counts<T: Element>(op: &op::Gemm<T>, batch: &GemmBatch) -> bool {
        let tiles = TileShape::LOW.count(op.m, op.n).max(TileShape::SMALL.count(op.m, op.n));
        let most = i32::MAX as usize;
        op.m <= most && op.n <= most && tiles.saturating_mul(batch.count) <= most / 64
    }

    /// `Cᵢ ← α·op(Aᵢ)·op(Bᵢ) + β·Cᵢ`, for the kernel `account`; lengths were checked.
    #[track_caller]
    pub(super) fn multiply<T: Element>(
        &self,
        account: &'static str,
        op: &op::Gemm<T>,
        batch: &GemmBatch,
        a: DeviceSlice<'_, Self>,
        b: DeviceSlice<'_, Self>,
        c: DeviceSliceMut<'_, Self>,
    ) -> Result<()> {
        if let Some(cublas) = self.cublas.as_ref().filter(|_| Cublas::takes(op, batch)) {
            let (a, b, c) = ((a.buffer, a.offset), (b.buffer, b.offset), (&*c.buffer, c.offset));
            return cublas.multiply(account, op, batch, a, b, c);
        }
        // As in the BLAS, α = 0 reads neither operand, and nothing is 0 whatever α.
        let k = if op.alpha.is_zero() { 0 } else { op.k };
        let alpha = if k == 0 { T::Acc::zero() } else { op.alpha };
        let op = op::Gemm { k, alpha, ..*op };
        let tiles = self.tiles(T::DTYPE, op.m, op.n, batch.count);
        let blocks = tiles.count(op.m, op.n) * batch.count;
        if blocks == 0 {
            return Ok(());
        }
        let split = self.split_tiles(blocks, k);
        let shape = GemmArgs::new(&op, batch, split);
        let symbol = tiles.symbol("gemm");
        let (c, offset) = (&*c.buffer, c.offset);
        let parts = match split.parts {
            1 => None,
            parts => Some(self.scratch::<T::Acc>(parts * batch.count * op.m * op.n)?),
        };
        let launch = self.variant::<T>(account, &symbol)?.arg(shape);
        let launch = launch.arg(op.alpha).arg(op.beta).read(a).read(b).operand(c, offset);
        let launch = match &parts {
            Some(parts) => launch.operand(parts, 0),
            None => launch.arg(0u64),
        };
        launch.grid([blocks * split.parts, 1, 1], [THREADS, 1, 1])?;
        let Some(parts) = parts else { return Ok(()) };
        let launch = self.variant::<T>(account, "add_parts")?.arg(shape);
        let launch = launch.arg(op.alpha).arg(op.beta).operand(&parts, 0).operand(c, offset);
        launch.grid_1d(batch.count * op.m * op.n)
    }

    /// `Cᵢ ← op(Aᵢ)·op(Bᵢ)`, the packed `C`s being what elements are computed in.
    #[track_caller]
    pub(super) fn multiply_wide<T: Element>(
        &self,
        account: &'static str,
        op: &op::Gemm<T>,
        batch: &GemmBatch,
        (a, b): (DeviceSlice<'_, Self>, DeviceSlice<'_, Self>),
        (c, first): (&CudaBuffer, usize),
    ) -> Result<()> {
        let tiles = self.tiles(T::DTYPE, op.m, op.n, batch.count);
        let whole = SplitReduction { parts: 1, chunk: op.k };
        let launch = self.variant::<T>(account, &tiles.symbol("gemm"))?;
        let launch = launch.arg(GemmArgs::new(op, batch, whole)).arg(op.alpha).arg(op.beta);
        let launch = launch.read(a).read(b).arg(0u64).operand(c, first * size_of::<T::Acc>());
        launch.grid([tiles.count(op.m, op.n) * batch.count, 1, 1], [THREADS, 1, 1])
    }
}

impl GemmArgs {
    fn new<T: Element>(op: &op::Gemm<T>, batch: &GemmBatch, split: SplitReduction) -> Self {
        Self {
            m: op.m as u64,
            n: op.n as u64,
            k: op.k as u64,
            leading: [op.lda, op.ldb, op.ldc].map(|leading| leading as u64),
            strides: [batch.stride_a, batch.stride_b, batch.stride_c].map(|stride| stride as u64),
            count: batch.count as u64,
            splits: split.parts as u64,
            chunk: split.chunk as u64,
            a_along_k: u32::from(op.trans_a == Transpose::No),
            b_along_k: u32::from(op.trans_b == Transpose::Yes),
        }
    }
}
