//! Distribution of a convolution's work among threads, and activation of the outputs.
//!
//! A convolution is split into tasks. Each task processes one image, a group of images, or a range
//! of rows of the im2col matrix. As long as at least as many tasks as threads remain, each task
//! runs on one thread. The remaining tasks run at the same time, and threads without a task help
//! with the GEMMs of these tasks. If the threads cannot be divided evenly among the remaining
//! tasks, these tasks run one after another, and all threads share each GEMM. Results are
//! bit-identical for any number of threads.

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
/// chunk may be shorter. `gemm_workers` is the set of threads that share the GEMMs of the task.
/// Each GEMM of a task has `gemm_flops` floating-point operations.
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
    // Number of tasks that remain after each thread has run the same number of tasks.
    let rest = tasks % workers.count();
    let (rest_workers, gemm_workers) = split_workers::<T>(workers, rest, gemm_flops);
    // If each remaining task runs on one thread, the remaining tasks need no separate parallel
    // region.
    let first = if gemm_workers.count() > 1 { tasks - rest } else { tasks };
    let (y, rest_y) = y.split_at_mut((first * task_len).min(y.len()));
    workers.try_for_each_chunk(y, task_len, |task, y| body(&ONE_THREAD, task, y))?;
    rest_workers
        .try_for_each_chunk(rest_y, task_len, |task, y| body(&gemm_workers, first + task, y))
}

/// Returns the set of threads among which `tasks` tasks are distributed, and the set of threads
/// that share a GEMM of one task, for GEMMs of `T`. There must be fewer tasks than threads.
fn split_workers<T>(workers: &Workers, tasks: usize, gemm_flops: u64) -> (Workers, Workers) {
    let parts = max_parts::<T>(workers.count(), gemm_flops);
    let parts_at_once = parts.min(workers.count() / tasks.max(1));
    // Tasks that run at the same time take `1 / parts_at_once` of the time of one task on one
    // thread. Tasks that run one after another take `tasks / parts` of this time. They run one
    // after another only if this saves more than 20 %, because all threads wait for one another
    // after each GEMM.
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
