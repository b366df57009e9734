//! Fork and join: runs the tasks of a parallel region on the calling thread and on pool threads.

use crate::host::threads::{
    idle::IdleThreads,
    region::{ParallelRegion, Step, run_tasks},
};
use rayon_core::ThreadPool;
use std::{panic::resume_unwind, sync::Arc};

/// Calls `step` until no task is left, on the calling thread and on up to `max_helpers` pool
/// threads, idle threads first. If `step` panics on any thread, resumes that panic on the calling
/// thread.
pub(crate) fn run(pool: &ThreadPool, idle: &Arc<IdleThreads>, max_helpers: usize, step: &Step) {
    // SAFETY: `step` is borrowed until this function returns, and `close` is called before the
    // return. The code between does not unwind, because `run_tasks` catches panics of `step`.
    let region = unsafe { ParallelRegion::new(step) };
    idle.offer_work(pool, max_helpers, &region);
    let own_result = run_tasks(step);
    let panic = region.close();
    if let Some(panic) = own_result.err().or(panic) {
        resume_unwind(panic);
    }
}
