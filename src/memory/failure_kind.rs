//! Kinds of failures that a test injects into a device.

use std::fmt;

/// A kind of failure that [`Memory::inject_failure`](super::Memory::inject_failure) injects.
///
/// ```
/// use cortado::{Error, Memory, SimulatedDevice, memory::FailureKind};
///
/// let device = SimulatedDevice::new();
/// assert!(device.inject_failure(FailureKind::Alloc));
/// assert!(matches!(device.alloc(8), Err(Error::OutOfMemory { bytes: 8, .. })));
/// assert!(device.alloc(8).is_ok());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FailureKind {
    /// An allocation of device memory, which returns
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory).
    Alloc,
    /// An upload, which returns an error and copies nothing.
    Upload,
    /// A download, which returns an error.
    Download,
    /// The launch of a kernel, which returns an error and queues nothing.
    Launch,
    /// A kernel that was queued, and fails while it runs.
    QueuedKernel,
    /// An upload that was queued, and fails while it runs.
    QueuedUpload,
}

impl FailureKind {
    /// All kinds of failures.
    pub const ALL: [Self; 6] = [
        Self::Alloc,
        Self::Upload,
        Self::Download,
        Self::Launch,
        Self::QueuedKernel,
        Self::QueuedUpload,
    ];
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Alloc => "allocation",
            Self::Upload => "upload",
            Self::Download => "download",
            Self::Launch => "launch",
            Self::QueuedKernel => "queued kernel",
            Self::QueuedUpload => "queued upload",
        })
    }
}
