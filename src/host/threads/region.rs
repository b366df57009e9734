//! Parallel region: the work of one kernel, which threads join while the region is open.
//!
//! The calling thread starts at once. At the end, the calling thread closes the region and waits
//! for the threads that have joined. The calling thread does not wait for threads that have not
//! joined yet, because waking a thread can take longer than a small kernel. A thread that comes too
//! late finds the region closed.

use crate::sync::{AtomicUsize, Condvar, Mutex, Relaxed, thread_local};
use std::{
    any::Any,
    cell::Cell,
    mem,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::{Duration, Instant},
};

/// Time for which a thread polls before it sleeps. Waking a thread takes about as long. loom
/// explores only sleeping threads, because its runs must not depend on the time.
pub(crate) const SPIN_TIME: Duration = Duration::from_micros(if cfg!(loom) { 0 } else { 100 });

thread_local! {
    /// Number of the current thread in its pool; 0 outside of a pool.
    // loom's macro does not accept a `const` block.
    #[allow(clippy::missing_const_for_thread_local)]
    pub(crate) static THREAD_NUMBER: Cell<usize> = Cell::new(0);
}

/// Function that runs one task on the thread with the given number. Returns `false` if no task is
/// left.
pub(crate) type Step<'a> = dyn Fn(usize) -> bool + Sync + 'a;

/// Work of one kernel, which threads may join while the region is open.
#[derive(Debug)]
pub(crate) struct ParallelRegion {
    /// Closure borrowed from the caller of [`Self::new`], valid while the region is open or in use.
    step: *const Step<'static>,
    /// Number of threads that have joined and not left. Threads change this number only under the
    /// lock; the caller polls it without the lock.
    inside: AtomicUsize,
    state: Mutex<State>,
    /// Signalled when a thread leaves.
    left: Condvar,
}

#[derive(Debug)]
struct State {
    /// Whether threads may still join.
    open: bool,
    /// Panics of threads that joined.
    panics: Vec<Panic>,
}

/// Value of a panic.
type Panic = Box<dyn Any + Send>;

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
        Arc::new(Self {
            step,
            inside: AtomicUsize::new(0),
            state: Mutex::new(State { open: true, panics: Vec::new() }),
            left: Condvar::new(),
        })
    }

    /// Returns a region that no thread can join.
    #[cfg(test)]
    pub(crate) fn closed() -> Arc<Self> {
        const NO_TASK: &Step<'static> = &|_| false;
        Arc::new(Self {
            step: NO_TASK,
            inside: AtomicUsize::new(0),
            state: Mutex::new(State { open: false, panics: Vec::new() }),
            left: Condvar::new(),
        })
    }

    /// Runs tasks on this thread, unless the region is closed, and then calls `leave`.
    /// [`Self::close`] waits for the `leave` calls of threads that joined.
    pub(crate) fn participate(&self, leave: impl FnOnce()) {
        {
            let state = self.state.lock();
            if !state.open {
                return leave();
            }
            self.inside.fetch_add(1, Relaxed);
        }
        // SAFETY: this thread is counted as inside, so `close` has not returned. The caller of
        // `new` keeps the closure borrowed until `close` returns.
        let step = unsafe { &*self.step };
        let result = run_tasks(step);
        leave();
        let mut state = self.state.lock();
        // The caller drops all panics, because the destructor of a panic may panic itself, which
        // would end this thread.
        state.panics.extend(result.err());
        self.inside.fetch_sub(1, Relaxed);
        self.left.notify_one();
    }

    /// Closes the region, waits for the threads that joined, and returns the panic of one of them,
    /// if any.
    pub(crate) fn close(&self) -> Option<Panic> {
        let mut state = self.state.lock();
        state.open = false;
        if self.inside.load(Relaxed) > 0 {
            drop(state);
            let start = Instant::now();
            while self.inside.load(Relaxed) > 0 && start.elapsed() < SPIN_TIME {
                std::hint::spin_loop();
            }
            // This lock also makes the results of the tasks visible to the caller, because every
            // thread that left had locked the state after its last task.
            state = self.state.lock();
        }
        while self.inside.load(Relaxed) > 0 {
            state = self.left.wait(state);
        }
        let panics = mem::take(&mut state.panics);
        drop(state);
        panics.into_iter().next()
    }
}

/// Calls `step` with this thread's number, which is 0 outside of a pool, until no task is left.
pub(crate) fn run_tasks(step: &Step) -> std::thread::Result<()> {
    let thread = THREAD_NUMBER.with(Cell::get);
    catch_unwind(AssertUnwindSafe(|| while step(thread) {}))
}
