//! Distribution of a convolution's work among threads, and activation of the outputs.
//!
//! A convolution is split into tasks. Each task processes one image, a group of images, or a range
//! of rows of the im2col matrix. While there are at least as many tasks as threads, each task runs
//! on one thread. Fewer tasks than threads run at the same time, and the threads that have no task
//! share the GEMMs of the tasks. If the threads cannot be divided evenly among the tasks, the tasks
//! run one after another, and all threads share each GEMM. Results are bit-identical for any number
//! of threads.

use crate::{
    element::Element,
    error::Result,
    host::{blas::gemm::partition::max_parts, elementwise::map::unary_in_place, threads::Workers},
    op::{Convolution, Unary},
};

/// Number of floating-point operations below which one thread computes a convolution faster than
/// several threads.
const PARALLEL_MIN_FLOPS: u64 = 2_000_000;

/// Set of threads that contains only the calling thread.
pub(crate) static ONE_THREAD: Workers = Workers::sequential();

/// Returns the set of threads for a kernel that has more tasks than threads. The set contains only
/// the calling thread if the convolution is small.
pub(crate) fn task_workers<'a>(workers: &'a Workers, op: &Convolution) -> &'a Workers {
    if op.flops() < PARALLEL_MIN_FLOPS { &ONE_THREAD } else { workers }
}

/// Calls `body(gemm_workers, task, chunk)` for each chunk of `task_len` elements of `y`; the last
/// chunk may be shorter. `gemm_workers` is the set of threads that share the GEMMs of the task, each
/// of which has `gemm_flops` floating-point operations.
///
/// # Errors
/// Returns one of the errors that `body` returned, if any.
pub(crate) fn try_for_each_task<T: Send>(
    workers: &Workers,
    op: &Convolution,
    gemm_flops: u64,
    y: &mut [T],
    task_len: usize,
    body: impl Fn(&Workers, usize, &mut [T]) -> Result<()> + Send + Sync,
) -> Result<()> {
    let workers = task_workers(workers, op);
    let tasks = y.len().div_ceil(task_len.max(1));
    // The tasks that are left after each thread has run the same number of tasks.
    let rest = tasks % workers.count();
    let (rest_workers, gemm_workers) = split_workers(workers, rest, gemm_flops);
    // If the tasks that are left do not share threads, they need no parallel region of their own.
    let first = if gemm_workers.count() > 1 { tasks - rest } else { tasks };
    let (y, rest_y) = y.split_at_mut((first * task_len).min(y.len()));
    workers.try_for_each_chunk(y, task_len, |task, y| body(&ONE_THREAD, task, y))?;
    rest_workers
        .try_for_each_chunk(rest_y, task_len, |task, y| body(&gemm_workers, first + task, y))
}

/// Returns the set of threads among which `tasks` tasks are distributed, and the set of threads that
/// share a GEMM of one task, for fewer tasks than threads.
fn split_workers(workers: &Workers, tasks: usize, gemm_flops: u64) -> (Workers, Workers) {
    let parts = max_parts::<f32>(workers.count(), gemm_flops);
    let parts_at_once = parts.min(workers.count() / tasks.max(1));
    // Tasks that run at the same time take the time of `1 / parts_at_once` tasks on one thread, and
    // tasks that run one after another the time of `tasks / parts`. The latter must be shorter by
    // 20 % at least, because all threads wait for one another after each GEMM.
    if 5 * tasks * parts_at_once < 4 * parts {
        (Workers::sequential(), workers.clone())
    } else {
        (workers.clone(), workers.limited_to(parts_at_once))
    }
}

/// `y ← activation(y)`, or no change if `activation` is `None`.
pub(crate) fn activate<T: Element>(
    workers: &Workers,
    activation: Option<Unary<T::Acc>>,
    y: &mut [T],
) -> Result<()> {
    activation.map_or(Ok(()), |activation| unary_in_place(workers, activation, y))
}
