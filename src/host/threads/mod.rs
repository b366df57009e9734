//! The threads that host kernels run on.

pub(crate) mod idle;
pub(crate) mod region;
pub(crate) mod work_stealing;

use crate::{
    error::{Error, Result},
    host::threads::{idle::IdleThreads, work_stealing::StealQueues},
};
use parking_lot::Mutex;
use rayon_core::{ThreadPool, ThreadPoolBuilder};
use std::sync::{Arc, OnceLock};

/// A set of threads; a cheap handle.
///
/// Kernels split sums by their size alone, never by the number of threads, and combine partial
/// results in a fixed order: so results have the same bits for any number of threads.
#[derive(Clone, Debug)]
pub struct Workers {
    /// Threads beside the calling one, if there are any, and where they look for work.
    pool: Option<(Arc<ThreadPool>, Arc<IdleThreads>)>,
    count: usize,
}

impl Workers {
    /// `count` threads; 0 means as many as the machine runs at once.
    ///
    /// # Errors
    /// [`Error::InvalidInput`] if the threads cannot be started.
    pub fn new(count: usize) -> Result<Self> {
        let count = match count {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            count => count,
        };
        if count == 1 {
            return Ok(Self::sequential());
        }
        // Of more, rayon would make fewer than are counted on.
        let most = rayon_core::max_num_threads();
        if count > most {
            return Err(Error::invalid_input(
                "workers",
                format!("{count} threads; the most is {most}"),
            ));
        }
        let pool = ThreadPoolBuilder::new()
            .num_threads(count - 1)
            .thread_name(|index| format!("cortado-{index}"))
            .build()
            .map_err(|error| {
                Error::invalid_input("workers", format!("{count} threads: {error}"))
            })?;
        Ok(Self { pool: Some((Arc::new(pool), Arc::default())), count })
    }

    /// The calling thread alone.
    pub const fn sequential() -> Self {
        Self { pool: None, count: 1 }
    }

    /// One set for the whole process, as many as the machine runs at once, started on first
    /// use. Falls back to the calling thread if threads cannot be started.
    pub fn global() -> &'static Self {
        static GLOBAL: OnceLock<Workers> = OnceLock::new();
        GLOBAL.get_or_init(|| Self::new(0).unwrap_or(Self::sequential()))
    }

    /// Number of threads, the calling one among them.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Calls `body` once for each of `0..tasks`, on any thread, in any order.
    pub fn run(&self, tasks: usize, body: impl Fn(usize) + Send + Sync) {
        let parts = StealQueues::new(tasks, self.count, |range| range);
        self.share(tasks, &|thread| parts.take(thread).map(&body).is_some());
    }

    /// Maps each of `0..tasks`, on any thread; results are in order.
    pub fn map<R: Send>(&self, tasks: usize, body: impl Fn(usize) -> R + Send + Sync) -> Vec<R> {
        let mut results: Vec<Option<R>> = (0..tasks).map(|_| None).collect();
        self.for_each_chunk(&mut results, 1, |task, result| result[0] = Some(body(task)));
        results.into_iter().flatten().collect()
    }

    /// The size of chunks of which every thread gets as many, of `len` elements in all: a multiple of
    /// `unit`, and about `least` or more, half of that if there are not enough for two. All are one
    /// chunk if there are no more than `least`.
    ///
    /// Kernels that cut what they write so find in their thread's cache what another one wrote.
    #[inline]
    pub(crate) fn even_chunk_len(&self, len: usize, least: usize, unit: usize) -> usize {
        // Short kernels feel a call.
        if len <= least { least } else { self.even_of_many(len, least, unit) }
    }

    fn even_of_many(&self, len: usize, least: usize, unit: usize) -> usize {
        let each = (len / least.max(1) / self.count).max(1);
        let chunks = (each * self.count).min(len.div_ceil(least.max(1)));
        len.div_ceil(chunks).next_multiple_of(unit)
    }

    /// Calls `body(i, chunk)` for the i-th run of `size` elements of `y`, the last of which may
    /// be shorter.
    #[inline]
    pub fn for_each_chunk<T: Send>(
        &self,
        y: &mut [T],
        size: usize,
        body: impl Fn(usize, &mut [T]) + Send + Sync,
    ) {
        // Short kernels feel a call more.
        if (1..=size).contains(&y.len()) { body(0, y) } else { self.share_chunks(y, size, body) }
    }

    fn share_chunks<T: Send>(
        &self,
        y: &mut [T],
        size: usize,
        body: impl Fn(usize, &mut [T]) + Send + Sync,
    ) {
        let size = size.max(1);
        let tasks = y.len().div_ceil(size);
        let mut rest = y;
        let parts = StealQueues::new(tasks, self.count, |range| {
            let part = rest.split_off_mut(..(range.len() * size).min(rest.len()));
            range.zip(part.unwrap_or_default().chunks_mut(size))
        });
        self.share(tasks, &|thread| parts.take(thread).map(|(i, y)| body(i, y)).is_some());
    }

    /// As [`chunks`](Self::chunks) where `body` may fail; all of it is run even so.
    ///
    /// # Errors
    /// One of those of `body`.
    pub fn try_for_each_chunk<T: Send>(
        &self,
        y: &mut [T],
        size: usize,
        body: impl Fn(usize, &mut [T]) -> Result<()> + Send + Sync,
    ) -> Result<()> {
        let result = Mutex::new(Ok(()));
        self.for_each_chunk(y, size, |i, y| {
            let done = body(i, y);
            if done.is_err() {
                *result.lock() = done;
            }
        });
        result.into_inner()
    }

    /// As [`chunks`](Self::chunks) over two slices, in runs of their own sizes.
    pub fn for_each_chunk_pair<T: Send, U: Send>(
        &self,
        (y, y_size): (&mut [T], usize),
        (z, z_size): (&mut [U], usize),
        body: impl Fn(usize, &mut [T], &mut [U]) + Send + Sync,
    ) {
        let (y_size, z_size) = (y_size.max(1), z_size.max(1));
        let tasks = y.len().div_ceil(y_size);
        if tasks == 1 {
            let size = z_size.min(z.len());
            return body(0, y, &mut z[..size]);
        }
        let (mut rest_y, mut rest_z) = (y, z);
        let parts = StealQueues::new(tasks, self.count, |range| {
            let y = rest_y.split_off_mut(..(range.len() * y_size).min(rest_y.len()));
            let z = rest_z.split_off_mut(..(range.len() * z_size).min(rest_z.len()));
            let z = z.unwrap_or_default().chunks_mut(z_size);
            range.zip(y.unwrap_or_default().chunks_mut(y_size).zip(z))
        });
        self.share(tasks, &|thread| parts.take(thread).map(|(i, (y, z))| body(i, y, z)).is_some());
    }

    /// Lets as many threads as `tasks` can use each call `step`, with their number, until it has
    /// nothing more to do.
    ///
    /// All that is generic stays outside: the machinery of the pool is compiled once, not for
    /// every kernel and element type.
    fn share(&self, tasks: usize, step: &(dyn Fn(usize) -> bool + Sync)) {
        match &self.pool {
            Some((pool, lobby)) if tasks > 1 => {
                region::run(pool, lobby, tasks.min(self.count) - 1, step);
            }
            _ => while step(0) {},
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    #[test]
    fn a_panic_reaches_the_caller_when_all_threads_are_done() {
        let (workers, running) = (Workers::new(3).unwrap(), AtomicUsize::new(0));
        for bad in 0..20 {
            let run = || {
                workers.run(20, |i| {
                    running.fetch_add(1, Relaxed);
                    std::thread::yield_now();
                    running.fetch_sub(1, Relaxed);
                    assert!(i != bad, "task {i}");
                });
            };
            let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).unwrap_err();
            assert_eq!(*panic.downcast::<String>().unwrap(), format!("task {bad}"));
            assert_eq!(running.load(Relaxed), 0);
        }
    }

    #[test]
    fn more_threads_than_there_can_be_are_refused() {
        for count in [usize::MAX, 1 << 20] {
            let error = Workers::new(count).unwrap_err().to_string();
            assert!(error.contains(&format!("{count} threads; the most is")), "{error}");
        }
    }

    #[test]
    fn work_may_be_shared_again_within_and_beside() {
        let workers = Workers::new(2).unwrap();
        let sum = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        workers.run(3, |i| {
                            workers.run(4, |j| {
                                sum.fetch_add(i * 4 + j, Relaxed);
                            });
                        });
                    }
                });
            }
        });
        assert_eq!(sum.into_inner(), 4 * 200 * 66);
    }

    #[test]
    fn chunks_are_shared_evenly() {
        let two = Workers::new(2).unwrap();
        // Few enough for one, two of half, then as many as there is work for.
        assert_eq!(
            [0, 1, 100, 101, 250].map(|len| two.even_chunk_len(len, 100, 1)),
            [100, 100, 100, 51, 125]
        );
        assert_eq!([399, 400, 600].map(|len| two.even_chunk_len(len, 100, 1)), [200, 100, 100]);
        assert_eq!([250, 1000].map(|len| two.even_chunk_len(len, 100, 16)), [128, 112]);
        assert_eq!(Workers::sequential().even_chunk_len(250, 100, 1), 125);
        assert_eq!(
            [101, 250].map(|len| Workers::new(8).unwrap().even_chunk_len(len, 100, 1)),
            [51, 84]
        );
    }

    /// While the pool's thread goes from kernel to kernel, calls of it do not pile up.
    #[test]
    fn a_busy_thread_is_called_once() {
        let workers = Workers::new(2).unwrap();
        let (_, lobby) = workers.pool.as_ref().unwrap();
        let most = AtomicUsize::new(0);
        let runs = || {
            for _ in 0..20_000 {
                workers.run(2, |_| ());
                most.fetch_max(lobby.called(), Relaxed);
            }
        };
        // Each of three may find that nobody is called.
        std::thread::scope(|scope| (0..3).for_each(|_| drop(scope.spawn(runs))));
        assert!(most.load(Relaxed) <= 3, "{most:?} calls at once");
    }

    #[test]
    fn every_task_runs_once() {
        for workers in [Workers::sequential(), Workers::new(3).unwrap()] {
            let seen: Vec<_> = (0..100).map(|_| AtomicUsize::new(0)).collect();
            workers.run(100, |i| {
                seen[i].fetch_add(1, Relaxed);
            });
            assert!(seen.iter().all(|count| count.load(Relaxed) == 1));
            assert_eq!(workers.map(50, |i| i * i), (0..50).map(|i| i * i).collect::<Vec<_>>());
            let mut y = [0; 10];
            let mut z = [0; 4];
            workers.for_each_chunk_pair((&mut y, 3), (&mut z, 1), |i, y, z| {
                y.fill(i);
                z[0] = y.len();
            });
            assert_eq!((y, z), ([0, 0, 0, 1, 1, 1, 2, 2, 2, 3], [3, 3, 3, 1]));
        }
    }
}
