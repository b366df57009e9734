//! The limit on the memory that an opened device and its forked queues may use.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The number of bytes in use, and the limit on that number.
pub(super) struct MemoryBudget {
    limit: usize,
    /// Number of bytes that are allocated and not yet freed.
    in_use: AtomicUsize,
}

impl MemoryBudget {
    /// Creates a budget of `limit` bytes, or an unlimited one if `limit` is `None`.
    pub(super) fn new(limit: Option<usize>) -> Self {
        Self { limit: limit.unwrap_or(usize::MAX), in_use: AtomicUsize::new(0) }
    }

    /// Adds `bytes` bytes to the memory in use, unless the sum would exceed the limit. Returns
    /// whether the bytes were added.
    pub(super) fn reserve(&self, bytes: usize) -> bool {
        let add = |in_use: usize| in_use.checked_add(bytes).filter(|sum| *sum <= self.limit);
        self.in_use.fetch_update(Relaxed, Relaxed, add).is_ok()
    }

    /// Subtracts `bytes` bytes, which the caller reserved before.
    pub(super) fn release(&self, bytes: usize) {
        self.in_use.fetch_sub(bytes, Relaxed);
    }
}
