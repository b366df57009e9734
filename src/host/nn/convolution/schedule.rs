//! Distribution of a convolution's work among threads, and activation of the outputs.
//!
//! A convolution is split into tasks. Each task processes one image, a group of images, or a range
//! of rows of the im2col matrix. If there are at least as many tasks as threads, each task runs on
//! one thread. If there are fewer tasks than threads, tasks run one after another, and all threads
//! share each GEMM. Results are bit-identical for any number of threads.

use crate::{
    element::Element,
    error::Result,
    host::{elementwise::map::unary_in_place, threads::Workers},
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
    split_workers(workers, op, usize::MAX).0
}

/// Returns the set of threads among which `tasks` tasks are distributed, and the set of threads
/// that share the work of one task.
///
/// At least one of the two returned sets is [`ONE_THREAD`].
pub(crate) fn split_workers<'a>(
    workers: &'a Workers,
    op: &Convolution,
    tasks: usize,
) -> (&'a Workers, &'a Workers) {
    if op.flops() < PARALLEL_MIN_FLOPS {
        (&ONE_THREAD, &ONE_THREAD)
    } else if tasks >= workers.count() {
        (workers, &ONE_THREAD)
    } else {
        (&ONE_THREAD, workers)
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
