//! Reduction kernels: one launch computes many outputs, each of which is the reduction of many
//! items.

use super::scratch::Scratch;
use crate::{
    device::WgpuDevice,
    kernel::{EACH, Kernel, THREADS},
};
use cortado::{Result, memory::DeviceSlice};

/// Largest number of items that a single thread reduces.
const MAX_THREAD_ITEMS: usize = 64;

/// Largest number of items per workgroup in a reduction that is split among workgroups, unless
/// [`MAX_SPLITS`] limits the number of workgroups. With fewer items, an additional workgroup does
/// not pay off.
const CHUNK: usize = 4096;

/// Largest number of workgroups that reduce the items of one output.
const MAX_SPLITS: usize = 256;

/// The reduction `finish(combine(…combine(identity, term(x₀)), …term(xₙ)))`, whose functions are
/// WGSL expressions and whose order is fixed.
#[derive(Clone, Copy)]
pub(super) struct Reducer<'a> {
    /// Name that identifies the reducer in the keys of kernel variants.
    pub name: &'a str,
    /// WGSL expression of a term in the variables `x` and, if the reduction has a second operand,
    /// `z`.
    pub term: &'a str,
    /// WGSL expression that combines `a` and `b`.
    pub combine: &'a str,
    /// Bit pattern of the identity of `combine`, as a WGSL `u32` literal.
    pub identity: &'a str,
    /// WGSL expression of the new output in terms of the result `v`, the scalars `p.a` and `p.b`,
    /// and the old output `y[at]`.
    pub finish: &'a str,
}

/// Returns the reducer that computes `Σ term`.
pub(super) const fn sum_reducer<'a>(name: &'a str, term: &'a str) -> Reducer<'a> {
    Reducer { name, term, combine: "a + b", identity: "0u", finish: "v" }
}

/// Positions of the items of a reduction: item `t` of output `q` is element `q / run_q · stride_q +
/// q mod run_q + t / run_t · stride_t + t mod run_t`.
#[derive(Clone, Copy)]
pub(super) struct ReductionShape {
    pub outputs: usize,
    pub items: usize,
    pub q: Layout,
    pub t: Layout,
}

/// Layout of elements in contiguous runs whose starts are `stride` elements apart.
#[derive(Clone, Copy)]
pub(super) struct Layout {
    pub run: usize,
    pub stride: usize,
}

impl Layout {
    pub(super) const CONTIGUOUS: Self = Self { run: u32::MAX as usize, stride: 0 };
    /// Returns the layout of elements at a constant stride.
    pub(super) const fn strided(stride: usize) -> Self {
        Self { run: 1, stride }
    }
}

/// Kernel that reduces the items of each output in one or more workgroups.
const GROUPS: Kernel = Kernel {
    name: "reduce",
    reads: &["x"],
    writes: &["y"],
    scalars: &[
        "items", "splits", "chunk", "run_q", "stride_q", "run_t", "stride_t", "stride_z", "a: f32",
        "b: f32",
    ],
    body: &[include_str!("../shaders/reduce_groups.wgsl")],
};

/// Kernel that reduces the items of each output in one thread.
const EACH_OUTPUT: Kernel = Kernel {
    name: "reduce in a thread",
    body: &[include_str!("../shaders/reduce_each.wgsl"), EACH],
    ..GROUPS
};

const GROUPS_XZ: Kernel = Kernel { name: "reduce x and z", reads: &["x", "z"], ..GROUPS };

const EACH_OUTPUT_XZ: Kernel =
    Kernel { name: "reduce x and z in a thread", reads: &["x", "z"], ..EACH_OUTPUT };

/// Reduces the items of `x`, and writes the outputs to `y` from element `at` on. `z` is an optional
/// second operand and the stride of its items: item `t` also uses element `t · stride` of `z`.
pub(super) fn reduce(
    device: &WgpuDevice,
    reducer: Reducer<'_>,
    shape: ReductionShape,
    x: DeviceSlice<'_, WgpuDevice>,
    z: Option<(DeviceSlice<'_, WgpuDevice>, usize)>,
    scalars: [f32; 2],
    (y, at): (&wgpu::Buffer, usize),
) -> Result<()> {
    let ReductionShape { outputs, items, q, t } = shape;
    let stride_z = z.as_ref().map_or(0, |&(_, stride)| stride);
    let launch = |kernels: [&Kernel; 2], reducer: Reducer<'_>| {
        let kernel = kernels[usize::from(z.is_some())];
        let launch = kernel.variant(device, reducer.name, || source(reducer, z.is_some()));
        let launch = launch.operand(x.buffer, x.offset / 4);
        match &z {
            Some((z, _)) => launch.operand(z.buffer, z.offset / 4),
            None => launch,
        }
    };
    let sizes = |splits: usize| {
        let chunk = items.div_ceil(splits).next_multiple_of(THREADS);
        [items, splits, chunk, q.run, q.stride, t.run, t.stride, stride_z]
    };
    if items <= MAX_THREAD_ITEMS {
        let launch = launch([&EACH_OUTPUT, &EACH_OUTPUT_XZ], reducer).operand(y, at);
        return launch.sizes(sizes(1)).floats(scalars).each(outputs);
    }
    let has_few_outputs = outputs < MAX_THREAD_ITEMS;
    let splits = if has_few_outputs { items.div_ceil(CHUNK).min(MAX_SPLITS) } else { 1 };
    if splits == 1 {
        let launch = launch([&GROUPS, &GROUPS_XZ], reducer).operand(y, at);
        return launch.sizes(sizes(1)).floats(scalars).groups(outputs, outputs);
    }
    let parts = Scratch::new(device, outputs * splits)?;
    let name = format!("{} in part", reducer.name);
    let part_reducer = Reducer { name: &name, finish: "v", ..reducer };
    let part_launch = launch([&GROUPS, &GROUPS_XZ], part_reducer).operand(&parts, 0);
    part_launch.sizes(sizes(splits)).floats(scalars).groups(outputs * splits, outputs * splits)?;
    let name = format!("{} of parts", reducer.name);
    let total_reducer = Reducer { name: &name, term: "x", ..reducer };
    let total_launch = GROUPS.variant(device, &name, || source(total_reducer, false));
    let contiguous_run = Layout::CONTIGUOUS.run;
    let sizes = [splits, 1, splits.next_multiple_of(THREADS), 1, splits, contiguous_run, 0, 0];
    let total_launch = total_launch.operand(&parts, 0).operand(y, at);
    total_launch.sizes(sizes).floats(scalars).groups(outputs, outputs)
}

fn source(reducer: Reducer<'_>, has_z: bool) -> String {
    let Reducer { term, combine, identity, finish, .. } = reducer;
    let z = if has_z { "let z = z[p.z + t * p.stride_z];" } else { "" };
    format!(
        "fn identity() -> f32 {{ var bits = {identity}; return bitcast<f32>(bits); }}
fn is_nan(x: f32) -> bool {{ return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }}
fn combine(a: f32, b: f32) -> f32 {{ return {combine}; }}
fn term(q: u32, t: u32) -> f32 {{
    let start = q / p.run_q * p.stride_q + q % p.run_q;
    let x = x[p.x + start + t / p.run_t * p.stride_t + t % p.run_t];
    {z}
    return {term};
}}
fn store(q: u32, v: f32) {{
    let at = p.y + q;
    y[at] = {finish};
}}
"
    )
}
