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
    assert_eq!(queue.pop_timeout(SHORT), Err(QueueError::TimedOut));
    assert_eq!(queue.pop_timeout(Duration::ZERO), Err(QueueError::TimedOut));
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
    assert_eq!(queue.pop_timeout(LONG), Err(QueueError::Closed));
    assert_eq!(queue.pop_timeout(Duration::MAX), Err(QueueError::Closed));
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
                                Err(QueueError::TimedOut) => continue,
                                Err(QueueError::Closed) => None,
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
fn a_push_does_not_wait_longer_than_it_may() {
    let queue = BlockingQueue::bounded(1);
    assert_eq!(queue.push_timeout(1, SHORT), Ok(()));
    assert_eq!(queue.push_timeout(2, SHORT), Err((2, QueueError::TimedOut)));
    assert_eq!(queue.push_timeout(2, Duration::ZERO), Err((2, QueueError::TimedOut)));
    thread::scope(|scope| {
        let pushing = scope.spawn(|| queue.push_timeout(2, LONG));
        assert_eq!((queue.pop(), queue.pop()), (Some(1), Some(2)));
        assert_eq!(pushing.join().unwrap(), Ok(()));
    });
    queue.close();
    assert_eq!(queue.push_timeout(3, Duration::MAX), Err((3, QueueError::Closed)));
}

/// Eight producers, eight consumers, a million items: each arrives once, and those of a producer
/// in its order.
#[test]
fn a_million_items_arrive() {
    const THREADS: u64 = 8;
    const EACH: u64 = 125_000;
    for queue in [BlockingQueue::new(), BlockingQueue::bounded(100)] {
        let sums = thread::scope(|scope| {
            let consumers: Vec<_> = (0..THREADS)
                .map(|_| {
                    scope.spawn(|| {
                        let (mut count, mut sum) = (0, 0);
                        let mut last = [None; THREADS as usize];
                        while let Some((producer, item)) = queue.pop() {
                            let last: &mut Option<u64> = &mut last[producer as usize];
                            assert!(last.replace(item).is_none_or(|last| last < item));
                            count += 1;
                            sum += producer * EACH + item;
                        }
                        (count, sum)
                    })
                })
                .collect();
            let queue = &queue;
            let producers: Vec<_> = (0..THREADS)
                .map(|producer| {
                    scope.spawn(move || (0..EACH).for_each(|i| queue.push((producer, i)).unwrap()))
                })
                .collect();
            producers.into_iter().for_each(|producer| producer.join().unwrap());
            queue.close();
            consumers.into_iter().map(|consumer| consumer.join().unwrap()).collect::<Vec<_>>()
        });
        let (counts, sums): (Vec<u64>, Vec<u64>) = sums.into_iter().unzip();
        let all = THREADS * EACH;
        assert_eq!((counts.iter().sum(), sums.iter().sum()), (all, all * (all - 1) / 2));
    }
}
