//! A pair of queues that recycles items between a producer and a consumer.

use super::queue::BlockingQueue;

/// Two queues that pass a fixed set of items between a producer and a consumer.
///
/// The producer pops an item from `free`, fills the item and pushes it to `full`. The consumer pops
/// an item from `full` and returns it to `free`. The queues do not wait for pending transfers from
/// or to the memory of an item: see [`Batch`](super::Batch).
///
/// ```
/// use cortado::data::QueuePair;
///
/// let buffers = QueuePair::new([vec![0; 4], vec![0; 4]]);
/// let mut buffer = buffers.free.pop().unwrap();
/// buffer.fill(1);
/// buffers.full.push(buffer).unwrap();
/// assert_eq!((buffers.free.len(), buffers.full.pop()), (1, Some(vec![1; 4])));
/// ```
#[derive(Debug, Default)]
pub struct QueuePair<T> {
    /// Items that the producer may overwrite.
    pub free: BlockingQueue<T>,
    /// Items that the producer has filled.
    pub full: BlockingQueue<T>,
}

impl<T> QueuePair<T> {
    /// Returns a queue pair whose queue `free` holds all `items`.
    pub fn new(items: impl IntoIterator<Item = T>) -> Self {
        Self { free: items.into_iter().collect(), full: BlockingQueue::new() }
    }

    /// Closes the queues `free` and `full`.
    pub fn close(&self) {
        self.free.close();
        self.full.close();
    }

    /// Returns whether [`close`](Self::close) was called.
    pub fn is_closed(&self) -> bool {
        self.free.is_closed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_passes_from_free_to_full_until_the_pair_is_closed() {
        let pair = QueuePair::new([1, 2]);
        let item = pair.free.pop().unwrap();
        pair.full.push(item * 10).unwrap();
        assert_eq!((pair.free.len(), pair.full.pop(), pair.is_closed()), (1, Some(10), false));
        pair.close();
        assert_eq!((pair.free.pop(), pair.free.pop(), pair.full.pop()), (Some(2), None, None));
        assert_eq!((pair.free.push(3), pair.is_closed()), (Err(3), true));
    }
}
