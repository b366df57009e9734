//! Filter gradient of a convolution: a sum over all positions of all images.

use crate::{
    cast::{cast_slice, cast_slice_mut},
    element::{Element, is_same},
    error::Result,
    host::{
        blas::gemm::{gemm_adding_bias, partition::PACK_COST},
        cache::scratch::with_scratch,
        nn::convolution::{
            depthwise::Depthwise,
            implicit_gemm::{ImageGroup, ImplicitColumns},
            schedule::{task_workers, try_for_each_task},
            winograd::Winograd,
        },
        simd::accumulator::{accumulator_len, update_widened, widened},
        threads::Workers,
    },
    op::{Convolution, Gemm, Transpose},
};
use num_traits::Float;
use std::ops::Range;

/// Largest number of parts into which the batch is split for a filter gradient. Each part of the
/// batch yields one partial sum of the filter gradient.
const MAX_PARTIAL_SUMS: usize = 8;

/// Number of positions per part of the batch below which the batch is not split further.
const POSITIONS_PER_PARTIAL_SUM: usize = 1024;

/// Number of filter elements in one task when the partial sums are added to the gradient.
const ADD_GRAIN: usize = 1 << 16;

/// Approximate minimum number of rows of the im2col matrix in one task. Each row of the im2col
/// matrix holds the elements that one tap reads in one channel.
const TAPS_PER_TASK: usize = 96;

/// Granularity of the number of rows of the im2col matrix in one task.
const WIDTH_UNIT: usize = 32;

/// Returns the number of images in each part of the batch, and the number of parts of the batch.
///
/// The more parts the filters have (`filter_parts`), the fewer parts the batch gets, because each
/// pair of a batch part and a filter part is a task.
fn split_batch(op: &Convolution, filter_parts: usize) -> (usize, usize) {
    let parts = op.batch() * op.window().positions() / POSITIONS_PER_PARTIAL_SUM;
    let parts = parts.min(MAX_PARTIAL_SUMS.div_ceil(filter_parts)).clamp(1, op.batch());
    let images = op.batch().div_ceil(parts);
    (images, op.batch().div_ceil(images))
}

/// Returns the number of rows of the im2col matrix in each task, for `outer` tasks per range of
/// rows. The filters of a group have `m`×`n` elements.
///
/// The usual width divides the rows into as few ranges as give each of `threads` threads a task,
/// and into at most `max_parts` ranges. The function returns another width if the estimated time is
/// then more than 15 % shorter. For one position, the estimated time of a task is its number of
/// multiply-adds, plus [`PACK_COST`] for each element that the task packs. In the last round, the
/// threads share the remaining tasks.
fn part_width(threads: usize, outer: usize, [m, n]: [usize; 2], max_parts: usize) -> usize {
    let width = |parts: usize| n.div_ceil(parts).next_multiple_of(WIDTH_UNIT).min(n);
    let time = |width: usize| {
        let tasks = outer * n.div_ceil(width);
        let (rounds, rest) = (tasks / threads, tasks % threads);
        let last_round = threads.checked_div(rest).map_or(0.0, |share| 1.0 / share as f64);
        (rounds as f64 + last_round) * (m * width + PACK_COST * (m + width)) as f64
    };
    let parts = threads.div_ceil(outer.max(1)).min(max_parts);
    let usual = width(parts);
    let others = (parts + 1..=n.div_ceil(WIDTH_UNIT)).map(width);
    let fastest = others.min_by(|&a, &b| time(a).total_cmp(&time(b))).unwrap_or(usual);
    if time(fastest) < 0.85 * time(usual) { fastest } else { usual }
}

/// `dfilters ← dfilters + dy ∗ x` for a depthwise convolution.
pub(crate) fn by_depthwise<T: Element>(
    workers: &Workers,
    op: &Convolution,
    depthwise: &Depthwise,
    x: &[T],
    dy: &[T],
    dfilters: &mut [T],
) {
    let (images, batch_parts) = split_batch(op, 1);
    let len = dfilters.len();
    with_scratch(batch_parts * len, |sums: &mut [T::Acc]| {
        depthwise.backward_filters(task_workers(workers, op), images, x, dy, sums);
        let (total, rest) = sums.split_at_mut(len);
        for sums in rest.chunks(len) {
            total.iter_mut().zip(sums).for_each(|(total, &sum)| *total = *total + sum);
        }
        with_scratch(accumulator_len::<T>(len), |scratch| {
            update_widened(dfilters, scratch, |d| {
                d.iter_mut().zip(&*total).for_each(|(d, &sum)| *d = *d + sum)
            });
        });
    });
}

/// `dfilters ← dfilters + dy · columnsᵀ` for all images, where `columns` is the im2col matrix.
pub(crate) fn by_gemm<T: Element>(
    workers: &Workers,
    op: &Convolution,
    x: &[T],
    dy: &[T],
    dfilters: &mut [T],
) -> Result<()> {
    if const { is_same::<T, f32>() }
        && let Some(winograd) = Winograd::if_faster(op)
    {
        return winograd.accumulate_filter_gradient(
            workers,
            cast_slice(x),
            cast_slice(dy),
            cast_slice_mut(dfilters),
        );
    }
    let columns = ImplicitColumns::for_filter_gradients(op)?;
    let (m, n) = (columns.outputs, columns.rows());
    let (image_len, output_len) = (op.window().image_len(), op.outputs() * op.window().positions());
    let max_parts = n.div_ceil(TAPS_PER_TASK);
    let (images, batch_parts) = split_batch(op, max_parts * op.groups());
    // The number of threads determines only how the rows of the im2col matrix are split, which does
    // not change results. The split of the batch determines the order of additions, so the split
    // depends on shapes alone: results must be bit-identical on any number of threads.
    let width = part_width(workers.count(), batch_parts * op.groups(), [m, n], max_parts);
    let parts = n.div_ceil(width);
    let tasks = batch_parts * op.groups() * parts;
    let gemm_columns = columns.max_images * op.window().positions();
    let gemm_flops = Gemm::<T>::new(m, width, gemm_columns).flops();
    with_scratch(tasks * m * width, |sums: &mut [T::Acc]| {
        try_for_each_task(workers, op, gemm_flops, sums, m * width, |gemm_workers, task, sums| {
            let (batch_part, group, part) =
                (task / parts / op.groups(), task / parts % op.groups(), task % parts);
            let rows = part * width..n.min((part + 1) * width);
            let part_images = batch_part * images..op.batch().min((batch_part + 1) * images);
            for start in part_images.clone().step_by(columns.max_images) {
                let count = columns.max_images.min(part_images.end - start);
                let x = &x[start * image_len..][..count * image_len];
                let dy = &dy[start * output_len..][..count * output_len];
                let beta = T::acc(if start == part_images.start { 0.0 } else { 1.0 });
                with_scratch(accumulator_len::<T>(x.len()), |x_scratch| {
                    with_scratch(accumulator_len::<T>(dy.len()), |dy_scratch| {
                        let (x, dy) = (widened(x, x_scratch), widened(dy, dy_scratch));
                        let images = columns.image_group(group, count);
                        let rows = rows.clone();
                        multiply(gemm_workers, &columns, &images, rows, [x, dy], beta, sums)
                    })
                })?;
            }
            Ok(())
        })?;
        with_scratch(accumulator_len::<T>(dfilters.len()), |scratch| {
            update_widened(dfilters, scratch, |d| {
                let rows_per_task = (ADD_GRAIN / n).max(1);
                task_workers(workers, op).for_each_chunk(d, rows_per_task * n, |task, d| {
                    for (row, d) in (task * rows_per_task..).zip(d.chunks_exact_mut(n)) {
                        let (group, o) = (row / m, row % m);
                        for batch_part in 0..batch_parts {
                            let first = (batch_part * op.groups() + group) * parts;
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

/// `sums ← β·sums + dy · columnsᵀ`, where `columns` holds the rows `rows` of the im2col matrix of
/// `images`.
fn multiply<A: Element<Acc = A> + Float>(
    workers: &Workers,
    columns: &ImplicitColumns,
    images: &ImageGroup,
    rows: Range<usize>,
    [x, dy]: [&[A]; 2],
    beta: A,
    sums: &mut [A],
) -> Result<()> {
    let (m, n, k) = (columns.outputs, rows.len(), images.columns);
    let op = Gemm::<A>::new(m, n, k).transpose(Transpose::No, Transpose::Yes).beta(beta);
    columns.with_gathered_outputs(images, dy, |dy, ld| {
        columns.with_columns(workers, images, Transpose::Yes, rows, x, |columns| {
            let op = op.leading_dims(ld, op.ldb, n);
            gemm_adding_bias(workers, &op, dy, columns, None, sums)
        })
    })
}
