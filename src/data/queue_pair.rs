//! Items that go round between a producer and a consumer.

use super::BlockingQueue;

/// Two queues between which a fixed set of items goes round: the producer takes a free one and
/// passes it on full, the consumer takes a full one and gives it back free.
///
/// An item belongs to one of them at a time, so neither can touch what the other works on. What
/// a device may still be copying out of an item or into it is the items' own matter: see
/// [`Batch`](super::Batch).
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
        Self { free: items.into_iter().collect(), full: BlockingQueue::new() }
    }

    /// Closes both queues.
    pub fn close(&self) {
        self.free.close();
        self.full.close();
    }

    /// Whether [`close`](Self::close) was called.
    pub fn is_closed(&self) -> bool {
        self.free.is_closed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_go_round() {
        let pair = QueuePair::new([1, 2]);
        let item = pair.free.pop().unwrap();
        pair.full.push(item * 10).unwrap();
        assert_eq!((pair.free.len(), pair.full.pop(), pair.is_closed()), (1, Some(10), false));
        pair.close();
        assert_eq!((pair.free.pop(), pair.free.pop(), pair.full.pop()), (Some(2), None, None));
        assert_eq!((pair.free.push(3), pair.is_closed()), (Err(3), true));
    }
}
