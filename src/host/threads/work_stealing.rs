//! Work stealing: one task queue per thread, from which other threads steal tasks.
//!
//! A thread takes the tasks of its own queue first. A kernel mostly reads what the previous kernel
//! wrote, in the same order, so a thread finds its own results in its cache.

use crate::sync::Mutex;
use std::ops::Range;

/// Task queues, one per thread, each of which is the range of task numbers that no thread has taken
/// yet.
pub(crate) struct StealQueues(Vec<Mutex<Range<usize>>>);

impl StealQueues {
    /// Splits `tasks` tasks evenly into `threads` queues, one per thread.
    pub(crate) fn new(tasks: usize, threads: usize) -> Self {
        let first_task = |thread| thread * tasks / threads;
        let ranges = (0..threads).map(|thread| first_task(thread)..first_task(thread + 1));
        Self(ranges.map(Mutex::new).collect())
    }

    /// Returns the first task of the queue of `thread` or, if that queue is empty, the last task of
    /// another thread's queue.
    pub(crate) fn take(&self, thread: usize) -> Option<usize> {
        let (before, rest) = self.0.split_at(thread % self.0.len());
        let (own, after) = rest.split_first()?;
        let own_task = own.lock().next();
        own_task.or_else(|| after.iter().chain(before).find_map(|queue| queue.lock().next_back()))
    }
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
}
