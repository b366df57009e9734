//! Tasks in order, by parts: one for each thread.
//!
//! A thread takes those of its own part first. One kernel writes what the next one reads, mostly in
//! the same order: so a thread finds in its cache what it has written itself.

use parking_lot::Mutex;
use std::ops::Range;

pub(crate) struct StealQueues<I>(Vec<Mutex<I>>);

impl<I: DoubleEndedIterator> StealQueues<I> {
    /// As many parts as there are threads: `of` is called for the tasks of each, in order.
    pub(crate) fn new(tasks: usize, threads: usize, of: impl FnMut(Range<usize>) -> I) -> Self {
        let end = |part| part * tasks / threads;
        let ranges = (0..threads).map(|part| end(part)..end(part + 1));
        Self(ranges.map(of).map(Mutex::new).collect())
    }

    /// The next task of this thread's part or, if there is none, the last of another's.
    pub(crate) fn take(&self, thread: usize) -> Option<I::Item> {
        let (before, from) = self.0.split_at(thread % self.0.len());
        let (own, after) = from.split_first()?;
        let next = own.lock().next();
        next.or_else(|| after.iter().chain(before).find_map(|part| part.lock().next_back()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_tasks_first_then_others_from_the_end() {
        let parts = StealQueues::new(7, 3, |range| range);
        let taken: Vec<_> = std::iter::from_fn(|| parts.take(1)).collect();
        assert_eq!(taken, [2, 3, 6, 5, 4, 1, 0]);
        let parts = StealQueues::new(2, 3, |range| range);
        assert_eq!([0, 4, 2].map(|thread| parts.take(thread)), [Some(0), Some(1), None]);
    }
}
