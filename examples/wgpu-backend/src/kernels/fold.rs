//! Many elements folded into one, for many outputs at a time.

use super::scratch::Scratch;
use crate::{
    device::WgpuDevice,
    kernel::{EACH, Kernel, THREADS},
};
use cortado::{Result, memory::DeviceSlice};

/// Outputs of up to as many items are folded by a thread each.
const SHORT: usize = 64;

/// Items that pay for a workgroup of their own.
const CHUNK: usize = 4096;

/// Workgroups that share an output at most.
const SPLITS: usize = 256;

/// What is folded: `finish(join(…join(unit, term(x₀)), …term(xₙ)))`, in some fixed order. The
/// parts are expressions of WGSL.
#[derive(Clone, Copy)]
pub(super) struct Rule<'a> {
    /// Tells rules apart.
    pub name: &'a str,
    /// Of `x`, and `z` where there is a second operand.
    pub term: &'a str,
    /// Of `a` and `b`.
    pub join: &'a str,
    /// The bits of what stands for nothing.
    pub unit: &'a str,
    /// Of `v`, the scalars `p.a` and `p.b`, and `y[at]`, what the output held.
    pub finish: &'a str,
}

/// `Σ term`.
pub(super) const fn sum_of<'a>(name: &'a str, term: &'a str) -> Rule<'a> {
    Rule { name, term, join: "a + b", unit: "0u", finish: "v" }
}

/// Where the items of outputs are: output `q`'s item `t` is element
/// `q / q_run · q_step + q mod q_run + t / t_run · t_step + t mod t_run`.
#[derive(Clone, Copy)]
pub(super) struct Items {
    pub outputs: usize,
    pub items: usize,
    pub q: Steps,
    pub t: Steps,
}

/// Runs of neighbours, and what is between their starts.
#[derive(Clone, Copy)]
pub(super) struct Steps {
    pub run: usize,
    pub step: usize,
}

impl Steps {
    /// One after the other.
    pub(super) const NEXT: Self = Self { run: u32::MAX as usize, step: 0 };
    /// A constant step apart.
    pub(super) const fn by(step: usize) -> Self {
        Self { run: 1, step }
    }
}

const SCALARS: &[&str] = &[
    "items", "splits", "chunk", "q_run", "q_step", "t_run", "t_step", "z_step", "a: f32", "b: f32",
];

const FOLD: Kernel = Kernel {
    name: "fold",
    reads: &["x"],
    writes: &["y"],
    scalars: SCALARS,
    body: &[include_str!("../shaders/fold_groups.wgsl")],
};

const SHORT_FOLD: Kernel =
    Kernel { name: "short fold", body: &[include_str!("../shaders/fold_each.wgsl"), EACH], ..FOLD };

const FOLD_TWO: Kernel = Kernel { name: "fold of two", reads: &["x", "z"], ..FOLD };

const SHORT_FOLD_TWO: Kernel =
    Kernel { name: "short fold of two", reads: &["x", "z"], ..SHORT_FOLD };

/// Folds elements of `x`, or of `x` and `z`, of which item `t` has element `t·z_step`, onto `y`
/// from element `at` on.
pub(super) fn fold(
    device: &WgpuDevice,
    rule: Rule<'_>,
    place: Items,
    x: DeviceSlice<'_, WgpuDevice>,
    z: Option<(DeviceSlice<'_, WgpuDevice>, usize)>,
    scalars: [f32; 2],
    (y, at): (&wgpu::Buffer, usize),
) -> Result<()> {
    let Items { outputs, items, .. } = place;
    let z_step = z.as_ref().map_or(0, |&(_, step)| step);
    let launch = |kernels: [&Kernel; 2], rule: Rule<'_>| {
        let kernel = kernels[usize::from(z.is_some())];
        let launch = kernel.variant(device, rule.name, || source(rule, z.is_some()));
        let launch = launch.operand(x.buffer, x.offset / 4);
        match &z {
            Some((z, _)) => launch.operand(z.buffer, z.offset / 4),
            None => launch,
        }
    };
    let sizes = |splits: usize| {
        let chunk = items.div_ceil(splits).next_multiple_of(THREADS);
        let Items { q, t, .. } = place;
        [items, splits, chunk, q.run, q.step, t.run, t.step, z_step]
    };
    if items <= SHORT {
        let launch = launch([&SHORT_FOLD, &SHORT_FOLD_TWO], rule).operand(y, at);
        return launch.sizes(sizes(1)).floats(scalars).each(outputs);
    }
    let splits = if outputs < SHORT { items.div_ceil(CHUNK).min(SPLITS) } else { 1 };
    if splits == 1 {
        let launch = launch([&FOLD, &FOLD_TWO], rule).operand(y, at);
        return launch.sizes(sizes(1)).floats(scalars).groups(outputs, outputs);
    }
    let parts = Scratch::new(device, outputs * splits)?;
    let name = format!("{} in part", rule.name);
    let first = Rule { name: &name, finish: "v", ..rule };
    let first = launch([&FOLD, &FOLD_TWO], first).operand(&parts, 0);
    first.sizes(sizes(splits)).floats(scalars).groups(outputs * splits, outputs * splits)?;
    let name = format!("{} of parts", rule.name);
    let second = Rule { name: &name, term: "x", ..rule };
    let second = FOLD.variant(device, &name, || source(second, false));
    let sizes = [splits, 1, splits.next_multiple_of(THREADS), 1, splits, Steps::NEXT.run, 0, 0];
    let second = second.operand(&parts, 0).operand(y, at);
    second.sizes(sizes).floats(scalars).groups(outputs, outputs)
}

fn source(rule: Rule<'_>, two: bool) -> String {
    let Rule { term, join, unit, finish, .. } = rule;
    let z = if two { "let z = z[p.z + t * p.z_step];" } else { "" };
    format!(
        "fn unit() -> f32 {{ var bits = {unit}; return bitcast<f32>(bits); }}
fn is_nan(x: f32) -> bool {{ return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }}
fn join(a: f32, b: f32) -> f32 {{ return {join}; }}
fn term(q: u32, t: u32) -> f32 {{
    let start = q / p.q_run * p.q_step + q % p.q_run;
    let x = x[p.x + start + t / p.t_run * p.t_step + t % p.t_run];
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
