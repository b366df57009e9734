//! Many elements folded into one, for many outputs at a time: `kernels/reduce.cu`.

use super::split_reduction::SplitReduction;
use crate::{
    device::CudaDevice,
    element::Element,
    error::Result,
    memory::{View, ViewMut},
};
use bytemuck::{Pod, Zeroable};
use num_traits::{One, Zero};

/// Threads of a block.
const THREADS: u32 = 256;

/// Warps of a block.
const WARPS: usize = 8;

/// Items that pay for a block.
const LONG: usize = 1024;

/// Blocks of a grid at most: each goes on with what is left.
const BLOCKS: usize = 1 << 20;

/// Where the items of outputs are.
#[derive(Clone, Copy)]
pub(super) enum Items {
    /// Output `q`'s item `t` is element `q·q_step + t / run · run_step + t mod run · steps[0]`;
    /// of the second operand, `steps[1]` apart.
    Rows { q_step: usize, run: usize, run_step: usize, steps: [usize; 2] },
    /// Output `q`'s item `t` is element `(q / inner · items + t) · inner + q mod inner`.
    Columns { inner: usize },
}

/// A fold, and what becomes of its result `v`: `α·v / divisor + β·y`.
#[derive(Clone, Copy)]
pub(super) struct ReductionLaunch<T: Element> {
    /// The kernel this is for.
    pub account: &'static str,
    /// Which, as symbols have it.
    pub rule: &'static str,
    pub divisor: T::Acc,
    pub beta: T::Acc,
}

/// As the kernels declare it.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Rows {
    outputs: u64,
    items: u64,
    q_step: u64,
    run: u64,
    run_step: u64,
    steps: [u64; 2],
    splits: u64,
    chunk: u64,
    warps: u64,
}

/// As the kernels declare it.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Columns {
    outputs: u64,
    items: u64,
    inner: u64,
    splits: u64,
    chunk: u64,
    deep: u64,
}

/// Outputs, and the items of each.
pub(super) type Extents = (usize, usize);

impl<T: Element> ReductionLaunch<T> {
    /// A fold whose result is the output.
    pub(super) fn new(account: &'static str, rule: &'static str) -> Self {
        Self { account, rule, divisor: T::Acc::one(), beta: T::Acc::zero() }
    }

    fn finish(&self) -> [T::Acc; 3] {
        [T::Acc::one(), self.divisor, self.beta]
    }

    /// The kernel that folds parts.
    fn finisher(&self) -> &'static str {
        match self.rule {
            "max" => "finish_max",
            "min" => "finish_min",
            "amax" => "finish_amax",
            _ => "finish_sum",
        }
    }
}

impl CudaDevice {
    /// Folds elements of `x`, or of `x` and `z`, onto `y`.
    #[track_caller]
    pub(super) fn fold<T: Element>(
        &self,
        fold: ReductionLaunch<T>,
        extents: Extents,
        place: Items,
        (x, z): (View<'_, T, Self>, Option<View<'_, T, Self>>),
        mut y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let (outputs, items) = extents;
        if outputs == 0 {
            return Ok(());
        }
        let (blocks, split) = self.blocks(extents, place);
        let parts = match split.parts {
            1 => None,
            parts => Some(self.scratch::<T::Acc>(outputs.saturating_mul(parts))?),
        };
        let y = if fold.beta.is_zero() { y.device_write_only()? } else { y.device_mut()? };
        let family = match place {
            Items::Rows { .. } => "fold_rows",
            Items::Columns { .. } => "fold_columns",
        };
        let launch = self.variant::<T>(fold.account, &format!("{family}_{}", fold.rule))?;
        let launch = match place {
            Items::Rows { q_step, run, run_step, steps } => launch.arg(Rows {
                outputs: outputs as u64,
                items: items as u64,
                q_step: q_step as u64,
                run: run.max(1) as u64,
                run_step: run_step as u64,
                steps: steps.map(|step| step as u64),
                splits: split.parts as u64,
                chunk: split.chunk as u64,
                warps: warps(items) as u64,
            }),
            Items::Columns { inner } => launch.arg(Columns {
                outputs: outputs as u64,
                items: items as u64,
                inner: inner as u64,
                splits: split.parts as u64,
                chunk: split.chunk as u64,
                deep: deep(extents) as u64,
            }),
        };
        let launch = launch.arg(fold.finish()).read(x.device()?);
        let launch = match z {
            Some(z) => launch.read(z.device()?),
            None => launch.arg(0u64),
        };
        let (buffer, offset) = (&*y.buffer, y.offset);
        let launch = launch.operand(buffer, offset);
        let launch = match &parts {
            Some(parts) => launch.operand(parts, 0),
            None => launch.arg(0u64),
        };
        launch.grid([(blocks * split.parts).min(BLOCKS), 1, 1], [THREADS, 1, 1])?;
        let Some(parts) = parts else { return Ok(()) };
        let launch = self.variant::<T>(fold.account, fold.finisher())?;
        let launch = launch.sizes([outputs, split.parts]).arg(fold.finish()).operand(&parts, 0);
        launch.operand(buffer, offset).grid_1d(outputs.saturating_mul(32))
    }

    /// Folds a whole vector, or two, with the steps between their elements, into a number.
    #[track_caller]
    pub(super) fn number<T: Element>(
        &self,
        fold: ReductionLaunch<T>,
        items: usize,
        (x, step_x): (View<'_, T, Self>, usize),
        z: Option<(View<'_, T, Self>, usize)>,
    ) -> Result<T::Acc> {
        let step_z = z.map_or(step_x, |(_, step)| step);
        let place = Items::Rows { q_step: 0, run: items, run_step: 0, steps: [step_x, step_z] };
        let (_, split) = self.blocks((1, items), place);
        let parts = self.scratch::<T::Acc>(split.parts)?;
        let result = self.scratch::<T::Acc>(1)?;
        let launch = self.variant::<T>(fold.account, &format!("fold_rows_{}", fold.rule))?;
        let launch = launch.arg(Rows {
            outputs: 1,
            items: items as u64,
            q_step: 0,
            run: items.max(1) as u64,
            run_step: 0,
            steps: [step_x, step_z].map(|step| step as u64),
            splits: split.parts as u64,
            chunk: split.chunk as u64,
            warps: WARPS as u64,
        });
        let launch = launch.arg(fold.finish()).read(x.device()?);
        let launch = match z {
            Some((z, _)) => launch.read(z.device()?),
            None => launch.arg(0u64),
        };
        let launch = launch.arg(0u64).operand(&parts, 0);
        launch.grid([split.parts, 1, 1], [THREADS, 1, 1])?;
        // Parts are what elements are computed in: so is what they are folded into.
        let launch = self.variant::<T::Acc>(fold.account, fold.finisher())?;
        let launch = launch.sizes([1, split.parts]).arg(fold.finish());
        launch.operand(&parts, 0).operand(&result, 0).grid([1, 1, 1], [32, 1, 1])?;
        let [value] = self.fetch::<T::Acc, 1>(&result)?;
        Ok(value)
    }

    /// Blocks for each part of all outputs, and how their items are split.
    fn blocks(&self, extents: Extents, place: Items) -> (usize, SplitReduction) {
        let (outputs, items) = extents;
        match place {
            Items::Rows { .. } => {
                let blocks = outputs.div_ceil(WARPS / warps(items));
                (blocks, self.split(blocks, items, 4 * LONG))
            }
            Items::Columns { .. } => {
                let blocks = outputs.div_ceil(THREADS as usize / deep(extents));
                (blocks, self.split(blocks, items, LONG / 4))
            }
        }
    }
}

/// Warps that share a row.
pub(super) fn warps(items: usize) -> usize {
    if items > LONG { WARPS } else { 1 }
}

/// Threads that share a column: few, so that neighbours are read together.
fn deep((outputs, items): Extents) -> usize {
    let most = THREADS as usize / outputs.next_power_of_two().clamp(1, 32);
    items.next_power_of_two().min(most)
}
