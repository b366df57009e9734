//! Thread pool: starts and ends the pool threads, and runs parallel regions on them.

use crate::{
    host::threads::{
        idle::IdleThreads,
        processors::available_processors,
        region::{ParallelRegion, Step, THREAD_NUMBER, run_tasks, spin_time},
    },
    sync::thread::Builder,
};
use std::{io, panic::resume_unwind, sync::Arc, time::Duration};

/// Pool threads that execute tasks of parallel regions for any number of calling threads. Pool
/// threads exit after the pool is dropped.
#[derive(Debug)]
pub(crate) struct Pool {
    idle_threads: Arc<IdleThreads>,
    /// Time for which a waiting thread polls before it sleeps.
    spin_time: Duration,
}

impl Pool {
    /// Starts `threads` threads.
    ///
    /// # Errors
    /// Returns the operating system's error if a thread cannot be started. After an error, all
    /// threads that `start` has already started exit.
    pub(crate) fn start(threads: usize) -> io::Result<Self> {
        Self::start_with(threads, |builder, body| builder.spawn(body).map(drop))
    }

    /// Creates a pool, and spawns each of its threads with `start`. Tests pass a `start` that
    /// returns an error.
    fn start_with(
        threads: usize,
        start: impl Fn(Builder, Box<dyn FnOnce() + Send>) -> io::Result<()>,
    ) -> io::Result<Self> {
        // If spawning a thread fails, the early return drops the pool, so the threads spawned so
        // far exit.
        let spin_time = spin_time(threads + 1, available_processors());
        let idle_threads = Arc::new(IdleThreads::new(threads, spin_time));
        let pool = Self { idle_threads, spin_time };
        for index in 0..threads {
            let idle_threads = Arc::clone(&pool.idle_threads);
            let body = move || {
                THREAD_NUMBER.with(|number| number.set(index + 1));
                while let Some(region) = idle_threads.next_offer() {
                    // Count this thread as idle before the parallel region ends, so that the next
                    // kernel can use this thread at once.
                    region.participate(|| idle_threads.add_waiting());
                }
            };
            start(Builder::new().name(format!("cortado-{index}")), Box::new(body))?;
        }
        Ok(pool)
    }

    /// Calls `step` until no task is left, on the calling thread and on up to `max_helpers` pool
    /// threads. If `step` panics on any thread, resumes that panic on the calling thread.
    pub(crate) fn run(&self, max_helpers: usize, step: &Step) {
        // SAFETY: `step` is borrowed until `run` returns, and `run` calls `close` before it
        // returns. The code between `new` and `close` does not unwind, because `run_tasks` catches
        // panics of `step`.
        let region = unsafe { ParallelRegion::new(step, self.spin_time) };
        self.idle_threads.offer_work(max_helpers, &region);
        let own_result = run_tasks(step);
        let panic = region.close();
        if let Some(panic) = own_result.err().or(panic) {
            resume_unwind(panic);
        }
    }

    #[cfg(test)]
    pub(crate) fn idle_threads(&self) -> &Arc<IdleThreads> {
        &self.idle_threads
    }
}

impl Drop for Pool {
    /// Tells the pool threads to exit, but does not join them, because a pool thread may drop the
    /// pool.
    fn drop(&mut self) {
        self.idle_threads.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        host::testing::wait_until,
        sync::{AtomicUsize, Mutex, Relaxed},
    };
    use std::sync::Weak;

    /// Waits until all pool threads have exited. Each pool thread holds a strong reference to the
    /// list of idle threads.
    fn wait_for_end(idle_threads: &Weak<IdleThreads>) {
        wait_until(|| idle_threads.strong_count() == 0, "the pool threads must end");
    }

    #[test]
    fn threads_end_after_the_pool_is_dropped() {
        for pause in [0, 20] {
            let pool = Pool::start(3).unwrap();
            let idle_threads = Arc::downgrade(&pool.idle_threads);
            // A pause of 20 ms exceeds the spin time, so the pool threads are asleep when the pool
            // is dropped.
            std::thread::sleep(std::time::Duration::from_millis(pause));
            assert_eq!(idle_threads.strong_count(), 4);
            drop(pool);
            wait_for_end(&idle_threads);
        }
    }

    #[test]
    fn threads_end_after_a_pool_thread_drops_the_pool() {
        let (outer, inner) = (Pool::start(1).unwrap(), Pool::start(2).unwrap());
        let idle_threads = Arc::downgrade(&inner.idle_threads);
        let (inner, dropped) = (Mutex::new(Some(inner)), AtomicUsize::new(0));
        outer.run(1, &|thread| {
            if thread == 0 {
                wait_until(|| dropped.load(Relaxed) == 1, "a pool thread must drop the pool");
            } else {
                drop(inner.lock().take());
                dropped.store(1, Relaxed);
            }
            false
        });
        wait_for_end(&idle_threads);
    }

    #[test]
    fn started_threads_end_if_a_later_thread_cannot_be_started() {
        let (started, threads) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        let error = Pool::start_with(4, |builder, body| {
            if started.fetch_add(1, Relaxed) == 2 {
                return Err(io::Error::other("no more threads"));
            }
            // The thread owns `liveness_token`, so a weak reference to the token shows whether the
            // thread has exited.
            let liveness_token = Arc::new(());
            threads.lock().push(Arc::downgrade(&liveness_token));
            builder
                .spawn(move || {
                    body();
                    drop(liveness_token);
                })
                .map(drop)
        })
        .unwrap_err();
        assert_eq!(error.to_string(), "no more threads");
        let threads = threads.into_inner();
        assert_eq!(threads.len(), 2);
        let have_ended = || threads.iter().all(|token| token.strong_count() == 0);
        wait_until(have_ended, "the started threads must end");
    }
}
