//! Launches of reductions (`kernels/reduce.cu`).

use super::{output_slice, split_reduction::SplitReduction};
use crate::{
    device::{CudaDevice, cuda::launch::Launch},
    element::Element,
    error::Result,
    memory::{View, ViewMut, ledger},
};
use num_traits::{One, Zero};

/// Threads per block.
const THREADS: u32 = 256;

/// Warps per block.
const WARPS: usize = 8;

/// Row length, in items, above which all warps of a thread block together reduce a row.
const LONG_ROW: usize = 1024;

/// Largest number of blocks in a grid; the blocks loop over any remaining work.
const MAX_BLOCKS: usize = 1 << 20;

/// Positions of the items: the operand elements that a kernel reduces to one output.
#[derive(Clone, Copy)]
pub(super) enum Layout {
    /// Item `t` of output `q` is element `q·q_step + t / run · run_step + t mod run · steps[0]`. In
    /// the second operand, consecutive items of a run are `steps[1]` elements apart.
    Rows { q_step: usize, run: usize, run_step: usize, steps: [usize; 2] },
    /// Item `t` of output `q` is element `(q / inner · items + t) · inner + q mod inner` of the
    /// operand.
    Columns { inner: usize },
}

/// A reduction that stores `y ← v / divisor + β·y` for each reduced value `v`.
#[derive(Clone, Copy)]
pub(super) struct ReductionLaunch<T: Element> {
    /// Name of the kernel that the ledger records.
    pub kernel_name: &'static str,
    /// Name of the reduction in the symbols of its kernels, such as `dot`.
    pub rule: &'static str,
    pub divisor: T::Acc,
    pub beta: T::Acc,
}

/// Size of a reduction: the number of outputs, and the number of items per output.
pub(super) type Extents = (usize, usize);

impl<T: Element> ReductionLaunch<T> {
    /// Returns a reduction with divisor 1 and β = 0, which stores the reduced value unchanged.
    pub(super) fn new(kernel_name: &'static str, rule: &'static str) -> Self {
        Self { kernel_name, rule, divisor: T::Acc::one(), beta: T::Acc::zero() }
    }

    /// Returns the fields of the CUDA struct `Finish`: α, divisor and β.
    fn finish(&self) -> [T::Acc; 3] {
        [T::Acc::one(), self.divisor, self.beta]
    }

    /// Returns the name of the kernel that reduces the partial results of each output.
    fn finish_kernel(&self) -> &'static str {
        match self.rule {
            "max" => "finish_max",
            "min" => "finish_min",
            "amax" => "finish_amax",
            _ => "finish_sum",
        }
    }
}

impl CudaDevice {
    /// Reduces elements of `x`, or pairs of elements of `x` and `z`, to the outputs `y`.
    #[track_caller]
    pub(super) fn reduce_to<T: Element>(
        &self,
        reduction: ReductionLaunch<T>,
        extents: Extents,
        layout: Layout,
        (x, z): (View<'_, T, Self>, Option<View<'_, T, Self>>),
        mut y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let (outputs, items) = extents;
        if outputs == 0 {
            return Ok(());
        }
        // Open a ledger scope, because the operands are uploaded before the first launch opens its
        // own scope.
        let _scope = ledger::enter_kernel(reduction.kernel_name, T::DTYPE.name());
        let (blocks, split) = self.split_outputs(extents, layout);
        let parts = self.partial_sums::<T>(split, outputs)?;
        // If the upload of an input fails, the output must keep its value.
        x.device()?;
        z.map(View::device).transpose()?;
        let y = output_slice(&mut y, reduction.beta.is_zero())?;
        let (buffer, offset) = (&*y.buffer, y.offset);
        let layout = (layout, split, warps(items));
        let launch = self.reduce_parts(reduction, extents, layout, (x, z))?.operand(buffer, offset);
        let grid = [(blocks * split.parts).min(MAX_BLOCKS), 1, 1];
        launch.scratch(parts.as_ref()).grid(grid, [THREADS, 1, 1])?;
        let Some(parts) = parts else { return Ok(()) };
        let launch = self.variant::<T>(reduction.kernel_name, reduction.finish_kernel())?;
        let launch = launch.sizes([outputs, split.parts]).arg(reduction.finish());
        let launch = launch.operand(&parts, 0).operand(buffer, offset);
        launch.grid_1d(outputs.saturating_mul(32))
    }

    /// Reduces `items` elements of one or two vectors to a number. Each vector is given as a view
    /// and an increment.
    #[track_caller]
    pub(super) fn reduce_to_number<T: Element>(
        &self,
        reduction: ReductionLaunch<T>,
        items: usize,
        (x, incx): (View<'_, T, Self>, usize),
        z: Option<(View<'_, T, Self>, usize)>,
    ) -> Result<T::Acc> {
        let steps = [incx, z.map_or(incx, |(_, incz)| incz)];
        let layout = Layout::Rows { q_step: 0, run: items, run_step: 0, steps };
        let (_, split) = self.split_outputs((1, items), layout);
        let parts = self.scratch::<T::Acc>(split.parts)?;
        let result = self.scratch::<T::Acc>(1)?;
        let operands = (x, z.map(|(z, _)| z));
        let launch = self.reduce_parts(reduction, (1, items), (layout, split, WARPS), operands)?;
        launch.null().operand(&parts, 0).grid([split.parts, 1, 1], [THREADS, 1, 1])?;
        // The last kernel is the variant for the accumulator type, because both the partial results
        // and the final result have this type.
        let launch = self.variant::<T::Acc>(reduction.kernel_name, reduction.finish_kernel())?;
        let launch = launch.sizes([1, split.parts]).arg(reduction.finish());
        launch.operand(&parts, 0).operand(&result, 0).grid([1, 1, 1], [32, 1, 1])?;
        let [value] = self.fetch::<T::Acc, 1>(&result)?;
        Ok(value)
    }

    /// Prepares the launch that computes the partial results of all outputs. The caller adds the
    /// output and the buffer of partial results as arguments. With [`Layout::Rows`], `warps` warps
    /// together reduce each row.
    #[track_caller]
    fn reduce_parts<'a, T: Element>(
        &'a self,
        reduction: ReductionLaunch<T>,
        (outputs, items): Extents,
        (layout, split, warps): (Layout, SplitReduction, usize),
        (x, z): (View<'a, T, Self>, Option<View<'a, T, Self>>),
    ) -> Result<Launch<'a>> {
        let kernel = match layout {
            Layout::Rows { .. } => "reduce_rows",
            Layout::Columns { .. } => "reduce_columns",
        };
        let symbol = format!("{kernel}_{}", reduction.rule);
        let launch = self.variant::<T>(reduction.kernel_name, &symbol)?;
        let launch = match layout {
            // Fields of the argument struct `Rows` of the CUDA kernels.
            Layout::Rows { q_step, run, run_step, steps: [step_x, step_z] } => {
                let run = run.max(1);
                let (parts, chunk) = (split.parts, split.part_len);
                launch.struct_of([
                    outputs, items, q_step, run, run_step, step_x, step_z, parts, chunk, warps,
                ])
            }
            // Fields of the argument struct `Columns` of the CUDA kernels.
            Layout::Columns { inner } => {
                let threads = threads_per_column((outputs, items));
                launch.struct_of([outputs, items, inner, split.parts, split.part_len, threads])
            }
        };
        launch.arg(reduction.finish()).read(x.device()?).read_optional(z)
    }

    /// Returns the number of thread blocks that compute one part of every output, and the split of
    /// each reduction into parts.
    fn split_outputs(&self, extents: Extents, layout: Layout) -> (usize, SplitReduction) {
        let (outputs, items) = extents;
        let (outputs_per_block, min_items) = match layout {
            Layout::Rows { .. } => (WARPS / warps(items), 4 * LONG_ROW),
            Layout::Columns { .. } => {
                (THREADS as usize / threads_per_column(extents), LONG_ROW / 4)
            }
        };
        let blocks = outputs.div_ceil(outputs_per_block);
        (blocks, self.split(blocks, items, min_items))
    }
}

/// Returns the number of warps that together reduce a row.
pub(super) fn warps(items: usize) -> usize {
    if items > LONG_ROW { WARPS } else { 1 }
}

/// Returns the number of threads that together reduce a column. A few threads per column suffice
/// for coalesced reads, because threads of neighbouring columns read neighbouring elements.
fn threads_per_column((outputs, items): Extents) -> usize {
    let max = THREADS as usize / outputs.next_power_of_two().clamp(1, 32);
    items.next_power_of_two().min(max)
}
