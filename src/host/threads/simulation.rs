//! Simulation of a kernel's parallel regions on many threads, for tests.
//!
//! [`simulate`] calls a kernel with [`Workers`] whose threads are simulated on the calling thread.
//! The kernel's own code divides the work into tasks, and [`StealQueues`] distributes the tasks.
//! The simulation replaces only the thread pool: the simulated thread that becomes free first takes
//! the next task. The duration of a task is the work that the task records.
//!
//! GEMMs only record their work and do not compute, because a debug build takes too long for GEMMs
//! of practical shapes. The results of a simulated kernel that calls GEMMs are therefore wrong.

use crate::host::threads::{Workers, work_stealing::StealQueues};
use std::{cell::RefCell, collections::HashMap, ops::Range};

/// Measure of work, which determines how long a simulated task takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Work {
    /// Bytes of the chunks that a task writes.
    BytesWritten,
    /// Floating-point operations of GEMMs.
    GemmFlops,
}

/// Schedule of a simulated kernel: its duration, its tasks, and the bytes that each thread wrote.
#[derive(Debug)]
pub(crate) struct Schedule {
    threads: usize,
    /// Time from the start of the kernel to its end, in units of work.
    pub(crate) duration: u64,
    /// Work of all tasks.
    pub(crate) work: u64,
    /// Number of times that the caller waited for other threads.
    pub(crate) barriers: usize,
    /// Number of tasks in all parallel regions.
    pub(crate) tasks: usize,
    /// Ranges of bytes that threads have written, with the number of the thread.
    writes: Vec<(usize, Range<u64>)>,
}

/// Simulated thread that runs the current task, and the time on this thread.
#[derive(Clone, Copy, Debug)]
struct Position {
    thread: usize,
    time: u64,
}

struct Simulation {
    measure: Work,
    now: Position,
    schedule: Schedule,
    /// Number of recorded GEMMs, each of which gets a separate range of addresses.
    gemms: u64,
}

thread_local! {
    static SIMULATION: RefCell<Option<Simulation>> = const { RefCell::new(None) };
}

/// Calls `kernel` with [`Workers`] of `threads` simulated threads, and returns their schedule.
pub(crate) fn simulate(threads: usize, measure: Work, kernel: impl FnOnce(&Workers)) -> Schedule {
    let schedule =
        Schedule { threads, duration: 0, work: 0, barriers: 0, tasks: 0, writes: Vec::new() };
    let now = Position { thread: 0, time: 0 };
    SIMULATION.set(Some(Simulation { measure, now, schedule, gemms: 0 }));
    kernel(&Workers { is_simulated: true, count: threads, ..Workers::sequential() });
    let simulation = SIMULATION.take().expect("the kernel starts no simulation");
    Schedule { duration: simulation.now.time, ..simulation.schedule }
}

/// Calls `body` with the simulation of the calling thread, if there is one.
fn with_simulation<R>(body: impl FnOnce(&mut Simulation) -> R) -> Option<R> {
    SIMULATION.with_borrow_mut(|simulation| simulation.as_mut().map(body))
}

/// Runs the tasks of a parallel region on `count` simulated threads.
pub(super) fn run_region(count: usize, tasks: usize, body: &(dyn Fn(usize) + Sync)) {
    let start = with_simulation(|simulation| simulation.now).expect("a simulation");
    // The threads that share one task of an outer region have separate numbers.
    let number = |i: usize| start.thread * count + i;
    let queues = StealQueues::new(tasks, count);
    let mut free: Vec<_> = vec![start.time; tasks.min(count)];
    let mut running: Vec<_> = (0..free.len()).collect();
    while let Some(&i) = running.iter().min_by_key(|&&i| free[i]) {
        let Some(task) = queues.take(i) else {
            running.retain(|&other| other != i);
            continue;
        };
        let now = Position { thread: number(i), time: free[i] };
        with_simulation(|simulation| simulation.now = now);
        body(task);
        free[i] = with_simulation(|simulation| simulation.now.time).expect("a simulation");
    }
    let end = free.into_iter().max().unwrap_or(start.time);
    with_simulation(|simulation| {
        simulation.now = Position { time: end, ..start };
        simulation.schedule.tasks += tasks;
        // The caller of an inner region waits for its helpers, while other threads continue.
        simulation.schedule.barriers += usize::from(start.thread == 0);
    });
}

impl Simulation {
    fn record(&mut self, measure: Work, work: u64, writes: impl Iterator<Item = Range<u64>>) {
        if self.measure == measure {
            self.schedule.work += work;
            self.now.time += work;
            let thread = self.now.thread;
            self.schedule.writes.extend(writes.map(|range| (thread, range)));
        }
    }
}

/// Records that the current task writes `chunk`, if a kernel is simulated.
pub(super) fn record_chunk<T>(chunk: &[T]) {
    with_simulation(|simulation| {
        let (start, len) = (chunk.as_ptr().addr() as u64, size_of_val(chunk) as u64);
        simulation.record(Work::BytesWritten, len, std::iter::once(start..start + len));
    });
}

/// Returns the number of a GEMM that starts, or `None` if no kernel is simulated.
pub(crate) fn start_gemm() -> Option<u64> {
    with_simulation(|simulation| {
        simulation.gemms += 1;
        simulation.gemms
    })
}

/// Records that the current task computes a part of the GEMM with the number `gemm`: the bytes
/// `columns` of each of the rows `rows` of `C`. Rows of `C` start `ldc` bytes apart.
pub(crate) fn record_gemm_part(
    gemm: u64,
    flops: u64,
    rows: Range<u64>,
    columns: Range<u64>,
    ldc: u64,
) {
    with_simulation(|simulation| {
        let start = |row: u64| (gemm << 40) + row * ldc;
        let writes = rows.map(|row| start(row) + columns.start..start(row) + columns.end);
        simulation.record(Work::GemmFlops, flops, writes);
    });
}

impl Schedule {
    /// Returns the time that the kernel takes, divided by the time that it would take if all
    /// threads did equal work: 1 for a perfect balance.
    pub(crate) fn imbalance(&self) -> f64 {
        (self.duration * self.threads as u64) as f64 / self.work.max(1) as f64
    }

    /// Returns the number of cache lines that more than one thread writes, and the number of all
    /// cache lines that threads write. A cache line has `line` bytes.
    pub(crate) fn shared_lines(&self, line: u64) -> (usize, usize) {
        let mut writers = HashMap::new();
        let mut shared = 0;
        let writes = self.writes.iter().filter(|(_, range)| !range.is_empty());
        for (thread, range) in writes {
            for line in range.start / line..=(range.end - 1) / line {
                let writer = writers.entry(line).or_insert(Some(*thread));
                if writer.is_some_and(|writer| writer != *thread) {
                    shared += 1;
                    *writer = None;
                }
            }
        }
        (shared, writers.len())
    }

    /// Returns, for each range of bytes that a thread wrote to `y`, in the order of addresses, the
    /// thread and the end of the range as a share of `y`.
    pub(crate) fn writers<T>(&self, y: &[T]) -> Vec<(usize, f64)> {
        let (start, len) = (y.as_ptr().addr() as u64, size_of_val(y) as u64);
        let is_inside = |range: &Range<u64>| (start..start + len).contains(&range.start);
        let mut writes: Vec<_> =
            self.writes.iter().filter(|(_, range)| is_inside(range)).cloned().collect();
        writes.sort_by_key(|(_, range)| range.start);
        let end = |range: &Range<u64>| (range.end - start) as f64 / len as f64;
        writes.iter().map(|(thread, range)| (*thread, end(range))).collect()
    }
}

/// Returns the share of an operand whose readers run on a different socket from its writers.
/// `writers` are the threads that wrote the operand, as returned by [`Schedule::writers`].
/// `readers` are the threads that wrote the result of the next kernel. Each range of the result
/// depends on the range of the operand at the same relative position. Each socket runs
/// `threads / sockets` threads with consecutive numbers.
pub(crate) fn crossing(
    writers: &[(usize, f64)],
    readers: &[(usize, f64)],
    threads: usize,
    sockets: usize,
) -> f64 {
    let socket = |shares: &[(usize, f64)], position: f64| {
        let i = shares.partition_point(|share| share.1 <= position).min(shares.len() - 1);
        shares[i].0 * sockets / threads
    };
    let mut ends: Vec<_> = writers.iter().chain(readers).map(|share| share.1).collect();
    ends.sort_by(f64::total_cmp);
    let starts = std::iter::once(0.0).chain(ends.iter().copied());
    let crosses = |(start, end): &(f64, f64)| {
        let middle = (start + end) / 2.0;
        socket(writers, middle) != socket(readers, middle)
    };
    starts.zip(ends.iter().copied()).filter(crosses).map(|(start, end)| end - start).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thread_that_becomes_free_first_takes_the_next_task() {
        // 3 tasks of 40 bytes and one of 20 bytes on two threads, in chunks of ten `u32`.
        let mut y = vec![0u32; 35];
        let schedule = simulate(2, Work::BytesWritten, |workers| {
            workers.for_each_chunk(&mut y, 10, |i, y| y.fill(i as u32));
        });
        assert_eq!((schedule.tasks, schedule.barriers), (4, 1));
        assert_eq!((schedule.work, schedule.duration), (140, 80));
        assert_eq!(y[..], [[0; 10], [1; 10], [2; 10], [3; 10]].concat()[..35]);
    }

    #[test]
    fn cache_lines_that_two_threads_write_are_shared() {
        let mut y = crate::memory::HostBytes::zeroed(256).unwrap();
        let mut shared = |chunk, line| {
            let fill = |i, y: &mut [u8]| y.fill(i as u8);
            let run = |workers: &Workers| workers.for_each_chunk(&mut y[..], chunk, fill);
            simulate(4, Work::BytesWritten, run).shared_lines(line)
        };
        assert_eq!(shared(64, 64), (0, 4));
        assert_eq!(shared(60, 64), (4, 4));
        assert_eq!(shared(128, 64), (0, 4));
        assert_eq!(shared(250, 64), (1, 4));
    }

    #[test]
    fn crossing_returns_the_share_that_another_socket_reads() {
        let run = |chunk: usize| {
            let mut y = vec![0u8; 400];
            let run = |workers: &Workers| workers.for_each_chunk(&mut y, chunk, |_, _| ());
            simulate(4, Work::BytesWritten, run).writers(&y)
        };
        assert_eq!(crossing(&run(100), &run(100), 4, 2), 0.0);
        assert_eq!(crossing(&run(100), &run(400), 4, 2), 0.5);
        // With chunks of 150 bytes, thread 1 of the first socket reads the bytes from 150 to 300.
        assert!((crossing(&run(100), &run(150), 4, 2) - 0.25).abs() < 1e-9);
    }
}
