//! Faults that a test injects into a simulated device.

use crate::sync::Mutex;

/// Kind of event that a test can make fail: an allocation, a copy, a launch or queued work.
///
/// ```
/// use cortado::{device::simulated::Fault, prelude::*};
///
/// let device = SimulatedDevice::new();
/// device.inject_fault(Fault::Alloc, 2);
/// assert!(device.alloc(8).is_ok());
/// assert!(matches!(device.alloc(8), Err(Error::OutOfMemory { bytes: 8, .. })));
/// assert!(device.alloc(8).is_ok());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// An allocation. The call returns [`Error::OutOfMemory`](crate::Error::OutOfMemory) and
    /// allocates nothing.
    Alloc,
    /// An upload or a download. The failing copy returns [`Error::Device`](crate::Error::Device)
    /// and copies nothing.
    Copy,
    /// The launch of a kernel. The call returns [`Error::Device`](crate::Error::Device) and queues
    /// nothing.
    Launch,
    /// A queued kernel or upload. The fault occurs when the queue runs the work. The next call that
    /// waits for the queue returns [`Error::Device`](crate::Error::Device); the outputs of the
    /// failed work are poisoned.
    InFlight,
}

/// Pending faults, each with the number of events of its kind until the fault occurs.
#[derive(Debug, Default)]
pub(super) struct Faults(Mutex<Vec<(Fault, u64)>>);

impl Faults {
    /// Injects a fault into the `nth` event of kind `fault` after this call.
    pub(super) fn inject(&self, fault: Fault, nth: u64) {
        self.0.lock().push((fault, nth.max(1)));
    }

    /// Counts an event, and returns whether the event must fail.
    pub(super) fn occurs(&self, event: Fault) -> bool {
        let mut occurs = false;
        self.0.lock().retain_mut(|(fault, remaining)| {
            if *fault == event {
                *remaining -= 1;
                occurs |= *remaining == 0;
            }
            *remaining > 0
        });
        occurs
    }
}
