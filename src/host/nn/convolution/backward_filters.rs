//! Gradients of the filters: sums over all positions of all images.

use crate::host::simd::accumulator::accumulator_len;
use crate::{
    element::Element,
    error::Result,
    host::{
        blas::gemm::{GemmB, gemm_packed},
        cache::scratch::with_scratch,
        nn::convolution::{
            depthwise::Depthwise,
            implicit_gemm::{ImageGroup, ImplicitColumns},
            levels, share,
        },
        simd::accumulator::{is_wide, update_widened, widened},
        threads::Workers,
    },
    op::{Convolution, Gemm, Transpose},
};
use num_traits::Float;
use std::ops::Range;

/// Most runs of images whose gradients are summed apart.
const MAX_IMAGE_GROUPS: usize = 8;

/// Elements of the filters' rows that are worth a task when sums are added to them.
const ROWS: usize = 1 << 16;

/// Taps of the filters that are worth a task.
const TAPS_PER_TASK: usize = 96;

/// Runs of images whose gradients are summed apart, for each to be worth it: none where threads
/// find enough `parts` of the filters.
fn runs(op: &Convolution, parts: usize) -> usize {
    let wanted = op.batch() * op.window().positions() / 1024;
    wanted.min(MAX_IMAGE_GROUPS.div_ceil(parts)).clamp(1, op.batch())
}

/// `dfilters ← dfilters + dy ∗ x` of filters for one channel each.
pub(crate) fn depthwise<T: Element>(
    workers: &Workers,
    op: &Convolution,
    depthwise: &Depthwise,
    x: &[T],
    dy: &[T],
    dfilters: &mut [T],
) {
    // A run has to be worth the sums it keeps apart.
    let images = op.batch().div_ceil(runs(op, 1));
    let len = op.batch().div_ceil(images) * dfilters.len();
    with_scratch(len, |sums: &mut [T::Acc]| {
        depthwise.correlate(share(workers, op), images, x, dy, sums);
        add_runs(sums, dfilters);
    });
}

/// `dfilters ← dfilters + dy·columnsᵀ` for all images.
pub(crate) fn by_slabs<T: Element>(
    workers: &Workers,
    op: &Convolution,
    x: &[T],
    dy: &[T],
    dfilters: &mut [T],
) -> Result<()> {
    let slabs = ImplicitColumns::for_filter_gradients(op)?;
    let (m, n) = (slabs.outputs(), slabs.rows());
    let (image, result) = (op.window().image_len(), op.outputs() * op.window().positions());
    let most_parts = n.div_ceil(TAPS_PER_TASK) * op.groups();
    let images = op.batch().div_ceil(runs(op, most_parts));
    let runs = op.batch().div_ceil(images);
    // How taps are shared among threads changes no bit of a sum; how images are, would.
    let parts = workers.count().div_ceil(runs * op.groups()).min(n.div_ceil(TAPS_PER_TASK));
    let width = n.div_ceil(parts).next_multiple_of(32).min(n);
    let parts = n.div_ceil(width);
    let (outer, inner) = levels(workers, op, runs * op.groups() * parts);
    with_scratch(runs * op.groups() * parts * m * width, |sums: &mut [T::Acc]| {
        outer.try_for_each_chunk(sums, m * width, |task, sums| {
            let (run, group, part) =
                (task / parts / op.groups(), task / parts % op.groups(), task % parts);
            let taps = part * width..n.min((part + 1) * width);
            let run = run * images..op.batch().min((run + 1) * images);
            for start in run.clone().step_by(slabs.images()) {
                let count = slabs.images().min(run.end - start);
                let x = &x[start * image..][..count * image];
                let dy = &dy[start * result..][..count * result];
                let beta = T::acc(if start == run.start { 0.0 } else { 1.0 });
                with_scratch(accumulator_len::<T>(x.len()), |room_x| {
                    with_scratch(accumulator_len::<T>(dy.len()), |room_y| {
                        let (x, dy) = (widened(x, room_x), widened(dy, room_y));
                        let slab = slabs.slab(group, count);
                        correlate(inner, &slabs, &slab, x, dy, (beta, taps.clone()), sums)
                    })
                })?;
            }
            Ok(())
        })?;
        with_scratch(if is_wide::<T>() { 0 } else { dfilters.len() }, |room| {
            update_widened(dfilters, room, |d| {
                let rows = (ROWS / n).max(1);
                share(workers, op).for_each_chunk(d, rows * n, |task, d| {
                    for (row, d) in (task * rows..).zip(d.chunks_exact_mut(n)) {
                        // Of the row, its part of each task's sums, the runs in order.
                        let (group, o) = (row / m, row % m);
                        for run in 0..runs {
                            let first = (run * op.groups() + group) * parts;
                            for (part, d) in d.chunks_mut(width).enumerate() {
                                let sums = &sums[(first + part) * m * width + o * d.len()..];
                                d.iter_mut().zip(sums).for_each(|(d, &sum)| *d = *d + sum);
                            }
                        }
                    }
                });
            });
        });
        Ok(())
    })
}

/// `sums ← β·sums + dy·columnsᵀ` for one slab and some taps.
fn correlate<A: Element<Acc = A> + Float>(
    workers: &Workers,
    slabs: &ImplicitColumns,
    slab: &ImageGroup,
    x: &[A],
    dy: &[A],
    (beta, taps): (A, Range<usize>),
    sums: &mut [A],
) -> Result<()> {
    let (m, n, k) = (slabs.outputs(), taps.len(), slab.columns());
    let op = Gemm::<A>::with_transpose(Transpose::No, Transpose::Yes, m, n, k).beta(beta);
    slabs.with_gathered_outputs(slab, dy, |dy, ld| {
        slabs.with_columns(workers, slab, Transpose::Yes, taps, x, |columns| {
            let op = op.leading_dims(ld, op.ldb, n);
            gemm_packed(workers, &op, dy, &GemmB::Indirect(columns), None, sums)
        })
    })
}

/// `dfilters ← dfilters + Σ runs`, in order.
fn add_runs<T: Element>(sums: &mut [T::Acc], dfilters: &mut [T]) {
    let len = dfilters.len();
    let (first, rest) = sums.split_at_mut(len);
    for run in rest.chunks(len) {
        first.iter_mut().zip(run).for_each(|(sum, &run)| *sum = *sum + run);
    }
    with_scratch(if is_wide::<T>() { 0 } else { len }, |room| {
        update_widened(dfilters, room, |d| {
            d.iter_mut().zip(&*first).for_each(|(d, &sum)| *d = *d + sum)
        });
    });
}
