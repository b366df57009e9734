//! Loom tests of threads that share a queue or a data reader.

use crate::check_with_preemptions;
use cortado::{
    Error, Result,
    data::{BlockingQueue, DataReader, QueuePair, Record, Source},
};
use loom::{sync::Arc, thread};

/// Runs `body` in every interleaving of its threads with at most two preemptions. With up to three
/// preemptions instead of two, the tests would take twenty times as long.
fn model(body: impl Fn() + Sync + Send + 'static) {
    check_with_preemptions(2, body);
}

fn sorted(mut items: Vec<u32>) -> Vec<u32> {
    items.sort_unstable();
    items
}

#[test]
fn every_item_is_popped_by_one_consumer() {
    model(|| {
        let queue = Arc::new(BlockingQueue::new());
        let consumers = [(); 2].map(|()| {
            let queue = Arc::clone(&queue);
            thread::spawn(move || std::iter::from_fn(|| queue.pop()).collect::<Vec<u32>>())
        });
        queue.push(1).unwrap();
        queue.push(2).unwrap();
        queue.close();
        let items = consumers.map(|consumer| consumer.join().unwrap()).concat();
        assert_eq!(sorted(items), [1, 2]);
    });
}

#[test]
fn producers_wait_for_a_full_queue_and_then_continue() {
    model(|| {
        let queue = Arc::new(BlockingQueue::bounded(1));
        let producers = [1, 2].map(|item| {
            let queue = Arc::clone(&queue);
            thread::spawn(move || queue.push(item).unwrap())
        });
        let items = [queue.pop().unwrap(), queue.pop().unwrap()];
        producers.into_iter().for_each(|producer| producer.join().unwrap());
        assert_eq!((sorted(items.to_vec()), queue.len()), (vec![1, 2], 0));
    });
}

#[test]
fn closing_a_queue_wakes_all_waiting_threads() {
    model(|| {
        let full_queue = Arc::new(BlockingQueue::bounded(1));
        full_queue.push(1).unwrap();
        let empty_queue = Arc::new(BlockingQueue::<u32>::new());
        let (push_queue, pop_queue) = (Arc::clone(&full_queue), Arc::clone(&empty_queue));
        let push_thread = thread::spawn(move || push_queue.push(2));
        let pop_thread = thread::spawn(move || pop_queue.pop());
        full_queue.close();
        empty_queue.close();
        assert_eq!(pop_thread.join().unwrap(), None);
        assert_eq!(
            (push_thread.join().unwrap(), full_queue.pop(), full_queue.pop()),
            (Err(2), Some(1), None)
        );
    });
}

/// A push to a blocking queue wakes one waiting thread. A woken thread that only reads the item,
/// and leaves it in the queue, must wake another waiting thread.
#[test]
fn a_thread_that_peeks_wakes_a_thread_that_pops() {
    model(|| {
        let queue = Arc::new(BlockingQueue::new());
        let (peek_queue, pop_queue) = (Arc::clone(&queue), Arc::clone(&queue));
        let peek_thread = thread::spawn(move || peek_queue.peek());
        let pop_thread = thread::spawn(move || pop_queue.pop());
        queue.push(7).unwrap();
        assert_eq!(pop_thread.join().unwrap(), Some(7));
        queue.push(8).unwrap();
        let peeked_item = peek_thread.join().unwrap();
        assert!(peeked_item == Some(7) || peeked_item == Some(8));
    });
}

/// The consumer closes the queue pair at an arbitrary moment. In every interleaving, exactly one
/// thread must own the recycled item, and the producer thread must end.
#[test]
fn a_queue_pair_recycles_items_until_the_pair_is_closed() {
    model(|| {
        let pair = Arc::new(QueuePair::new([Box::new(0)]));
        let producer_pair = Arc::clone(&pair);
        let producer = thread::spawn(move || {
            let mut count = 0;
            while let Some(mut item) = producer_pair.free.pop() {
                count += 1;
                *item = count;
                if producer_pair.full.push(item).is_err() {
                    break;
                }
            }
            count
        });
        let item = pair.full.pop().unwrap();
        assert_eq!(*item, 1);
        pair.free.push(item).unwrap();
        pair.close();
        assert!(producer.join().unwrap() <= 2);
    });
}

/// Data source of records with the labels 0, 1, … . Reading the record with the label `bad_label`
/// fails.
struct Counting {
    next: i32,
    bad_label: i32,
}

impl Source for Counting {
    fn describe(&self) -> String {
        "counting".into()
    }
    fn records(&self) -> Option<u64> {
        None
    }
    fn read(&mut self, record: &mut Record) -> Result<()> {
        if self.next == self.bad_label {
            return Err(Error::InvalidData("unreadable".into()));
        }
        record.set_label(self.next);
        self.next += 1;
        Ok(())
    }
}

fn readers(bad_label: i32, count: usize) -> Vec<DataReader> {
    DataReader::shared(Box::new(Counting { next: 0, bad_label }), 0, 1, count).unwrap()
}

fn label(data: &mut DataReader) -> Result<i32> {
    let label = data.records()?[0].label();
    data.consume(1);
    Ok(label)
}

/// loom also fails this test if a thread outlives the test or if the threads deadlock.
#[test]
fn dropping_a_data_reader_at_any_moment_joins_its_thread() {
    for count in 0..3 {
        model(move || {
            let mut data = readers(-1, 1);
            for want in 0..count {
                assert_eq!(label(&mut data[0]).unwrap(), want);
            }
        });
    }
}

#[test]
fn a_dropped_data_reader_does_not_block_the_others() {
    model(|| {
        let mut data = readers(-1, 2);
        let dropped_reader = data.pop().unwrap();
        let handle = thread::spawn(move || drop(dropped_reader));
        assert_eq!(label(&mut data[0]).unwrap(), 0);
        assert_eq!(label(&mut data[0]).unwrap(), 2);
        drop(data);
        handle.join().unwrap();
    });
}

#[test]
fn every_data_reader_receives_the_error_of_its_source() {
    model(move || {
        let mut data = readers(1, 2);
        let mut last_reader = data.pop().unwrap();
        let handle = thread::spawn(move || label(&mut last_reader).unwrap_err().to_string());
        assert_eq!(label(&mut data[0]).unwrap(), 0);
        let error = label(&mut data[0]).unwrap_err().to_string();
        assert_eq!([error, handle.join().unwrap()], ["counting, record 1: unreadable"; 2]);
    });
}
