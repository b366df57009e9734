//! Queues between threads, whose readers wait.

use parking_lot::{Condvar, Mutex, MutexGuard};
use std::{collections::VecDeque, fmt, time::Duration, time::Instant};

/// Why a pop with a timeout brought nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missed {
    /// Nothing came in time.
    TimedOut,
    /// The queue is closed and empty: nothing will ever come.
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
        let mut state = self.state.lock();
        while !state.closed && state.items.len() >= self.bound {
            self.left.wait(&mut state);
        }
        if state.closed {
            return Err(item);
        }
        state.items.push_back(item);
        self.arrived.notify_one();
        Ok(())
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
    /// [`Missed`] tells an empty queue from a closed one.
    pub fn pop_timeout(&self, timeout: Duration) -> Result<T, Missed> {
        // A deadline too far off to be represented is none.
        let state = self.wait(Instant::now().checked_add(timeout), None)?;
        self.take(state).ok_or(Missed::Closed)
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

    /// Waits for a first item.
    fn wait(
        &self,
        deadline: Option<Instant>,
        mut message: Option<&str>,
    ) -> Result<MutexGuard<'_, State<T>>, Missed> {
        let mut state = self.state.lock();
        let mut late = false;
        loop {
            if !state.items.is_empty() {
                return Ok(state);
            }
            if state.closed {
                return Err(Missed::Closed);
            }
            if late {
                return Err(Missed::TimedOut);
            }
            if let Some(message) = message.take() {
                // A logger may do anything, so not under the lock.
                drop(state);
                log::info!("{message}");
                state = self.state.lock();
                continue;
            }
            match deadline {
                Some(deadline) => {
                    late = self.arrived.wait_until(&mut state, deadline).timed_out();
                }
                None => self.arrived.wait(&mut state),
            }
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

impl<T> fmt::Debug for BlockingQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state.lock();
        f.debug_struct("BlockingQueue")
            .field("len", &state.items.len())
            .field("closed", &state.closed)
            .finish_non_exhaustive()
    }
}

/// Two queues between which a fixed set of items goes round: the producer takes a free one and
/// passes it on full, the consumer takes a full one and gives it back free.
#[derive(Debug, Default)]
pub struct QueuePair<T> {
    /// Items that may be overwritten.
    pub free: BlockingQueue<T>,
    /// Items that hold something.
    pub full: BlockingQueue<T>,
}

impl<T> QueuePair<T> {
    /// A pair whose `items` are all free.
    pub fn new(items: impl IntoIterator<Item = T>) -> Self {
        let pair = Self { free: BlockingQueue::new(), full: BlockingQueue::new() };
        pair.free.state.lock().items.extend(items);
        pair
    }

    /// Closes both queues.
    pub fn close(&self) {
        self.free.close();
        self.full.close();
    }
}

#[cfg(test)]
mod tests;
