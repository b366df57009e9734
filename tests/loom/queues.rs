//! Threads that meet at a queue.

use cortado::{
    Error, Result,
    data::{BlockingQueue, DataReader, QueuePair, Record, Source},
};
use loom::{model::Builder, sync::Arc, thread};

/// Tries every interleaving in which threads are interrupted, where they would not wait anyway, at
/// most twice: three times take twenty times as long.
fn model(body: impl Fn() + Sync + Send + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(body);
}

fn sorted(mut items: Vec<u32>) -> Vec<u32> {
    items.sort_unstable();
    items
}

#[test]
fn every_item_goes_to_one_consumer() {
    model(|| {
        let queue = Arc::new(BlockingQueue::new());
        let consumers = [(); 2].map(|()| {
            let queue = Arc::clone(&queue);
            thread::spawn(move || std::iter::from_fn(|| queue.pop()).collect::<Vec<u32>>())
        });
        queue.push(1).unwrap();
        queue.push(2).unwrap();
        queue.close();
        let seen = consumers.map(|consumer| consumer.join().unwrap()).concat();
        assert_eq!(sorted(seen), [1, 2]);
    });
}

#[test]
fn a_full_queue_holds_producers_back_and_lets_them_go_on() {
    model(|| {
        let queue = Arc::new(BlockingQueue::bounded(1));
        let producers = [1, 2].map(|item| {
            let queue = Arc::clone(&queue);
            thread::spawn(move || queue.push(item).unwrap())
        });
        let seen = [queue.pop().unwrap(), queue.pop().unwrap()];
        producers.into_iter().for_each(|producer| producer.join().unwrap());
        assert_eq!((sorted(seen.to_vec()), queue.len()), (vec![1, 2], 0));
    });
}

#[test]
fn closing_wakes_whoever_waits() {
    model(|| {
        let full = Arc::new(BlockingQueue::bounded(1));
        full.push(1).unwrap();
        let empty = Arc::new(BlockingQueue::<u32>::new());
        let (theirs, others) = (Arc::clone(&full), Arc::clone(&empty));
        let pushing = thread::spawn(move || theirs.push(2));
        let popping = thread::spawn(move || others.pop());
        full.close();
        empty.close();
        assert_eq!(popping.join().unwrap(), None);
        assert_eq!((pushing.join().unwrap(), full.pop(), full.pop()), (Err(2), Some(1), None));
    });
}

/// An item must not be lost on one who only looks at it.
#[test]
fn who_peeks_passes_the_news_on() {
    model(|| {
        let queue = Arc::new(BlockingQueue::new());
        let (theirs, others) = (Arc::clone(&queue), Arc::clone(&queue));
        let peeking = thread::spawn(move || theirs.peek());
        let popping = thread::spawn(move || others.pop());
        queue.push(7).unwrap();
        assert_eq!(popping.join().unwrap(), Some(7));
        queue.push(8).unwrap();
        let seen = peeking.join().unwrap();
        assert!(seen == Some(7) || seen == Some(8));
    });
}

/// The consumer leaves at any moment; no item is in two hands, and the producer ends.
#[test]
fn a_pair_goes_round_until_it_is_closed() {
    model(|| {
        let pair = Arc::new(QueuePair::new([Box::new(0)]));
        let theirs = Arc::clone(&pair);
        let producer = thread::spawn(move || {
            let mut made = 0;
            while let Some(mut item) = theirs.free.pop() {
                made += 1;
                *item = made;
                if theirs.full.push(item).is_err() {
                    break;
                }
            }
            made
        });
        let item = pair.full.pop().unwrap();
        assert_eq!(*item, 1);
        pair.free.push(item).unwrap();
        pair.close();
        assert!(producer.join().unwrap() <= 2);
    });
}

/// Labels 0, 1, … until record `bad`.
struct Counting {
    next: i32,
    bad: i32,
}

impl Source for Counting {
    fn describe(&self) -> String {
        "counting".into()
    }
    fn records(&self) -> Option<u64> {
        None
    }
    fn read(&mut self, record: &mut Record) -> Result<()> {
        if self.next == self.bad {
            return Err(Error::Invalid("unreadable".into()));
        }
        record.set_label(self.next);
        self.next += 1;
        Ok(())
    }
}

fn readers(bad: i32, count: usize) -> Vec<DataReader> {
    DataReader::shared(Box::new(Counting { next: 0, bad }), 0, 1, count).unwrap()
}

fn label(data: &mut DataReader) -> Result<i32> {
    let label = data.records()?[0].label();
    data.consume(1);
    Ok(label)
}

/// Dropped at any moment, a reader ends its thread and waits for it: loom tells of one that is
/// left, and of a standstill.
#[test]
fn a_reader_can_be_dropped_at_any_moment() {
    for taken in 0..3 {
        model(move || {
            let mut data = readers(-1, 1);
            for want in 0..taken {
                assert_eq!(label(&mut data[0]).unwrap(), want);
            }
        });
    }
}

#[test]
fn who_is_dropped_holds_nobody_up() {
    model(|| {
        let mut data = readers(-1, 2);
        let dropped = data.pop().unwrap();
        let other = thread::spawn(move || drop(dropped));
        assert_eq!(label(&mut data[0]).unwrap(), 0);
        assert_eq!(label(&mut data[0]).unwrap(), 2);
        drop(data);
        other.join().unwrap();
    });
}

#[test]
fn everyone_hears_of_an_error() {
    model(move || {
        let mut data = readers(1, 2);
        let mut last = data.pop().unwrap();
        let other = thread::spawn(move || label(&mut last).unwrap_err().to_string());
        assert_eq!(label(&mut data[0]).unwrap(), 0);
        let ours = label(&mut data[0]).unwrap_err().to_string();
        assert_eq!([ours, other.join().unwrap()], ["counting, record 1: unreadable"; 2]);
    });
}
