//! Parallel region: the work of one kernel, which threads join while the region is open.
//!
//! The calling thread starts at once. At the end, the calling thread closes the region and waits
//! for the threads that have joined. The calling thread does not wait for threads that have not
//! joined yet, because waking a thread can take longer than a small kernel. A thread that comes too
//! late finds the region closed.

use crate::sync::{Condvar, Mutex};
use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::{Duration, Instant},
};

/// Time for which a thread polls before it sleeps. Waking a thread takes about as long.
pub(crate) const SPIN_TIME: Duration = Duration::from_micros(100);

/// Function that runs one task on the thread with the given number. Returns `false` if no task is
/// left.
pub(crate) type Step<'a> = dyn Fn(usize) -> bool + Sync + 'a;

/// Work of one kernel, which threads may join while the region is open.
#[derive(Debug)]
pub(crate) struct ParallelRegion {
    /// Closure borrowed from the caller of [`Self::new`], valid while the region is open or in use.
    step: *const Step<'static>,
    state: Mutex<State>,
    left: Condvar,
}

#[derive(Debug)]
struct State {
    /// Whether threads may still join.
    open: bool,
    /// Number of threads that have joined and not left.
    inside: usize,
    /// Panic of a thread that joined, if any.
    panic: Option<Box<dyn Any + Send>>,
}

// SAFETY: `step` points to a `Sync` closure, which any thread may call. The caller of `new` keeps
// the closure alive until `close` has returned, after which no thread calls it.
unsafe impl Send for ParallelRegion {}
// SAFETY: `step` points to a `Sync` closure, and the other fields are `Sync`.
unsafe impl Sync for ParallelRegion {}

impl ParallelRegion {
    /// Returns an open region.
    ///
    /// # Safety
    /// The caller keeps `step` borrowed until [`Self::close`] has returned.
    pub(crate) unsafe fn new(step: &Step) -> Arc<Self> {
        // SAFETY: only the lifetime changes, and the caller keeps `step` alive while it is used.
        let step: *const Step<'static> = unsafe { std::mem::transmute(std::ptr::from_ref(step)) };
        let state = Mutex::new(State { open: true, inside: 0, panic: None });
        Arc::new(Self { step, state, left: Condvar::new() })
    }

    /// Runs tasks on this thread, unless the region is closed, and then calls `leave`.
    /// [`Self::close`] waits for the `leave` calls of threads that joined.
    pub(crate) fn participate(&self, leave: impl FnOnce()) {
        {
            let mut state = self.state.lock();
            if !state.open {
                return leave();
            }
            state.inside += 1;
        }
        // SAFETY: this thread is counted as inside, so `close` has not returned. The caller of
        // `new` keeps the closure borrowed until `close` returns.
        let step = unsafe { &*self.step };
        let result = run_tasks(step);
        leave();
        let mut state = self.state.lock();
        state.inside -= 1;
        state.panic = state.panic.take().or(result.err());
        self.left.notify_one();
    }

    /// Closes the region, waits for the threads that joined, and returns the panic of one of them,
    /// if any.
    pub(crate) fn close(&self) -> Option<Box<dyn Any + Send>> {
        let mut state = self.state.lock();
        state.open = false;
        let start = Instant::now();
        while state.inside > 0 && start.elapsed() < SPIN_TIME {
            drop(state);
            std::hint::spin_loop();
            state = self.state.lock();
        }
        while state.inside > 0 {
            state = self.left.wait(state);
        }
        state.panic.take()
    }
}

/// Calls `step` with this thread's number, which is 0 outside of a pool, until no task is left.
pub(crate) fn run_tasks(step: &Step) -> std::thread::Result<()> {
    let thread = rayon_core::current_thread_index().map_or(0, |index| index + 1);
    catch_unwind(AssertUnwindSafe(|| while step(thread) {}))
}
