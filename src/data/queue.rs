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
mod tests {
    use super::*;
    use std::{
        sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
        thread,
    };

    const LONG: Duration = Duration::from_secs(20);
    const SHORT: Duration = Duration::from_millis(5);

    #[test]
    fn items_leave_in_the_order_they_came() {
        let queue = BlockingQueue::new();
        assert_eq!((queue.try_pop(), queue.try_peek(), queue.len()), (None, None, 0));
        for i in 0..3 {
            queue.push(i).unwrap();
        }
        assert_eq!((queue.peek(), queue.try_peek(), queue.len()), (Some(0), Some(0), 3));
        assert_eq!((queue.pop(), queue.try_pop()), (Some(0), Some(1)));
        assert_eq!((queue.pop_timeout(LONG), queue.is_empty()), (Ok(2), true));
        assert_eq!(queue.pop_timeout(SHORT), Err(Missed::TimedOut));
        assert_eq!(queue.pop_timeout(Duration::ZERO), Err(Missed::TimedOut));
    }

    #[test]
    fn a_closed_queue_drains_and_then_gives_nothing() {
        let queue = BlockingQueue::new();
        queue.push("a").unwrap();
        queue.push("b").unwrap();
        queue.close();
        queue.close();
        assert!(queue.is_closed());
        assert_eq!(queue.push("c"), Err("c"));
        assert_eq!((queue.pop(), queue.pop_timeout(LONG)), (Some("a"), Ok("b")));
        assert_eq!((queue.pop(), queue.peek(), queue.try_pop()), (None, None, None));
        assert_eq!(queue.pop_logging("waiting"), None);
        assert_eq!(queue.pop_timeout(LONG), Err(Missed::Closed));
        assert_eq!(queue.pop_timeout(Duration::MAX), Err(Missed::Closed));
    }

    #[test]
    fn every_item_arrives_once_through_many_threads() {
        const THREADS: usize = 4;
        const EACH: usize = 2000;
        for queue in [BlockingQueue::new(), BlockingQueue::bounded(3), BlockingQueue::bounded(0)] {
            let seen: Vec<_> = (0..THREADS * EACH).map(|_| AtomicUsize::new(0)).collect();
            let consumed = AtomicUsize::new(0);
            thread::scope(|scope| {
                for consumer in 0..THREADS {
                    let (queue, seen, consumed) = (&queue, &seen, &consumed);
                    scope.spawn(move || {
                        loop {
                            let item: Option<usize> = match consumer {
                                0 => queue.pop(),
                                1 => queue.pop_logging("waiting"),
                                _ => match queue.pop_timeout(SHORT) {
                                    Ok(item) => Some(item),
                                    Err(Missed::TimedOut) => continue,
                                    Err(Missed::Closed) => None,
                                },
                            };
                            let Some(item) = item else { return };
                            seen[item].fetch_add(1, SeqCst);
                            if consumed.fetch_add(1, SeqCst) + 1 == seen.len() {
                                queue.close();
                            }
                        }
                    });
                }
                for producer in 0..THREADS {
                    let queue = &queue;
                    scope.spawn(move || {
                        for i in 0..EACH {
                            queue.push(producer * EACH + i).unwrap();
                            assert!(queue.len() <= queue.bound);
                        }
                    });
                }
            });
            assert!(seen.iter().all(|count| count.load(SeqCst) == 1));
        }
    }

    #[test]
    fn closing_wakes_whoever_waits() {
        let empty = BlockingQueue::<u8>::new();
        let full = BlockingQueue::bounded(1);
        full.push(1).unwrap();
        let woken = AtomicUsize::new(0);
        thread::scope(|scope| {
            scope.spawn(|| (empty.pop().is_none()).then(|| woken.fetch_add(1, SeqCst)));
            scope.spawn(|| (empty.peek().is_none()).then(|| woken.fetch_add(1, SeqCst)));
            scope.spawn(|| (empty.pop_timeout(LONG).is_err()).then(|| woken.fetch_add(1, SeqCst)));
            scope.spawn(|| (full.push(2) == Err(2)).then(|| woken.fetch_add(1, SeqCst)));
            thread::sleep(SHORT);
            empty.close();
            full.close();
        });
        assert_eq!(woken.load(SeqCst), 4);
        assert_eq!((full.pop(), full.pop()), (Some(1), None));
    }

    /// An item must not be lost on one who only looks at it.
    #[test]
    fn a_peeking_thread_passes_the_news_on() {
        for _ in 0..200 {
            let queue = BlockingQueue::new();
            thread::scope(|scope| {
                let peeking = scope.spawn(|| queue.peek());
                let popping = scope.spawn(|| queue.pop_timeout(LONG));
                queue.push(7).unwrap();
                assert_eq!(popping.join().unwrap(), Ok(7));
                queue.push(7).unwrap();
                assert_eq!(peeking.join().unwrap(), Some(7));
            });
        }
    }

    #[test]
    fn a_full_queue_holds_its_producer_back() {
        let queue = BlockingQueue::bounded(2);
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                (0..3).for_each(|i| queue.push(i).unwrap());
                done.store(true, SeqCst);
            });
            while queue.len() < 2 {
                thread::yield_now();
            }
            thread::sleep(SHORT);
            assert!(!done.load(SeqCst), "the third push waits");
            assert_eq!((queue.pop(), queue.pop(), queue.pop()), (Some(0), Some(1), Some(2)));
        });
    }

    #[test]
    fn items_of_a_pair_go_round() {
        let pair = QueuePair::new([1, 2]);
        let item = pair.free.pop().unwrap();
        pair.full.push(item * 10).unwrap();
        assert_eq!((pair.free.len(), pair.full.pop()), (1, Some(10)));
        pair.close();
        assert_eq!((pair.free.pop(), pair.free.pop(), pair.full.pop()), (Some(2), None, None));
        assert_eq!(pair.free.push(3), Err(3));
    }
}
