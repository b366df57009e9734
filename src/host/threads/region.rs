//! Work that other threads may join while it lasts.
//!
//! The calling thread starts at once and does not wait for anybody who has not started when nothing
//! is left to do. To wake a thread can take longer than a small kernel: whoever comes too late finds
//! the work closed, and has cost nothing.

use crate::host::threads::idle::IdleThreads;
use parking_lot::{Condvar, Mutex};
use rayon_core::ThreadPool;
use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::Arc,
    time::{Duration, Instant},
};

/// How long the caller looks for others to finish before it sleeps: about what to wake it takes.
const SPIN_TIME: Duration = Duration::from_micros(100);

type Step<'a> = dyn Fn(usize) -> bool + Sync + 'a;

#[derive(Debug)]
pub(crate) struct ParallelRegion {
    /// The caller's; there as long as `open`, or anybody is `inside`.
    step: *const Step<'static>,
    state: Mutex<State>,
    left: Condvar,
}

#[derive(Debug)]
struct State {
    /// Whether others may still join.
    open: bool,
    /// How many have joined and not left.
    inside: usize,
    /// What one of them panicked with.
    panic: Option<Box<dyn Any + Send>>,
}

// SAFETY: what `step` points to may be called by several threads at once; `join` and `close` see to
// it that nobody does when it is gone.
#[allow(unsafe_code)]
unsafe impl Send for ParallelRegion {}
// SAFETY: as above.
#[allow(unsafe_code)]
unsafe impl Sync for ParallelRegion {}

/// Calls `step` until it has nothing more to do, on the calling thread and on up to `others` of
/// the pool, those in its lobby first. Panics of any of them reach the caller.
pub(crate) fn run(pool: &ThreadPool, lobby: &Arc<IdleThreads>, others: usize, step: &Step) {
    // SAFETY: the lifetime alone is changed; the pointer is used while `step` is borrowed here.
    #[allow(unsafe_code)]
    let step_of_all: *const Step<'static> =
        unsafe { std::mem::transmute(std::ptr::from_ref(step)) };
    let state = Mutex::new(State { open: true, inside: 0, panic: None });
    let shared = Arc::new(ParallelRegion { step: step_of_all, state, left: Condvar::new() });
    lobby.offer_work(pool, others, &shared);
    // Also if this panics, nobody may be left inside.
    let own = work(step);
    let panic = shared.close();
    if let Some(panic) = own.err().or(panic) {
        resume_unwind(panic);
    }
}

/// Calls `step` until it has nothing more to do, with this thread's number: 0 for those outside a
/// pool.
fn work(step: &Step) -> std::thread::Result<()> {
    let thread = rayon_core::current_thread_index().map_or(0, |index| index + 1);
    catch_unwind(AssertUnwindSafe(|| while step(thread) {}))
}

impl ParallelRegion {
    /// Takes part, unless it is too late. `leave` is called before the caller can know that this
    /// thread is done.
    pub(crate) fn participate(&self, leave: impl FnOnce()) {
        {
            let mut state = self.state.lock();
            if !state.open {
                return leave();
            }
            state.inside += 1;
        }
        // SAFETY: the caller is in `run` until nobody is inside.
        #[allow(unsafe_code)]
        let step = unsafe { &*self.step };
        let done = work(step);
        leave();
        let mut state = self.state.lock();
        state.inside -= 1;
        state.panic = state.panic.take().or(done.err());
        self.left.notify_all();
    }

    /// Lets nobody in any more, and waits for those inside.
    fn close(&self) -> Option<Box<dyn Any + Send>> {
        let mut state = self.state.lock();
        state.open = false;
        let start = Instant::now();
        while state.inside > 0 && start.elapsed() < SPIN_TIME {
            drop(state);
            std::hint::spin_loop();
            state = self.state.lock();
        }
        while state.inside > 0 {
            self.left.wait(&mut state);
        }
        state.panic.take()
    }
}
