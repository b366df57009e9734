//! Idle pool threads, which poll for work before they sleep.
//!
//! Waking a sleeping thread takes longer than many kernels run, and kernels follow one another
//! closely. To be awake for the next kernel, a pool thread that has just finished a kernel polls
//! for more work for up to 100 µs. After 100 µs without work, a pool thread sleeps until a caller
//! has work for more threads than are polling. If the pool has more threads than the process may
//! run at once, a pool thread without work sleeps at once.
//!
//! A caller offers its parallel region once for each thread that may help, and never waits for a
//! thread to accept an offer. If all threads are busy, an offer stays in the list until a thread is
//! free. A thread that accepts an offer too late finds the region closed.

use crate::{
    host::threads::region::ParallelRegion,
    sync::{AtomicUsize, Condvar, Mutex, MutexGuard, Relaxed},
};
use std::{
    collections::VecDeque,
    iter::repeat_n,
    sync::Arc,
    time::{Duration, Instant},
};

/// Pool threads that poll for work or sleep, and the regions offered to them.
#[derive(Debug)]
pub(crate) struct IdleThreads {
    /// Number of pool threads, including busy threads.
    threads: usize,
    /// Time for which a thread without work polls before it sleeps.
    spin_time: Duration,
    /// Number of pending offers of parallel regions to idle threads. Idle threads poll `offers`
    /// without locking `state`.
    offers: OwnCacheLines<AtomicUsize>,
    state: Mutex<State>,
    /// Condition variable, signalled once for each thread that `State::notified` counts.
    notification: Condvar,
}

/// Value that shares no pair of cache lines with other values. A write to a neighbouring value
/// therefore does not evict the value from the caches of the threads that poll it.
#[derive(Debug)]
#[repr(align(128))]
struct OwnCacheLines<T>(T);

#[derive(Debug, Default)]
struct State {
    /// The regions of the pending offers; there are at most `threads` pending offers, each for one
    /// thread.
    offers: VecDeque<Arc<ParallelRegion>>,
    /// Number of pool threads that poll for an offer, or have been notified and will poll.
    waiting: usize,
    /// Number of pool threads that sleep and have not been notified.
    sleeping: usize,
    /// Number of notifications that no woken thread has consumed yet.
    notified: usize,
    /// Whether the thread pool has been dropped.
    closed: bool,
}

impl State {
    /// Counts up to `count` sleeping threads as waiting, and returns their number. The caller must
    /// then notify as many threads as `wake` has returned.
    fn wake(&mut self, count: usize) -> usize {
        let count = count.min(self.sleeping);
        self.sleeping -= count;
        self.waiting += count;
        self.notified += count;
        count
    }
}

impl IdleThreads {
    /// Returns the [`IdleThreads`] of a new pool, whose threads all start by polling for an offer.
    /// A thread without work polls for `spin_time` before it sleeps.
    pub(crate) fn new(threads: usize, spin_time: Duration) -> Self {
        let state = State { waiting: threads, ..State::default() };
        Self {
            threads,
            spin_time,
            offers: OwnCacheLines(AtomicUsize::new(0)),
            state: Mutex::new(state),
            notification: Condvar::new(),
        }
    }

    /// Offers a parallel region to up to `max_helpers` pool threads. Wakes sleeping threads only if
    /// there are more pending offers than waiting threads.
    pub(crate) fn offer_work(&self, max_helpers: usize, region: &Arc<ParallelRegion>) {
        let mut state = self.state.lock();
        // If the number of pending offers equals the number of pool threads, every thread is busy.
        // A thread that becomes free later would find no work in the region, so make no further
        // offers.
        let count = max_helpers.min(self.threads - state.offers.len());
        state.offers.extend(repeat_n(region, count).cloned());
        self.offers.0.store(state.offers.len(), Relaxed);
        let missing_count = state.offers.len().saturating_sub(state.waiting);
        let woken_count = state.wake(missing_count);
        drop(state);
        (0..woken_count).for_each(|_| self.notification.notify_one());
    }

    /// Makes each pool thread exit as soon as it is free.
    pub(crate) fn close(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        state.wake(usize::MAX);
        drop(state);
        self.notification.notify_all();
    }

    /// Counts the calling thread as waiting until [`Self::next_offer`] returns.
    pub(crate) fn add_waiting(&self) {
        self.state.lock().waiting += 1;
    }

    /// Waits for an offer: polls for up to `spin_time`, then sleeps. Returns `None` if the pool
    /// has been dropped.
    pub(crate) fn next_offer(&self) -> Option<Arc<ParallelRegion>> {
        let mut start = Instant::now();
        loop {
            let timed_out = start.elapsed() >= self.spin_time;
            if timed_out || self.offers.0.load(Relaxed) > 0 {
                let mut state = self.state.lock();
                let offer = state.offers.pop_front();
                self.offers.0.store(state.offers.len(), Relaxed);
                if offer.is_some() || state.closed {
                    state.waiting -= 1;
                    return offer;
                }
                if timed_out {
                    self.sleep(state);
                    start = Instant::now();
                }
            }
            std::hint::spin_loop();
        }
    }

    /// Sleeps until the thread is notified. The caller has checked, while holding the lock of
    /// `state`, that no offer of a parallel region is pending.
    ///
    /// The sleeping thread misses no notification. A thread that later offers a parallel region
    /// sees this thread counted as sleeping, increments `notified` under the lock, and then signals
    /// the condition variable. `Condvar::wait` unlocks `state` and starts to wait in one atomic
    /// step, so the signal cannot be missed. If another thread that is about to sleep consumes the
    /// notification first, that thread polls for the offer instead.
    fn sleep(&self, mut state: MutexGuard<'_, State>) {
        state.waiting -= 1;
        state.sleeping += 1;
        while state.notified == 0 {
            state = self.notification.wait(state);
        }
        state.notified -= 1;
    }

    /// Returns the number of pending offers, which no thread has accepted.
    #[cfg(test)]
    pub(crate) fn pending(&self) -> usize {
        self.state.lock().offers.len()
    }

    /// Returns the number of pool threads that sleep and have not been notified.
    #[cfg(test)]
    pub(crate) fn sleeping(&self) -> usize {
        self.state.lock().sleeping
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::testing::wait_until;

    const SPIN_TIME: Duration = Duration::from_micros(100);

    #[test]
    fn an_offer_goes_to_a_polling_thread_before_it_wakes_a_sleeping_one() {
        // The test's own thread counts as the first pool thread, which polls, and the spawned
        // thread falls asleep.
        let (idle, region) = (IdleThreads::new(2, SPIN_TIME), ParallelRegion::closed());
        std::thread::scope(|scope| {
            let sleeping_thread = scope.spawn(|| idle.next_offer().is_some());
            wait_until(|| idle.sleeping() == 1, "the second thread must sleep");
            idle.offer_work(1, &region);
            assert_eq!((idle.pending(), idle.sleeping()), (1, 1));
            idle.offer_work(1, &region);
            assert_eq!(idle.sleeping(), 0, "the second offer must wake the second thread");
            assert!(sleeping_thread.join().unwrap());
            assert_eq!(idle.pending(), 1);
            assert!(idle.next_offer().is_some());
        });
    }

    #[test]
    fn offers_to_busy_threads_are_bounded_and_accepted_later() {
        let (idle, region) = (IdleThreads::new(2, SPIN_TIME), ParallelRegion::closed());
        for pending in [1, 2, 2] {
            idle.offer_work(1, &region);
            assert_eq!(idle.pending(), pending);
        }
        idle.offer_work(5, &region);
        assert_eq!(idle.pending(), 2);
        assert!([(); 2].iter().all(|()| idle.next_offer().is_some()));
        // Both pool threads count as busy until `add_waiting` counts one of them as waiting.
        idle.offer_work(5, &region);
        idle.add_waiting();
        assert!(idle.next_offer().is_some());
        assert_eq!((idle.pending(), idle.sleeping()), (1, 0));
    }
}
