//! Where threads that have done their work look for the next before they sleep.
//!
//! To wake a thread takes longer than many kernels, which follow each other closely: who has just
//! taken part in one is there for the next.

use crate::host::threads::region::ParallelRegion;
use parking_lot::Mutex;
use rayon_core::ThreadPool;
use std::{
    collections::VecDeque,
    iter::repeat_n,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

/// How long a thread looks for work.
const SPIN_TIME: Duration = Duration::from_micros(100);

#[derive(Debug, Default)]
pub(crate) struct IdleThreads {
    /// How many offers there are, to be looked at without the lock.
    offers: AtomicUsize,
    /// Threads that were called from the pool and have not come yet.
    called: AtomicUsize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Threads that look for work: at least as many as there are offers.
    waiting: usize,
    offers: VecDeque<Arc<ParallelRegion>>,
}

impl IdleThreads {
    /// Lets up to `others` threads know of work: those that wait here, then those of the pool.
    pub(crate) fn offer_work(
        self: &Arc<Self>,
        pool: &ThreadPool,
        others: usize,
        work: &Arc<ParallelRegion>,
    ) {
        for _ in self.offer(work, others)..others {
            // They are busy, and who comes too late finds nothing: calls are not to pile up.
            if self.called.load(Relaxed) >= pool.current_num_threads() {
                return;
            }
            let (lobby, work) = (self.clone(), work.clone());
            self.called.fetch_add(1, Relaxed);
            pool.spawn(move || {
                lobby.called.fetch_sub(1, Relaxed);
                lobby.worker_loop(work);
            });
        }
    }

    /// Threads that were called from the pool and have not come yet.
    #[cfg(test)]
    pub(crate) fn called(&self) -> usize {
        self.called.load(Relaxed)
    }

    /// Offers work to up to `most` threads; returns how many will see it.
    fn offer(&self, work: &Arc<ParallelRegion>, most: usize) -> usize {
        let mut state = self.state.lock();
        let count = most.min(state.waiting - state.offers.len());
        state.offers.extend(repeat_n(work, count).cloned());
        self.offers.store(state.offers.len(), Relaxed);
        count
    }

    /// Takes part in `work`, and then in what is offered, until nothing has been for a while.
    fn worker_loop(&self, mut work: Arc<ParallelRegion>) {
        loop {
            // Who calls the next kernel right after this one is to find this thread here.
            work.participate(|| self.state.lock().waiting += 1);
            work = match self.next() {
                Some(work) => work,
                None => return,
            };
        }
    }

    /// The next offer, or none after a while; this thread no longer counts as waiting then.
    fn next(&self) -> Option<Arc<ParallelRegion>> {
        let start = Instant::now();
        loop {
            let late = start.elapsed() > SPIN_TIME;
            if late || self.offers.load(Relaxed) > 0 {
                let mut state = self.state.lock();
                let offer = state.offers.pop_front();
                self.offers.store(state.offers.len(), Relaxed);
                if late || offer.is_some() {
                    state.waiting -= 1;
                    return offer;
                }
            }
            std::hint::spin_loop();
        }
    }
}
