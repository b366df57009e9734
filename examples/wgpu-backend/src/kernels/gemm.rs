//! Tiled GEMM, which the module `convolution` also uses.

use super::float;
use crate::{
    device::WgpuDevice,
    kernel::{Kernel, Launch, THREADS},
};
use cortado::{
    Element, Result,
    memory::{DeviceSlice, DeviceSliceMut},
    op::{Gemm, GemmBatch, Transpose},
};
use num_traits::Zero;

/// WGSL source of a tiled GEMM that calls the functions `load_a`, `load_b` and `store` of a kernel
/// variant.
pub(super) const TILED_GEMM: &str = include_str!("../shaders/gemm.wgsl");

const GEMM: Kernel = Kernel {
    name: "gemm",
    reads: &["a", "b"],
    writes: &["c"],
    scalars: &[
        "rows",
        "columns",
        "k",
        "lda",
        "ldb",
        "ldc",
        "stride_a",
        "stride_b",
        "stride_c",
        "alpha: f32",
        "beta: f32",
    ],
    body: &[TILED_GEMM],
};

/// Shape of `C` in a GEMM, and of the tile of `C` that a workgroup computes.
#[derive(Clone, Copy)]
pub(super) struct TileShape {
    rows: usize,
    columns: usize,
    /// Number of rows of threads in a workgroup. Each thread computes 4×4 elements of `C`.
    thread_rows: usize,
    /// Number of columns of threads in a workgroup.
    thread_columns: usize,
}

impl TileShape {
    pub(super) fn new(rows: usize, columns: usize) -> Self {
        let threads = |extent: usize, max| extent.div_ceil(4).next_power_of_two().clamp(4, max);
        let thread_rows = threads(rows, 16);
        let thread_columns = threads(columns, THREADS / thread_rows);
        Self { rows, columns, thread_rows, thread_columns }
    }

    /// Returns a string that identifies the tile shape in the keys of kernel variants.
    pub(super) fn key(&self) -> String {
        format!("{}x{}", self.thread_rows, self.thread_columns)
    }

    /// Returns the constants of the GEMM shader: the tile shape, and whether `A` and `B` are
    /// contiguous along k.
    pub(super) fn constants(&self, a_along_k: bool, b_along_k: bool) -> String {
        let Self { thread_rows, thread_columns, .. } = self;
        format!(
            "const DOWN = {thread_rows}u;
const ACROSS = {thread_columns}u;
const A_ALONG_K = {a_along_k};
const B_ALONG_K = {b_along_k};
"
        )
    }

    pub(super) fn launch(&self, launch: Launch<'_>, count: usize) -> Result<()> {
        let tile_rows = self.rows.div_ceil(4 * self.thread_rows);
        let tiles = tile_rows * self.columns.div_ceil(4 * self.thread_columns) * count;
        launch.groups(tiles, tiles)
    }
}

/// Computes `Cᵢ ← α·op(Aᵢ)·op(Bᵢ) + β·Cᵢ`. The caller has checked the lengths of the operands.
pub(super) fn multiply<T: Element>(
    device: &WgpuDevice,
    op: &Gemm<T>,
    batch: &GemmBatch,
    a: DeviceSlice<'_, WgpuDevice>,
    b: DeviceSlice<'_, WgpuDevice>,
    c: DeviceSliceMut<'_, WgpuDevice>,
) -> Result<()> {
    let tiles = TileShape::new(op.m, op.n);
    let (ta, tb) = (op.trans_a == Transpose::Yes, op.trans_b == Transpose::Yes);
    let adds_c = !op.beta.is_zero();
    let variant = format!("{} {ta} {tb} {adds_c}", tiles.key());
    let source = || {
        let a = if ta { "k * p.lda + row" } else { "row * p.lda + k" };
        let b = if tb { "column * p.ldb + k" } else { "k * p.ldb + column" };
        let sum = if adds_c { "p.alpha * sum + p.beta * c[at]" } else { "p.alpha * sum" };
        let loads = format!(
            "fn load_a(z: u32, row: u32, k: u32) -> f32 {{ return a[p.a + z * p.stride_a + {a}]; }}
fn load_b(z: u32, k: u32, column: u32) -> f32 {{ return b[p.b + z * p.stride_b + {b}]; }}
fn store(z: u32, row: u32, column: u32, sum: f32) {{
    let at = p.c + z * p.stride_c + row * p.ldc + column;
    c[at] = {sum};
}}
fn k_start(z: u32) -> u32 {{ return 0u; }}
fn k_end(z: u32) -> u32 {{ return p.k; }}
"
        );
        tiles.constants(!ta, tb) + &loads
    };
    // Like the BLAS, the kernel reads neither `A` nor `B` if α = 0.
    let k = if op.alpha.is_zero() { 0 } else { op.k };
    let launch = GEMM.variant(device, &variant, source).read(a).read(b).write(c);
    let launch = launch.sizes([op.m, op.n, k, op.lda, op.ldb, op.ldc]);
    let launch = launch.sizes([batch.stride_a, batch.stride_b, batch.stride_c]);
    tiles.launch(launch.floats([float(op.alpha), float(op.beta)]), batch.count)
}
