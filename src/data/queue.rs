//! Queues between threads, whose readers wait.

use crate::sync::{Condvar, Mutex, MutexGuard};
use std::{
    collections::VecDeque,
    fmt,
    time::{Duration, Instant},
};

/// Why a push or a pop with a timeout came to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueError {
    /// There was no room, or no item, in time.
    TimedOut,
    /// The queue is closed; for a pop, empty too: nothing will ever come.
    Closed,
}

/// A first-in, first-out queue for any number of producers and consumers.
///
/// It can be closed: producers are then refused, consumers drain what is left and then get
/// nothing, and whoever waits wakes up. Share it by reference or in an [`Arc`](std::sync::Arc).
pub struct BlockingQueue<T> {
    state: Mutex<State<T>>,
    /// An item arrived, or the queue was closed.
    arrived: Condvar,
    /// An item left, or the queue was closed.
    left: Condvar,
    bound: usize,
}

struct State<T> {
    items: VecDeque<T>,
    closed: bool,
}

impl<T> BlockingQueue<T> {
    /// An empty queue without a bound.
    pub fn new() -> Self {
        Self::bounded(usize::MAX)
    }

    /// An empty queue of at most `bound` items (at least 1): [`push`](Self::push) waits while it
    /// is full.
    pub fn bounded(bound: usize) -> Self {
        Self {
            state: Mutex::new(State { items: VecDeque::new(), closed: false }),
            arrived: Condvar::new(),
            left: Condvar::new(),
            bound: bound.max(1),
        }
    }

    /// Appends `item`, waiting for room if the queue is bounded and full.
    ///
    /// # Errors
    /// Gives `item` back if the queue is closed, also if it is closed while waiting.
    pub fn push(&self, item: T) -> Result<(), T> {
        self.append(item, None).map_err(|(item, _)| item)
    }

    /// As [`push`](Self::push), waiting for at most `timeout`.
    ///
    /// # Errors
    /// Gives `item` back; [`QueueError`] tells a full queue from a closed one.
    pub fn push_timeout(&self, item: T, timeout: Duration) -> Result<(), (T, QueueError)> {
        // A deadline too far off to be represented is none.
        self.append(item, Instant::now().checked_add(timeout))
    }

    /// Takes the first item, waiting for one; `None` once the queue is closed and empty.
    pub fn pop(&self) -> Option<T> {
        self.wait(None, None).ok().and_then(|state| self.take(state))
    }

    /// As [`pop`](Self::pop), logging `message` once, at level info, if it has to wait.
    #[doc(alias = "pop(log_on_wait)")]
    pub fn pop_logging(&self, message: &str) -> Option<T> {
        self.wait(None, Some(message)).ok().and_then(|state| self.take(state))
    }

    /// As [`pop`](Self::pop), waiting for at most `timeout`.
    ///
    /// # Errors
    /// [`QueueError`] tells an empty queue from a closed one.
    pub fn pop_timeout(&self, timeout: Duration) -> Result<T, QueueError> {
        let state = self.wait(Instant::now().checked_add(timeout), None)?;
        self.take(state).ok_or(QueueError::Closed)
    }

    /// Takes the first item if there is one now.
    pub fn try_pop(&self) -> Option<T> {
        self.take(self.state.lock())
    }

    /// A copy of the first item, which stays, waiting for one; `None` once the queue is closed
    /// and empty.
    pub fn peek(&self) -> Option<T>
    where
        T: Clone,
    {
        let state = self.wait(None, None).ok()?;
        // The item stays, so whoever else waits for it must still hear of it.
        self.arrived.notify_one();
        state.items.front().cloned()
    }

    /// A copy of the first item if there is one now.
    pub fn try_peek(&self) -> Option<T>
    where
        T: Clone,
    {
        self.state.lock().items.front().cloned()
    }

    /// Number of items now.
    #[doc(alias = "size")]
    pub fn len(&self) -> usize {
        self.state.lock().items.len()
    }

    /// Whether there is no item now.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Refuses what is pushed from now on and wakes everyone who waits. What is in the queue
    /// can still be taken. Closing twice is harmless.
    pub fn close(&self) {
        self.state.lock().closed = true;
        self.arrived.notify_all();
        self.left.notify_all();
    }

    /// Whether [`close`](Self::close) was called.
    pub fn is_closed(&self) -> bool {
        self.state.lock().closed
    }

    fn append(&self, item: T, deadline: Option<Instant>) -> Result<(), (T, QueueError)> {
        let mut state = self.state.lock();
        let mut late = false;
        while !state.closed && state.items.len() >= self.bound {
            if late {
                return Err((item, QueueError::TimedOut));
            }
            late = sleep(&self.left, &mut state, deadline);
        }
        if state.closed {
            return Err((item, QueueError::Closed));
        }
        state.items.push_back(item);
        self.arrived.notify_one();
        Ok(())
    }

    /// Waits for a first item.
    fn wait(
        &self,
        deadline: Option<Instant>,
        mut message: Option<&str>,
    ) -> Result<MutexGuard<'_, State<T>>, QueueError> {
        let mut state = self.state.lock();
        let mut late = false;
        loop {
            if !state.items.is_empty() {
                return Ok(state);
            }
            if state.closed {
                return Err(QueueError::Closed);
            }
            if late {
                return Err(QueueError::TimedOut);
            }
            if let Some(message) = message.take() {
                // A logger may do anything, so not under the lock.
                drop(state);
                log::info!("{message}");
                state = self.state.lock();
                continue;
            }
            late = sleep(&self.arrived, &mut state, deadline);
        }
    }

    fn take(&self, mut state: MutexGuard<'_, State<T>>) -> Option<T> {
        let item = state.items.pop_front()?;
        self.left.notify_one();
        Some(item)
    }
}

impl<T> Default for BlockingQueue<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// An unbounded queue that holds what an iterator yields.
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

/// Waits until `news` come, or until `deadline`; returns whether that has passed.
fn sleep<T>(
    news: &Condvar,
    state: &mut MutexGuard<'_, State<T>>,
    deadline: Option<Instant>,
) -> bool {
    match deadline {
        Some(deadline) => news.wait_until(state, deadline).timed_out(),
        None => {
            news.wait(state);
            false
        }
    }
}

#[cfg(test)]
mod tests;
