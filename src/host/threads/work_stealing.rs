//! Work stealing: one task queue per thread, from which other threads steal tasks.
//!
//! A thread takes the tasks of its own queue first. A kernel mostly reads what the previous kernel
//! wrote, in the same order, so a thread finds its own results in its cache.
//!
//! A queue is one atomic number, and a thread that finds a queue empty does not write to it. Each
//! queue has cache lines of its own. A thread that takes a task from its own queue therefore does
//! not invalidate the cache line of another thread's queue.

use crate::sync::{AtomicU64, Relaxed};
use std::ops::Range;

/// Largest number of tasks in [`StealQueues`].
pub(crate) const MAX_TASKS: usize = u32::MAX as usize;

/// Task queues, one per thread.
pub(crate) struct StealQueues(Vec<Queue>);

/// Queue of one thread: the range of task numbers that no thread has taken yet. The lower 32 bits
/// hold the start of the range, and the upper 32 bits the end.
///
/// The alignment is two cache lines, because a processor may fetch a cache line together with its
/// neighbour, and because some ARM processors have cache lines of 128 bytes.
#[repr(align(128))]
struct Queue(AtomicU64);

impl StealQueues {
    /// Splits `tasks` tasks, at most [`MAX_TASKS`], evenly into `threads` queues, one per thread.
    pub(crate) fn new(tasks: usize, threads: usize) -> Self {
        debug_assert!(tasks <= MAX_TASKS);
        let first_task = |thread: usize| (thread as u64 * tasks as u64 / threads as u64) as u32;
        let ranges = (0..threads).map(|thread| first_task(thread)..first_task(thread + 1));
        Self(ranges.map(Queue::new).collect())
    }

    /// Returns the first task of the queue of `thread` or, if that queue is empty, the last task of
    /// another thread's queue.
    pub(crate) fn take(&self, thread: usize) -> Option<usize> {
        let (before, rest) = self.0.split_at(thread % self.0.len());
        let (own, after) = rest.split_first()?;
        let task = own.take(|tasks| tasks.next());
        let steal = |queue: &Queue| queue.take(|tasks| tasks.next_back());
        let task = task.or_else(|| after.iter().chain(before).find_map(steal))?;
        Some(task as usize)
    }
}

impl Queue {
    fn new(tasks: Range<u32>) -> Self {
        Self(AtomicU64::new(pack(&tasks)))
    }

    /// Removes from the queue the task that `take` removes from the range of tasks, and returns the
    /// task. Returns `None` if the queue is empty.
    ///
    /// Relaxed operations are sufficient: the queue only decides which thread runs a task. The lock
    /// of the parallel region makes the operands of a task visible to the thread that runs it.
    fn take(&self, take: impl Fn(&mut Range<u32>) -> Option<u32>) -> Option<u32> {
        let mut packed = self.0.load(Relaxed);
        loop {
            let mut tasks = packed as u32..(packed >> 32) as u32;
            let task = take(&mut tasks)?;
            match self.0.compare_exchange_weak(packed, pack(&tasks), Relaxed, Relaxed) {
                Ok(_) => return Some(task),
                Err(current) => packed = current,
            }
        }
    }
}

fn pack(tasks: &Range<u32>) -> u64 {
    u64::from(tasks.end) << 32 | u64::from(tasks.start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_takes_its_first_task_and_steals_last_tasks() {
        let queues = StealQueues::new(7, 3);
        let tasks: Vec<_> = std::iter::from_fn(|| queues.take(1)).collect();
        assert_eq!(tasks, [2, 3, 6, 5, 4, 1, 0]);
        let queues = StealQueues::new(2, 3);
        assert_eq!([0, 4, 2].map(|thread| queues.take(thread)), [Some(0), Some(1), None]);
    }

    #[test]
    fn queues_hold_the_largest_number_of_tasks() {
        let queues = StealQueues::new(MAX_TASKS, 2);
        assert_eq!(queues.take(0), Some(0));
        assert_eq!(queues.take(1), Some(MAX_TASKS / 2));
    }

    #[test]
    fn no_two_queues_share_a_pair_of_cache_lines() {
        let queues = StealQueues::new(100, 64);
        let pairs = queues.0.iter().map(|queue| std::ptr::from_ref(queue).addr() / 128);
        assert_eq!(pairs.collect::<std::collections::HashSet<_>>().len(), 64);
    }
}
