//! A blocking first-in, first-out queue between threads.

use crate::sync::{Condvar, Mutex, MutexGuard};
use std::{
    collections::VecDeque,
    fmt,
    time::{Duration, Instant},
};

/// The reason why a push or a pop with a timeout failed.
///
/// ```
/// use cortado::data::{BlockingQueue, QueueError};
/// use std::time::Duration;
///
/// let queue = BlockingQueue::<u32>::new();
/// assert_eq!(queue.pop_timeout(Duration::from_millis(1)), Err(QueueError::TimedOut));
/// queue.close();
/// assert_eq!(queue.pop_timeout(Duration::from_millis(1)), Err(QueueError::Closed));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueError {
    /// The queue stayed full (for a push) or empty (for a pop) until the timeout.
    TimedOut,
    /// The queue is closed. If a pop fails with `Closed`, the queue is empty and stays empty.
    Closed,
}

/// A first-in, first-out queue for any number of producers and consumers.
///
/// After [`close`](Self::close), pushes fail, and pops return the remaining items and then `None`.
/// Closing the queue wakes every waiting thread. Threads can share the queue by reference or in an
/// [`Arc`](std::sync::Arc).
///
/// ```
/// use cortado::data::BlockingQueue;
///
/// let queue = BlockingQueue::bounded(1);
/// std::thread::scope(|scope| {
///     scope.spawn(|| {
///         (0..3).for_each(|item| queue.push(item).unwrap()); // waits while the queue is full
///         queue.close();
///     });
///     assert_eq!(std::iter::from_fn(|| queue.pop()).collect::<Vec<_>>(), [0, 1, 2]);
/// });
/// ```
pub struct BlockingQueue<T> {
    state: Mutex<State<T>>,
    /// The condition variable that a push or a close signals.
    not_empty: Condvar,
    /// The condition variable that a pop or a close signals.
    not_full: Condvar,
    bound: usize,
}

struct State<T> {
    items: VecDeque<T>,
    closed: bool,
}

impl<T> BlockingQueue<T> {
    /// Returns an empty, unbounded queue.
    pub fn new() -> Self {
        Self::bounded(usize::MAX)
    }

    /// Returns an empty queue that can hold at most `bound` items; a `bound` of 0 stands for 1.
    /// [`push`](Self::push) waits while the queue is full.
    pub fn bounded(bound: usize) -> Self {
        Self {
            state: Mutex::new(State { items: VecDeque::new(), closed: false }),
            not_empty: Condvar::new(),
            not_full: Condvar::new(),
            bound: bound.max(1),
        }
    }

    /// Appends `item`. If the queue is bounded, waits while the queue is full.
    ///
    /// # Errors
    /// Returns `item` as the error if the queue is closed before or during this call.
    pub fn push(&self, item: T) -> Result<(), T> {
        self.append(item, None).map_err(|(item, _)| item)
    }

    /// Like [`push`](Self::push), but waits for at most `timeout`.
    ///
    /// # Errors
    /// Returns `item` and [`QueueError::TimedOut`] if the queue stays full, or `item` and
    /// [`QueueError::Closed`] if the queue is closed.
    pub fn push_timeout(&self, item: T, timeout: Duration) -> Result<(), (T, QueueError)> {
        // Wait without a deadline if `Instant` cannot represent the deadline.
        self.append(item, Instant::now().checked_add(timeout))
    }

    /// Waits for an item and removes the first item. Returns `None` if the queue is empty and
    /// closed.
    pub fn pop(&self) -> Option<T> {
        self.wait_for_item(None, None).ok().and_then(|state| self.take(state))
    }

    /// Like [`pop`](Self::pop), but logs `message` once, at level info, if the call has to wait.
    #[doc(alias = "pop(log_on_wait)")]
    pub fn pop_logging(&self, message: &str) -> Option<T> {
        self.wait_for_item(None, Some(message)).ok().and_then(|state| self.take(state))
    }

    /// Like [`pop`](Self::pop), but waits for at most `timeout`.
    ///
    /// # Errors
    /// Returns [`QueueError::TimedOut`] if the queue stays empty, or [`QueueError::Closed`] if the
    /// queue is empty and closed.
    pub fn pop_timeout(&self, timeout: Duration) -> Result<T, QueueError> {
        let state = self.wait_for_item(Instant::now().checked_add(timeout), None)?;
        self.take(state).ok_or(QueueError::Closed)
    }

    /// Removes the first item, or returns `None` without waiting if the queue is empty.
    pub fn try_pop(&self) -> Option<T> {
        self.take(self.state.lock())
    }

    /// Returns a copy of the first item without removing the item. Waits while the queue is empty.
    /// Returns `None` if the queue is empty and closed.
    pub fn peek(&self) -> Option<T>
    where
        T: Clone,
    {
        let state = self.wait_for_item(None, None).ok()?;
        // Peeking leaves the item in the queue, so wake another thread that waits for an item.
        self.not_empty.notify_one();
        state.items.front().cloned()
    }

    /// Returns a copy of the first item, or `None` without waiting if the queue is empty.
    pub fn try_peek(&self) -> Option<T>
    where
        T: Clone,
    {
        self.state.lock().items.front().cloned()
    }

    /// Returns the current number of items.
    #[doc(alias = "size")]
    pub fn len(&self) -> usize {
        self.state.lock().items.len()
    }

    /// Returns whether the queue is empty now.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Makes later pushes fail and wakes all waiting threads. Threads can still pop the items that
    /// remain in a closed queue. Closing a closed queue has no effect.
    pub fn close(&self) {
        self.state.lock().closed = true;
        self.not_empty.notify_all();
        self.not_full.notify_all();
    }

    /// Returns whether [`close`](Self::close) was called.
    pub fn is_closed(&self) -> bool {
        self.state.lock().closed
    }

    fn append(&self, item: T, deadline: Option<Instant>) -> Result<(), (T, QueueError)> {
        let mut state = self.state.lock();
        let mut timed_out = false;
        while !state.closed && state.items.len() >= self.bound {
            if timed_out {
                return Err((item, QueueError::TimedOut));
            }
            (state, timed_out) = sleep(&self.not_full, state, deadline);
        }
        if state.closed {
            return Err((item, QueueError::Closed));
        }
        state.items.push_back(item);
        self.not_empty.notify_one();
        Ok(())
    }

    fn wait_for_item(
        &self,
        deadline: Option<Instant>,
        mut message: Option<&str>,
    ) -> Result<MutexGuard<'_, State<T>>, QueueError> {
        let mut state = self.state.lock();
        let mut timed_out = false;
        loop {
            if !state.items.is_empty() {
                return Ok(state);
            }
            if state.closed {
                return Err(QueueError::Closed);
            }
            if timed_out {
                return Err(QueueError::TimedOut);
            }
            if let Some(message) = message.take() {
                // Unlock the queue before logging, because a logger may use the queue.
                drop(state);
                log::info!("{message}");
                state = self.state.lock();
                continue;
            }
            (state, timed_out) = sleep(&self.not_empty, state, deadline);
        }
    }

    fn take(&self, mut state: MutexGuard<'_, State<T>>) -> Option<T> {
        let item = state.items.pop_front()?;
        self.not_full.notify_one();
        Some(item)
    }
}

impl<T> Default for BlockingQueue<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// Collects the items of an iterator into an unbounded queue.
impl<T> FromIterator<T> for BlockingQueue<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let queue = Self::new();
        queue.state.lock().items.extend(items);
        queue
    }
}

impl<T> fmt::Debug for BlockingQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state.lock();
        f.debug_struct("BlockingQueue")
            .field("len", &state.items.len())
            .field("closed", &state.closed)
            .finish_non_exhaustive()
    }
}

/// Waits for `signal`, at most until `deadline`. Returns the lock guard, and whether the deadline
/// has passed.
fn sleep<'a, T>(
    signal: &Condvar,
    state: MutexGuard<'a, State<T>>,
    deadline: Option<Instant>,
) -> (MutexGuard<'a, State<T>>, bool) {
    match deadline {
        Some(deadline) => signal.wait_until(state, deadline),
        None => (signal.wait(state), false),
    }
}

#[cfg(test)]
mod tests;
