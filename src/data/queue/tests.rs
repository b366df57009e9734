use super::*;
use crate::data::testing::TIMEOUT;
use std::{
    sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    thread,
};

const SHORT: Duration = Duration::from_millis(5);

#[test]
fn a_queue_returns_items_in_the_order_of_the_pushes() {
    let queue = BlockingQueue::new();
    assert_eq!((queue.try_pop(), queue.try_peek(), queue.len()), (None, None, 0));
    for i in 0..3 {
        queue.push(i).unwrap();
    }
    assert_eq!((queue.peek(), queue.try_peek(), queue.len()), (Some(0), Some(0), 3));
    assert_eq!((queue.pop(), queue.try_pop()), (Some(0), Some(1)));
    assert_eq!((queue.pop_timeout(TIMEOUT), queue.is_empty()), (Ok(2), true));
    assert_eq!(queue.pop_timeout(SHORT), Err(QueueError::TimedOut));
    assert_eq!(queue.pop_timeout(Duration::ZERO), Err(QueueError::TimedOut));
}

#[test]
fn a_closed_queue_returns_its_items_and_then_none() {
    let queue = BlockingQueue::new();
    queue.push("a").unwrap();
    queue.push("b").unwrap();
    queue.close();
    queue.close();
    assert!(queue.is_closed());
    assert_eq!(queue.push("c"), Err("c"));
    assert_eq!((queue.pop(), queue.pop_timeout(TIMEOUT)), (Some("a"), Ok("b")));
    assert_eq!((queue.pop(), queue.peek(), queue.try_pop()), (None, None, None));
    assert_eq!(queue.pop_logging("waiting"), None);
    assert_eq!(queue.pop_timeout(TIMEOUT), Err(QueueError::Closed));
    assert_eq!(queue.pop_timeout(Duration::MAX), Err(QueueError::Closed));
}

#[test]
fn closing_a_queue_wakes_all_waiting_threads() {
    let empty_queue = BlockingQueue::<u8>::new();
    let full_queue = BlockingQueue::bounded(1);
    full_queue.push(1).unwrap();
    let woken_count = AtomicUsize::new(0);
    thread::scope(|scope| {
        scope.spawn(|| (empty_queue.pop().is_none()).then(|| woken_count.fetch_add(1, SeqCst)));
        scope.spawn(|| (empty_queue.peek().is_none()).then(|| woken_count.fetch_add(1, SeqCst)));
        scope.spawn(|| {
            (empty_queue.pop_timeout(TIMEOUT).is_err()).then(|| woken_count.fetch_add(1, SeqCst))
        });
        scope.spawn(|| (full_queue.push(2) == Err(2)).then(|| woken_count.fetch_add(1, SeqCst)));
        thread::sleep(SHORT);
        empty_queue.close();
        full_queue.close();
    });
    assert_eq!(woken_count.load(SeqCst), 4);
    assert_eq!((full_queue.pop(), full_queue.pop()), (Some(1), None));
}

/// A push wakes one waiting thread. A woken thread that only peeks must wake another thread.
#[test]
fn a_peeking_thread_wakes_a_popping_thread() {
    for _ in 0..200 {
        let queue = BlockingQueue::new();
        thread::scope(|scope| {
            let peek_thread = scope.spawn(|| queue.peek());
            let pop_thread = scope.spawn(|| queue.pop_timeout(TIMEOUT));
            queue.push(7).unwrap();
            assert_eq!(pop_thread.join().unwrap(), Ok(7));
            queue.push(7).unwrap();
            assert_eq!(peek_thread.join().unwrap(), Some(7));
        });
    }
}

#[test]
fn a_push_to_a_full_queue_waits_for_a_pop() {
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
        assert!(!done.load(SeqCst), "the third push must wait");
        assert_eq!((queue.pop(), queue.pop(), queue.pop()), (Some(0), Some(1), Some(2)));
    });
}

#[test]
fn a_push_to_a_full_queue_fails_after_its_timeout() {
    let queue = BlockingQueue::bounded(1);
    assert_eq!(queue.push_timeout(1, SHORT), Ok(()));
    assert_eq!(queue.push_timeout(2, SHORT), Err((2, QueueError::TimedOut)));
    assert_eq!(queue.push_timeout(2, Duration::ZERO), Err((2, QueueError::TimedOut)));
    thread::scope(|scope| {
        let push_thread = scope.spawn(|| queue.push_timeout(2, TIMEOUT));
        assert_eq!((queue.pop(), queue.pop()), (Some(1), Some(2)));
        assert_eq!(push_thread.join().unwrap(), Ok(()));
    });
    queue.close();
    assert_eq!(queue.push_timeout(3, Duration::MAX), Err((3, QueueError::Closed)));
}

/// Consumers pop each item once, and each consumer gets the items of a producer in order.
#[test]
fn items_pass_once_and_in_order_between_eight_producers_and_eight_consumers() {
    const THREADS: usize = 8;
    for (queue, items) in [
        (BlockingQueue::<(usize, usize)>::new(), 25_000),
        (BlockingQueue::bounded(100), 25_000),
        (BlockingQueue::bounded(3), 1000),
        (BlockingQueue::bounded(0), 1000),
    ] {
        let counts: Vec<_> = (0..THREADS * items).map(|_| AtomicUsize::new(0)).collect();
        let (queue, counts) = (&queue, &counts);
        thread::scope(|scope| {
            for consumer in 0..THREADS {
                scope.spawn(move || {
                    let mut last = [None; THREADS];
                    loop {
                        let popped = match consumer {
                            0 => queue.pop(),
                            1 => queue.pop_logging("waiting"),
                            _ => match queue.pop_timeout(SHORT) {
                                Ok(item) => Some(item),
                                Err(QueueError::TimedOut) => continue,
                                Err(QueueError::Closed) => None,
                            },
                        };
                        let Some((producer, item)) = popped else { return };
                        let last: &mut Option<usize> = &mut last[producer];
                        assert!(last.replace(item).is_none_or(|last| last < item));
                        counts[producer * items + item].fetch_add(1, SeqCst);
                    }
                });
            }
            let producers: [_; THREADS] = std::array::from_fn(|producer| {
                scope.spawn(move || {
                    for item in 0..items {
                        queue.push((producer, item)).unwrap();
                        assert!(queue.len() <= queue.bound);
                    }
                })
            });
            producers.into_iter().for_each(|producer| producer.join().unwrap());
            queue.close();
        });
        assert!(counts.iter().all(|count| count.load(SeqCst) == 1));
    }
}
