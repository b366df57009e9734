//! Faults made on purpose.

use parking_lot::Mutex;

/// What can be made to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// An allocation: [`Error::OutOfMemory`](crate::Error::OutOfMemory), and nothing is allocated.
    Alloc,
    /// A copy, up or down: [`Error::Device`](crate::Error::Device), and nothing is copied.
    Copy,
    /// A kernel's launch: [`Error::Device`](crate::Error::Device), and nothing is queued.
    Launch,
    /// Queued work, a kernel or an upload, while it runs: [`Error::Device`](crate::Error::Device)
    /// from the next call that waits; what the work would have written is poisoned.
    InFlight,
}

/// The faults still to come, each with the number of events until it strikes.
#[derive(Debug, Default)]
pub(super) struct Faults(Mutex<Vec<(Fault, u64)>>);

impl Faults {
    /// Lets the `nth` event of a kind fail; 1 is the next.
    pub(super) fn inject(&self, fault: Fault, nth: u64) {
        self.0.lock().push((fault, nth.max(1)));
    }

    /// Tells of an event; whether it is to fail.
    pub(super) fn strikes(&self, event: Fault) -> bool {
        let mut strikes = false;
        self.0.lock().retain_mut(|(fault, left)| {
            if *fault == event {
                *left -= 1;
                strikes |= *left == 0;
            }
            *left > 0
        });
        strikes
    }
}
