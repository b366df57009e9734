//! Idle pool threads, which poll for work before they sleep.
//!
//! Waking a sleeping thread takes longer than many kernels run, and kernels follow one another
//! closely. A pool thread that has just finished a kernel therefore polls for more work for up to
//! 100 µs.

use crate::host::threads::region::{ParallelRegion, SPIN_TIME};
use crate::sync::Mutex;
use rayon_core::ThreadPool;
use std::{
    collections::VecDeque,
    iter::repeat_n,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Instant,
};

/// Pool threads that poll for work, and the regions offered to them.
#[derive(Debug, Default)]
pub(crate) struct IdleThreads {
    /// Number of offers. Threads poll this number without the lock.
    offers: AtomicUsize,
    /// Number of calls to pool threads that have not started yet.
    called: AtomicUsize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Number of threads that poll for work, which is at least the number of offers.
    waiting: usize,
    offers: VecDeque<Arc<ParallelRegion>>,
}

impl IdleThreads {
    /// Offers a region to up to `max_helpers` threads: first to polling threads, then to sleeping
    /// threads of the pool.
    pub(crate) fn offer_work(
        self: &Arc<Self>,
        pool: &ThreadPool,
        max_helpers: usize,
        region: &Arc<ParallelRegion>,
    ) {
        for _ in self.offer_to_waiting(region, max_helpers)..max_helpers {
            // Every pool thread has been called and is still busy. A late thread would find no
            // work, so do not queue more calls.
            if self.called.load(Relaxed) >= pool.current_num_threads() {
                return;
            }
            let (idle, region) = (self.clone(), region.clone());
            self.called.fetch_add(1, Relaxed);
            pool.spawn(move || {
                idle.called.fetch_sub(1, Relaxed);
                idle.worker_loop(region);
            });
        }
    }

    #[cfg(test)]
    pub(crate) fn called(&self) -> usize {
        self.called.load(Relaxed)
    }

    /// Offers a region to up to `max` polling threads. Returns how many of them will accept the
    /// offer.
    fn offer_to_waiting(&self, region: &Arc<ParallelRegion>, max: usize) -> usize {
        let mut state = self.state.lock();
        let count = max.min(state.waiting - state.offers.len());
        state.offers.extend(repeat_n(region, count).cloned());
        self.offers.store(state.offers.len(), Relaxed);
        count
    }

    /// Participates in `region` and in later offers, until no offer comes within [`SPIN_TIME`].
    fn worker_loop(&self, mut region: Arc<ParallelRegion>) {
        loop {
            // Count this thread as waiting before the region ends, so that a kernel called right
            // afterwards finds it.
            region.participate(|| self.state.lock().waiting += 1);
            region = match self.next_offer() {
                Some(region) => region,
                None => return,
            };
        }
    }

    /// Waits up to [`SPIN_TIME`] for an offer, and then stops counting this thread as waiting.
    fn next_offer(&self) -> Option<Arc<ParallelRegion>> {
        let start = Instant::now();
        loop {
            let timed_out = start.elapsed() > SPIN_TIME;
            if timed_out || self.offers.load(Relaxed) > 0 {
                let mut state = self.state.lock();
                let offer = state.offers.pop_front();
                self.offers.store(state.offers.len(), Relaxed);
                if timed_out || offer.is_some() {
                    state.waiting -= 1;
                    return offer;
                }
            }
            std::hint::spin_loop();
        }
    }
}
