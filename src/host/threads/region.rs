//! Parallel region: the work of one kernel. Threads can join the region while it is open.
//!
//! The calling thread starts on the tasks at once. When no task is left, the calling thread closes
//! the region and waits for the threads that have joined. The calling thread does not wait for
//! threads that have not joined yet, because waking a thread can take longer than a small kernel. A
//! thread that tries to join after `close` finds the region closed and runs no task.

use crate::sync::{AtomicUsize, Condvar, Mutex, Relaxed, thread_local};
use std::{
    any::Any,
    cell::Cell,
    mem,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::{Duration, Instant},
};

/// Time for which a waiting thread polls before it sleeps. Waking a sleeping thread takes about as
/// long as this spin time. Under loom, waiting threads sleep at once, because a loom model must not
/// depend on elapsed time.
const SPIN_TIME: Duration = Duration::from_micros(if cfg!(loom) { 0 } else { 100 });

/// Returns the time for which a waiting thread polls before it sleeps: [`SPIN_TIME`], or zero if
/// the set has more threads than the process may run at once (`processors`). A polling thread
/// would then occupy a processor that a thread with work could use.
pub(crate) fn spin_time(threads: usize, processors: usize) -> Duration {
    if threads > processors { Duration::ZERO } else { SPIN_TIME }
}

thread_local! {
    /// Number of the current thread in its thread pool; 0 for a thread outside a pool.
    // The `thread_local!` macro of loom does not accept a `const` block.
    #[allow(clippy::missing_const_for_thread_local)]
    pub(crate) static THREAD_NUMBER: Cell<usize> = Cell::new(0);
}

/// Closure that runs one task on the thread with the given number. The closure returns `false` if
/// no task is left.
pub(crate) type Step<'a> = dyn Fn(usize) -> bool + Sync + 'a;

/// A parallel region, which threads may join while the region is open.
#[derive(Debug)]
pub(crate) struct ParallelRegion {
    /// Closure borrowed from the caller of [`Self::new`], valid until [`Self::close`] has returned.
    step: *const Step<'static>,
    /// Time for which [`Self::close`] polls before it sleeps.
    spin_time: Duration,
    /// Number of threads that have joined the region and not left yet. Threads change
    /// `participant_count` only while they hold the lock of `state`; the calling thread polls
    /// `participant_count` without the lock.
    participant_count: AtomicUsize,
    state: Mutex<State>,
    /// Condition variable that a thread notifies when it leaves the region.
    leave_signal: Condvar,
}

#[derive(Debug)]
struct State {
    /// Whether threads may still join the region.
    is_open: bool,
    /// Payloads of panics on threads that joined the region.
    panics: Vec<Panic>,
}

/// Payload of a panic, as `catch_unwind` returns it.
type Panic = Box<dyn Any + Send>;

// SAFETY: `step` points to a `Sync` closure, which any thread may call. The caller of `new` keeps
// the closure alive until `close` has returned, after which no thread calls it.
unsafe impl Send for ParallelRegion {}
// SAFETY: `step` points to a `Sync` closure, and the other fields are `Sync`.
unsafe impl Sync for ParallelRegion {}

impl ParallelRegion {
    /// Creates an open region, which threads can join.
    ///
    /// # Safety
    /// The caller keeps `step` borrowed until [`Self::close`] has returned.
    pub(crate) unsafe fn new(step: &Step, spin_time: Duration) -> Arc<Self> {
        // SAFETY: the transmute changes only the lifetime, and the caller keeps `step` alive until
        // `close` has returned.
        let step: *const Step<'static> = unsafe { std::mem::transmute(std::ptr::from_ref(step)) };
        Arc::new(Self {
            step,
            spin_time,
            participant_count: AtomicUsize::new(0),
            state: Mutex::new(State { is_open: true, panics: Vec::new() }),
            leave_signal: Condvar::new(),
        })
    }

    /// Creates a closed region, which no thread can join.
    #[cfg(test)]
    pub(crate) fn closed() -> Arc<Self> {
        const NO_TASK: &Step<'static> = &|_| false;
        Arc::new(Self {
            step: NO_TASK,
            spin_time: Duration::ZERO,
            participant_count: AtomicUsize::new(0),
            state: Mutex::new(State { is_open: false, panics: Vec::new() }),
            leave_signal: Condvar::new(),
        })
    }

    /// Runs tasks of the region on the calling thread if the region is still open. Calls `leave`
    /// even if the region is closed. [`Self::close`] returns only after every thread that joined
    /// has called `leave`.
    pub(crate) fn participate(&self, leave: impl FnOnce()) {
        {
            let state = self.state.lock();
            if !state.is_open {
                return leave();
            }
            self.participant_count.fetch_add(1, Relaxed);
        }
        // SAFETY: this thread is counted in `participant_count`, so `close` cannot return before
        // this thread leaves. The caller of `new` keeps the closure borrowed until `close` returns.
        let step = unsafe { &*self.step };
        let result = run_tasks(step);
        leave();
        let mut state = self.state.lock();
        // The thread that calls `close` drops the panic payloads. The destructor of a payload may
        // itself panic, which would terminate this pool thread.
        state.panics.extend(result.err());
        // Only the last thread that leaves wakes the calling thread.
        if self.participant_count.fetch_sub(1, Relaxed) == 1 {
            self.leave_signal.notify_one();
        }
    }

    /// Closes the region, waits for the threads that joined, and returns the first recorded panic
    /// of those threads, if any.
    pub(crate) fn close(&self) -> Option<Panic> {
        let mut state = self.state.lock();
        state.is_open = false;
        if self.participant_count.load(Relaxed) > 0 {
            drop(state);
            let start = Instant::now();
            while self.participant_count.load(Relaxed) > 0 && start.elapsed() < self.spin_time {
                std::hint::spin_loop();
            }
            // Acquiring the lock of `state` also makes the results of the tasks visible to the
            // caller, because every thread locks `state` after its last task.
            state = self.state.lock();
        }
        while self.participant_count.load(Relaxed) > 0 {
            state = self.leave_signal.wait(state);
        }
        let panics = mem::take(&mut state.panics);
        drop(state);
        panics.into_iter().next()
    }
}

/// Calls `step` with the calling thread's number until no task is left. The thread number is 0 on a
/// thread outside the pool.
pub(crate) fn run_tasks(step: &Step) -> std::thread::Result<()> {
    let thread = THREAD_NUMBER.with(Cell::get);
    catch_unwind(AssertUnwindSafe(|| while step(thread) {}))
}
