//! Observation of parallel regions: the time for which each thread works on a region.

use crate::host::threads::region::Step;
use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Instant,
};

/// A function that each thread of a parallel region calls after its last task. The argument is the
/// time at which the thread started its first task.
pub(crate) type RegionObserver = Arc<dyn Fn(Instant) + Send + Sync>;

/// A function that returns the observer of the regions that the calling thread starts.
type CurrentObserver = fn() -> Option<RegionObserver>;

/// Number of [`RegionWatch`]es that exist in the process. While no `RegionWatch` exists, the start
/// of a region costs one relaxed atomic load.
static WATCHES: AtomicUsize = AtomicUsize::new(0);
static CURRENT_OBSERVER: OnceLock<CurrentObserver> = OnceLock::new();

/// A value that makes each parallel region look for an observer as long as the value exists.
#[derive(Debug)]
pub(crate) struct RegionWatch(());

impl RegionWatch {
    /// Makes each parallel region call `current` to get its observer; every call of `new` must pass
    /// the same function.
    pub(crate) fn new(current: CurrentObserver) -> Self {
        CURRENT_OBSERVER.get_or_init(|| current);
        WATCHES.fetch_add(1, Relaxed);
        Self(())
    }
}

impl Drop for RegionWatch {
    fn drop(&mut self) {
        WATCHES.fetch_sub(1, Relaxed);
    }
}

/// Returns the observer of a region that the calling thread starts; `None` if the region is not
/// observed.
#[inline]
pub(super) fn current_observer() -> Option<RegionObserver> {
    if WATCHES.load(Relaxed) == 0 { None } else { CURRENT_OBSERVER.get()?() }
}

/// Runs all tasks that `step` has for the thread with the number `thread`. Then calls `observer`,
/// unless `step` had no task. Returns `false`, because no task is left.
pub(super) fn run_observed(step: &Step, thread: usize, observer: &RegionObserver) -> bool {
    let start = Instant::now();
    if step(thread) {
        while step(thread) {}
        observer(start);
    }
    false
}
