//! Launches of the tiled GEMM (`kernels/gemm.cu`), and tile shapes of GEMM and convolution.

use super::{output_slice, split_reduction::SplitReduction};
use crate::{
    device::{
        CudaDevice,
        cuda::{CudaBuffer, gemm_library::Epilogue},
    },
    element::{DType, Element},
    error::Result,
    memory::{DeviceSlice, View, ViewMut, ledger},
    op::{self, GemmBatch, Transpose},
};
use num_traits::Zero;
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// Number of thread blocks of the tiled kernels that can be resident on a multiprocessor at once,
/// limited by the number of registers.
const TILES_PER_MULTIPROCESSOR: usize = 2;

/// Smallest number of terms per thread block in a sum over k that is split among thread blocks.
const MIN_TERMS: usize = 256;

/// Rust equivalent of the argument struct `Gemm` of the CUDA kernels.
#[repr(C)]
#[derive(Clone, Copy, FromBytes, Immutable, IntoBytes)]
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

/// A tile shape of `kernels/tiled_gemm.cuh`.
#[derive(Clone, Copy)]
pub(super) struct TileShape {
    name: &'static str,
    /// Number of rows of a tile.
    pub rows: usize,
    /// Number of columns of a tile.
    pub columns: usize,
    /// Number of threads of a block, which computes a tile.
    pub threads: u32,
    /// Whether operands are rounded to TF32.
    tf32: bool,
}

impl TileShape {
    const LARGE: Self = Self::new("large", 128, 128, 128);
    const LOW: Self = Self::new("low", 32, 128, 256);
    const SMALL: Self = Self::new("small", 64, 64, 256);

    const fn new(name: &'static str, rows: usize, columns: usize, threads: u32) -> Self {
        Self { name, rows, columns, threads, tf32: false }
    }

    /// Returns the symbol of a kernel for this tile shape, without the suffix for the element type.
    pub(super) fn symbol(self, kernel: &str) -> String {
        let format_prefix = if self.tf32 { "tf32_" } else { "" };
        format!("{kernel}_{format_prefix}{}", self.name)
    }

    /// Returns the number of tiles of a `rows` × `columns` matrix.
    pub(super) fn count(self, rows: usize, columns: usize) -> usize {
        rows.div_ceil(self.rows).saturating_mul(columns.div_ceil(self.columns))
    }
}

impl CudaDevice {
    /// Returns the tile shape for `count` GEMMs: the large shape if large tiles can fill the GPU.
    pub(super) fn tiles(
        &self,
        element: DType,
        rows: usize,
        columns: usize,
        count: usize,
    ) -> TileShape {
        let large_tile_count = TileShape::LARGE.count(rows, columns).saturating_mul(count);
        let tiles = match element {
            DType::F64 => TileShape::SMALL,
            _ if self.large_tiles => TileShape::LARGE,
            _ if rows <= TileShape::LOW.rows => TileShape::LOW,
            _ if columns > TileShape::SMALL.columns && large_tile_count >= self.multiprocessors => {
                TileShape::LARGE
            }
            _ => TileShape::SMALL,
        };
        let tf32 = self.tf32 && element == DType::F32;
        let has_tf32 = || self.context().modules.find("gemm_tf32_small_f32").is_some();
        TileShape { tf32: tf32 && has_tf32(), ..tiles }
    }

    /// Returns how a launch that computes `blocks` tiles splits the sums over k among thread
    /// blocks. If there are at least as many tiles as multiprocessors, the sums are not split,
    /// because storing, loading and adding partial sums would take longer than the split saves. If
    /// there are fewer tiles, the launch has at most as many blocks as the GPU can run at the same
    /// time.
    pub(super) fn split_tiles(&self, blocks: usize, k: usize) -> SplitReduction {
        let parts = match blocks {
            blocks if blocks >= self.multiprocessors => 1,
            blocks => TILES_PER_MULTIPROCESSOR * self.multiprocessors / blocks.max(1),
        };
        SplitReduction::new(parts, k, MIN_TERMS)
    }

    /// Returns whether the GPU has the tiled kernels for an element type.
    pub(super) fn has_tiles<T: Element>(&self) -> bool {
        let symbol = format!("gemm_small_{}", T::DTYPE.name());
        self.context().modules.find(&symbol).is_some()
    }

    /// Returns whether the GPU has kernels for the element type and the GEMMs of a batch are small
    /// enough for the kernels' 32-bit indices.
    pub(super) fn supports_gemm<T: Element>(&self, op: &op::Gemm<T>, batch: &GemmBatch) -> bool {
        let tiles = TileShape::LOW.count(op.m, op.n).max(TileShape::SMALL.count(op.m, op.n));
        let max = i32::MAX as usize;
        self.has_tiles::<T>()
            && op.m <= max
            && op.n <= max
            && tiles.saturating_mul(batch.count) <= max / 64
    }

    /// Computes `Cᵢ ← α·op(Aᵢ)·op(Bᵢ) + β·Cᵢ`; the ledger records the call as `kernel_name`. The
    /// caller has checked the operand lengths. `overwrites` states whether the GEMMs overwrite all
    /// elements of `c`.
    #[track_caller]
    pub(super) fn launch_gemm<T: Element>(
        &self,
        kernel_name: &'static str,
        op: &op::Gemm<T>,
        batch: &GemmBatch,
        a: DeviceSlice<'_, Self>,
        b: DeviceSlice<'_, Self>,
        (mut c, overwrites): (ViewMut<'_, T, Self>, bool),
    ) -> Result<()> {
        let offsets = [a.offset, b.offset, c.byte_offset(), 0];
        if let Some(gemm) = self.gemm_library.find(op, batch, Epilogue::default(), offsets)? {
            let c = output_slice(&mut c, overwrites)?;
            let (a, b, c) = ((a.buffer, a.offset), (b.buffer, b.offset), (&*c.buffer, c.offset));
            return gemm.run(kernel_name, (op, batch), (a, b), None, c);
        }
        // As in BLAS, the kernel does not read `A` and `B` if α = 0. With k = 0, α times the empty
        // sum is 0, even if α is infinite.
        let k = if op.alpha.is_zero() { 0 } else { op.k };
        let alpha = if k == 0 { T::Acc::zero() } else { op.alpha };
        let op = op::Gemm { k, alpha, ..*op };
        let tiles = self.tiles(T::DTYPE, op.m, op.n, batch.count);
        let blocks = tiles.count(op.m, op.n) * batch.count;
        if blocks == 0 {
            return Ok(());
        }
        let split = self.split_tiles(blocks, k);
        let args = GemmArgs::new(&op, batch, split);
        let symbol = tiles.symbol("gemm");
        let parts = self.partial_sums::<T>(split, batch.count * op.m * op.n)?;
        let c = output_slice(&mut c, overwrites)?;
        let (c, offset) = (&*c.buffer, c.offset);
        let launch = self.variant::<T>(kernel_name, &symbol)?.arg(args);
        let launch = launch.arg(op.alpha).arg(op.beta).read(a).read(b).operand(c, offset);
        launch.scratch(parts.as_ref()).grid([blocks * split.parts, 1, 1], [tiles.threads, 1, 1])?;
        let Some(parts) = parts else { return Ok(()) };
        let launch = self.variant::<T>(kernel_name, "add_parts")?.arg(args);
        let launch = launch.arg(op.alpha).arg(op.beta).operand(&parts, 0).operand(c, offset);
        launch.grid_1d(batch.count * op.m * op.n)
    }

    /// Computes `C ← α·op(A)·op(B) + β·C + bias` with a GEMM library, followed by ReLU if `relu` is
    /// true. Returns `false`, without computing anything, if the built-in kernels must compute the
    /// GEMM. The caller has checked the operand lengths.
    #[track_caller]
    pub(super) fn gemm_with_epilogue<T: Element>(
        &self,
        op: &op::Gemm<T>,
        (a, b): (View<'_, T, Self>, View<'_, T, Self>),
        bias: View<'_, T, Self>,
        relu: bool,
        c: &mut ViewMut<'_, T, Self>,
    ) -> Result<bool> {
        const NAME: &str = "gemm_with_bias";
        let batch = GemmBatch::SINGLE;
        let offsets = [a.byte_offset(), b.byte_offset(), c.byte_offset(), bias.byte_offset()];
        let epilogue = Epilogue { bias: true, relu };
        let Some(gemm) = self.gemm_library.find(op, &batch, epilogue, offsets)? else {
            return Ok(false);
        };
        let _scope = ledger::enter_kernel(NAME, T::DTYPE.name());
        let (a, b, bias) = (a.device()?, b.device()?, bias.device()?);
        let c = output_slice(c, op.beta.is_zero())?;
        let (a, b, c) = ((a.buffer, a.offset), (b.buffer, b.offset), (&*c.buffer, c.offset));
        gemm.run(NAME, (op, &batch), (a, b), Some((bias.buffer, bias.offset)), c)?;
        Ok(true)
    }

    /// Computes `Cᵢ ← op(Aᵢ)·op(Bᵢ)` into contiguous matrices of accumulators, which start at
    /// accumulator `first_c` of the buffer.
    #[track_caller]
    pub(super) fn gemm_to_accumulators<T: Element>(
        &self,
        kernel_name: &'static str,
        op: &op::Gemm<T>,
        batch: &GemmBatch,
        (a, b): (DeviceSlice<'_, Self>, DeviceSlice<'_, Self>),
        (c, first_c): (&CudaBuffer, usize),
    ) -> Result<()> {
        let tiles = self.tiles(T::DTYPE, op.m, op.n, batch.count);
        let unsplit = SplitReduction { parts: 1, part_len: op.k };
        let launch = self.variant::<T>(kernel_name, &tiles.symbol("gemm"))?;
        let launch = launch.arg(GemmArgs::new(op, batch, unsplit)).arg(op.alpha).arg(op.beta);
        let launch = launch.read(a).read(b).null().operand(c, first_c * size_of::<T::Acc>());
        launch.grid([tiles.count(op.m, op.n) * batch.count, 1, 1], [tiles.threads, 1, 1])
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
            chunk: split.part_len as u64,
            a_along_k: u32::from(op.trans_a == Transpose::No),
            b_along_k: u32::from(op.trans_b == Transpose::Yes),
        }
    }
}
