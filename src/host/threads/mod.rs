//! Threads that run host kernels, and the distribution of a kernel's work among these threads.
//!
//! - [`region`] defines the parallel region of one kernel. Threads can join the region until the
//!   calling thread closes it.
//! - [`idle`] keeps the list of offered regions, and makes pool threads poll for the next region
//!   before they sleep.
//! - [`pool`] starts and ends the pool threads. For each kernel, [`pool`] opens a parallel region,
//!   offers the region to idle threads, runs tasks and closes the region.
//! - [`processors`] counts the processors and cores that the process may use.
//! - [`observer`] reports the time for which each thread works on a region.
//! - [`work_stealing`] distributes the tasks of a region among queues, one per thread.
//!
//! [`Workers`] is the interface that kernels use. The methods of `Workers` split a slice or a range
//! into tasks, put the tasks into work-stealing queues, and run the tasks as a parallel region.

mod idle;
mod observer;
mod pool;
mod processors;
mod region;
#[cfg(test)]
pub(crate) mod simulation;
mod work_stealing;

pub(crate) use observer::{RegionObserver, RegionWatch};
pub use processors::default_threads;

use crate::{
    error::{Error, Result},
    host::threads::{
        observer::{current_observer, run_observed},
        pool::Pool,
        work_stealing::{MAX_TASKS, StealQueues},
    },
    sync::Mutex,
};
use std::{
    marker::PhantomData,
    slice,
    sync::{Arc, OnceLock},
};

/// Maximum number of threads of [`Workers`], more than any machine has processors.
/// [`Workers::new`] returns an error for a larger number.
const MAX_THREADS: usize = 65_535;

/// Handle to a set of threads on which kernels run; clones share the threads. The threads end after
/// the last handle to the set is dropped.
///
/// Kernels split sums by size alone, never by the number of threads, and combine partial results in
/// a fixed order, so results are bit-identical for any number of threads.
///
/// ```
/// use cortado::host::Workers;
///
/// let workers = Workers::new(2)?;
/// assert_eq!(workers.map(4, |i| i * i), [0, 1, 4, 9]);
/// let mut y = [0; 5];
/// workers.for_each_chunk(&mut y, 2, |i, chunk| chunk.fill(i));
/// assert_eq!(y, [0, 0, 1, 1, 2]);
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Workers {
    /// Pool of the threads other than the calling thread, or `None` if the set has one thread.
    pool: Option<Arc<Pool>>,
    count: usize,
    #[cfg(test)]
    is_simulated: bool,
}

impl Workers {
    /// Starts `count` threads. If `count` is 0, starts [`default_threads`] threads, one per core
    /// that the process may use.
    ///
    /// # Errors
    /// [`Error::InvalidInput`] if the threads cannot be started.
    pub fn new(count: usize) -> Result<Self> {
        let count = match count {
            0 => default_threads(),
            count => count,
        };
        if count == 1 {
            return Ok(Self::sequential());
        }
        if count > MAX_THREADS {
            let reason = format!("{count} threads requested; the maximum is {MAX_THREADS}");
            return Err(Error::invalid_input("workers", reason));
        }
        let pool = Pool::start(count - 1).map_err(|error| {
            Error::invalid_input("workers", format!("cannot start {count} threads: {error}"))
        })?;
        Ok(Self {
            pool: Some(Arc::new(pool)),
            count,
            #[cfg(test)]
            is_simulated: false,
        })
    }

    /// Returns a handle to a set that contains only the calling thread.
    pub const fn sequential() -> Self {
        Self {
            pool: None,
            count: 1,
            #[cfg(test)]
            is_simulated: false,
        }
    }

    /// Returns the handle to the set of threads that the whole process shares. The shared set has
    /// [`default_threads`] threads, which start when `global` is first called. If the threads
    /// cannot be started, the set contains only the calling thread.
    pub fn global() -> &'static Self {
        static GLOBAL: OnceLock<Workers> = OnceLock::new();
        GLOBAL.get_or_init(|| Self::new(0).unwrap_or(Self::sequential()))
    }

    /// Returns a handle to the same set of threads. A kernel that gets this handle uses at most
    /// `count` of the threads.
    pub(crate) fn limited_to(&self, count: usize) -> Self {
        match count.min(self.count) {
            0 | 1 => Self::sequential(),
            count => Self { count, ..self.clone() },
        }
    }

    /// Returns the number of threads, including the calling thread.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Calls `body(i)` once for each `i` in `0..tasks`, on any thread, in any order.
    pub fn run(&self, tasks: usize, body: impl Fn(usize) + Send + Sync) {
        self.run_tasks(tasks, &body);
    }

    /// Returns the results of `body(i)` for each `i` in `0..tasks`, in the order of `i`. Each call
    /// of `body` may run on any thread.
    pub fn map<R: Send>(&self, tasks: usize, body: impl Fn(usize) -> R + Send + Sync) -> Vec<R> {
        let mut results: Vec<Option<R>> = (0..tasks).map(|_| None).collect();
        self.for_each_chunk(&mut results, 1, |task, result| result[0] = Some(body(task)));
        results.into_iter().flatten().collect()
    }

    /// Returns a chunk length that divides `len` elements evenly among the threads. The chunk
    /// length is a multiple of `unit` and greater than half of `min`. If `len <= min`, returns
    /// `min`, which gives a single chunk.
    ///
    /// If all kernels split their results into chunks of the returned length, a thread usually
    /// processes elements that it wrote in the previous kernel and that are still in its cache.
    #[inline]
    pub(crate) fn even_chunk_len(&self, len: usize, min: usize, unit: usize) -> usize {
        // Do not call `even_chunk_len_of_many` for short operands, because the function call would
        // slow down short kernels.
        if len <= min { min } else { self.even_chunk_len_of_many(len, min, unit) }
    }

    /// Like [`even_chunk_len`](Self::even_chunk_len), but divides `units` units of `unit_len`
    /// elements each, such as planes, into tasks of at least about `grain` elements. Returns the
    /// number of units in a task, at least 1.
    pub(crate) fn even_units(&self, units: usize, unit_len: usize, grain: usize) -> usize {
        self.even_chunk_len(units, (grain / unit_len.max(1)).max(1), 1)
    }

    fn even_chunk_len_of_many(&self, len: usize, min: usize, unit: usize) -> usize {
        let chunks_per_thread = (len / min.max(1) / self.count).max(1);
        let chunks = (chunks_per_thread * self.count).min(len.div_ceil(min.max(1)));
        len.div_ceil(chunks).next_multiple_of(unit)
    }

    /// Calls `body(i, chunk)` for every chunk of `size` elements of `y`. The last chunk may be
    /// shorter.
    #[inline]
    pub fn for_each_chunk<T: Send>(
        &self,
        y: &mut [T],
        size: usize,
        body: impl Fn(usize, &mut [T]) + Send + Sync,
    ) {
        // Process a single chunk without calling `run_chunks`, because a function call would slow
        // down short kernels.
        if (1..=size).contains(&y.len()) {
            #[cfg(test)]
            simulation::record_chunk(y);
            body(0, y);
        } else {
            self.run_chunks(y, size, body);
        }
    }

    fn run_chunks<T: Send>(
        &self,
        y: &mut [T],
        size: usize,
        body: impl Fn(usize, &mut [T]) + Send + Sync,
    ) {
        let tasks = y.len().div_ceil(size.max(1));
        let y = DisjointChunks::new(y, size);
        // SAFETY: each task runs once, so no other code refers to chunk `i` of `y`.
        self.run_tasks(tasks, &|i| body(i, unsafe { y.get(i) }));
    }

    /// Like [`for_each_chunk`](Self::for_each_chunk), but `body` may fail. If `body` fails for a
    /// chunk, `body` is still called for all other chunks.
    ///
    /// # Errors
    /// Returns one of the errors that `body` returned, if any.
    pub fn try_for_each_chunk<T: Send>(
        &self,
        y: &mut [T],
        size: usize,
        body: impl Fn(usize, &mut [T]) -> Result<()> + Send + Sync,
    ) -> Result<()> {
        let result = Mutex::new(Ok(()));
        self.for_each_chunk(y, size, |i, y| {
            let chunk_result = body(i, y);
            if chunk_result.is_err() {
                *result.lock() = chunk_result;
            }
        });
        result.into_inner()
    }

    /// Like [`for_each_chunk`](Self::for_each_chunk), but for two slices, each with its own chunk
    /// length.
    pub fn for_each_chunk_pair<T: Send, U: Send>(
        &self,
        (y, y_size): (&mut [T], usize),
        (z, z_size): (&mut [U], usize),
        body: impl Fn(usize, &mut [T], &mut [U]) + Send + Sync,
    ) {
        let tasks = y.len().div_ceil(y_size.max(1));
        let (y, z) = (DisjointChunks::new(y, y_size), DisjointChunks::new(z, z_size));
        // SAFETY: each task runs once, so no other code refers to chunk `i` of `y` or `z`.
        self.run_tasks(tasks, &|i| body(i, unsafe { y.get(i) }, unsafe { z.get(i) }));
    }

    /// Calls `body(i)` once for each `i` in `0..tasks`.
    ///
    /// `body` is a `dyn` closure, so that `run_tasks` is compiled once and not for every kernel and
    /// element type.
    fn run_tasks(&self, tasks: usize, body: &(dyn Fn(usize) + Sync)) {
        #[cfg(test)]
        if self.is_simulated && tasks > 1 {
            return simulation::run_region(self.count, tasks, body);
        }
        match &self.pool {
            Some(pool) if tasks > 1 => {
                let threads = tasks.min(self.count);
                // The queues hold at most `MAX_TASKS` entries. If there are more tasks, an entry
                // stands for several consecutive tasks.
                let tasks_per_step = tasks.div_ceil(MAX_TASKS);
                let queues = StealQueues::new(tasks.div_ceil(tasks_per_step), self.count);
                run_region(pool, threads - 1, &|thread| {
                    let Some(step) = queues.take(thread) else { return false };
                    let first = step * tasks_per_step;
                    (first..tasks.min(first + tasks_per_step)).for_each(body);
                    true
                });
            }
            _ => (0..tasks).for_each(body),
        }
    }
}

/// Calls `step` on the calling thread and on up to `max_helpers` threads of `pool`, with the
/// thread's number, until `step` returns `false`.
fn run_region(pool: &Pool, max_helpers: usize, step: &region::Step) {
    match current_observer() {
        None => pool.run(max_helpers, step),
        Some(observer) => {
            pool.run(max_helpers, &|thread| run_observed(step, thread, &observer));
        }
    }
}

/// Disjoint chunks of a slice, to which tasks on several threads write.
struct DisjointChunks<'a, T> {
    start: *mut T,
    len: usize,
    chunk: usize,
    slice: PhantomData<&'a mut [T]>,
}

// SAFETY: threads get disjoint chunks of a slice whose elements are `Send`.
unsafe impl<T: Send> Sync for DisjointChunks<'_, T> {}

impl<'a, T: Send> DisjointChunks<'a, T> {
    fn new(slice: &'a mut [T], chunk: usize) -> Self {
        let (start, len) = (slice.as_mut_ptr(), slice.len());
        Self { start, len, chunk: chunk.max(1), slice: PhantomData }
    }

    /// Returns chunk `i`, which is empty if the slice has fewer chunks.
    ///
    /// # Safety
    /// No other reference to chunk `i` of the slice exists.
    #[allow(clippy::mut_from_ref)] // the caller ensures a unique reference
    unsafe fn get(&self, i: usize) -> &mut [T] {
        // A product that wraps around would give two tasks the same chunk.
        let start = i.saturating_mul(self.chunk).min(self.len);
        let len = self.chunk.min(self.len - start);
        // SAFETY: the range is inside the slice, and the caller has the only reference to this
        // chunk.
        let chunk = unsafe { slice::from_raw_parts_mut(self.start.add(start), len) };
        #[cfg(test)]
        simulation::record_chunk(chunk);
        chunk
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::testing::wait_until;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    #[test]
    fn chunks_of_any_length_are_disjoint() {
        let workers = Workers::new(2).unwrap();
        for z_size in [1 << (usize::BITS - 1), usize::MAX] {
            let (mut y, mut z) = ([0_u8; 5], [0_u8; 3]);
            workers.for_each_chunk_pair((&mut y, 1), (&mut z, z_size), |i, y, z| {
                assert_eq!(z.len(), if i == 0 { 3 } else { 0 });
                y.iter_mut().chain(z).for_each(|count| *count += 1);
            });
            assert_eq!((y, z), ([1; 5], [1; 3]));
        }
    }

    #[test]
    fn a_panic_reaches_the_caller_after_all_threads_have_left() {
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
    fn more_threads_than_the_maximum_are_an_error() {
        for count in [usize::MAX, MAX_THREADS + 1] {
            let error = Workers::new(count).unwrap_err().to_string();
            let expected = format!("{count} threads requested; the maximum is 65535");
            assert!(error.contains(&expected), "{error}");
        }
    }

    #[test]
    fn pool_threads_have_names_and_end_with_the_last_handle() {
        let workers = Workers::new(2).unwrap();
        let idle_threads = Arc::downgrade(workers.pool.as_ref().unwrap().idle_threads());
        let names = Mutex::new(Vec::new());
        let clone = workers.clone();
        drop(workers);
        run_on_both_threads(&clone, || {
            names.lock().extend(std::thread::current().name().map(str::to_owned));
        });
        assert!(names.lock().contains(&"cortado-0".to_owned()), "{names:?}");
        drop(clone);
        wait_until(|| idle_threads.strong_count() == 0, "the pool thread must end");
    }

    /// Calls `body` on the calling thread and on the only pool thread. Panics if the pool thread
    /// does not join the region.
    fn run_on_both_threads(workers: &Workers, body: impl Fn() + Sync) {
        let join_count = AtomicUsize::new(0);
        workers.run(2, |_| {
            join_count.fetch_add(1, Relaxed);
            wait_until(|| join_count.load(Relaxed) == 2, "the pool thread must join the region");
            body();
        });
    }

    #[test]
    fn a_sleeping_thread_wakes_for_a_later_region() {
        let workers = Workers::new(2).unwrap();
        let idle_threads = workers.pool.as_ref().unwrap().idle_threads();
        for _ in 0..20 {
            wait_until(|| idle_threads.sleeping() == 1, "the pool thread must sleep");
            run_on_both_threads(&workers, || ());
        }
    }

    #[test]
    fn a_panic_whose_destructor_panics_ends_no_pool_thread() {
        struct PanicsOnDrop;
        impl Drop for PanicsOnDrop {
            fn drop(&mut self) {
                assert!(std::thread::panicking(), "the destructor of a panic");
            }
        }
        let workers = Workers::new(2).unwrap();
        let run = || {
            run_on_both_threads(&workers, || std::panic::resume_unwind(Box::new(PanicsOnDrop)));
        };
        let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).unwrap_err();
        // The test must not drop the panic payload, because its destructor would panic again.
        std::mem::forget(panic);
        run_on_both_threads(&workers, || ());
    }

    #[test]
    fn a_task_that_panics_under_a_lock_leaves_the_lock_usable() {
        let (workers, sum) = (Workers::new(3).unwrap(), Mutex::new(0));
        let run = || {
            workers.run(10, |i| {
                let mut sum = sum.lock();
                *sum += 1;
                assert!(i % 2 == 0, "task {i}");
            });
        };
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).unwrap_err();
        let old_sum = *sum.lock();
        workers.run(10, |_| *sum.lock() += 1);
        assert_eq!(sum.into_inner(), old_sum + 10);
    }

    #[test]
    fn nested_and_concurrent_parallel_regions_complete() {
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
    fn even_chunk_len_divides_evenly_among_threads() {
        let workers = Workers::new(2).unwrap();
        // Operands of up to 100 elements, the minimum chunk length, form a single chunk. Operands
        // of more than 100 elements are split such that each of the two threads gets the same
        // number of chunks.
        assert_eq!(
            [0, 1, 100, 101, 250].map(|len| workers.even_chunk_len(len, 100, 1)),
            [100, 100, 100, 51, 125]
        );
        assert_eq!([399, 400, 600].map(|len| workers.even_chunk_len(len, 100, 1)), [200, 100, 100]);
        assert_eq!([250, 1000].map(|len| workers.even_chunk_len(len, 100, 16)), [128, 112]);
        assert_eq!(Workers::sequential().even_chunk_len(250, 100, 1), 125);
        assert_eq!(
            [101, 250].map(|len| Workers::new(8).unwrap().even_chunk_len(len, 100, 1)),
            [51, 84]
        );
    }

    #[test]
    fn offers_to_busy_pool_threads_do_not_accumulate() {
        let workers = Workers::new(2).unwrap();
        let idle_threads = workers.pool.as_ref().unwrap().idle_threads();
        let max_pending = AtomicUsize::new(0);
        let run_regions = || {
            for _ in 0..20_000 {
                workers.run(2, |_| ());
                max_pending.fetch_max(idle_threads.pending(), Relaxed);
            }
        };
        std::thread::scope(|scope| (0..3).for_each(|_| drop(scope.spawn(run_regions))));
        assert!(max_pending.load(Relaxed) <= 1, "{max_pending:?} offers at once");
    }

    #[test]
    fn every_task_of_a_region_runs_once() {
        for workers in [Workers::sequential(), Workers::new(3).unwrap()] {
            let counts: Vec<_> = (0..100).map(|_| AtomicUsize::new(0)).collect();
            workers.run(100, |i| {
                counts[i].fetch_add(1, Relaxed);
            });
            assert!(counts.iter().all(|count| count.load(Relaxed) == 1));
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
