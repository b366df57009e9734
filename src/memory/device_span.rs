//! Times at which a device executed queued work.

use super::ledger::KernelCall;
use std::{fmt, time::Duration};

/// The time span in which a device executed one kernel or transfer of a queue, measured by the
/// device. [`Memory::record_spans`](crate::Memory::record_spans) starts a recording, and
/// [`Memory::take_spans`](crate::Memory::take_spans) returns the recorded spans.
///
/// ```
/// use cortado::{memory::DeviceWork, prelude::*};
///
/// let device = SimulatedDevice::new();
/// let x = Blob::from_slice(&device, &[2], &[1.0f32, 2.0])?;
/// assert!(device.record_spans(true)?);
/// x.scale_data(2.0)?;
/// let [upload, kernel] = &device.take_spans()?[..] else { panic!("two spans") };
/// assert_eq!(upload.work, DeviceWork::Upload { bytes: 8 });
/// assert!(upload.start + upload.duration <= kernel.start);
/// assert!(matches!(kernel.work, DeviceWork::Kernel { call, .. } if call.name == "scal"));
/// device.record_spans(false)?;
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceSpan {
    /// The kernel or transfer that the device executed.
    pub work: DeviceWork,
    /// Time from the start of the recording to the start of the execution.
    pub start: Duration,
    /// Duration of the execution.
    pub duration: Duration,
}

/// A unit of a queue's work: the launch of a kernel, or a transfer.
///
/// ```
/// use cortado::memory::DeviceWork;
///
/// assert_eq!(DeviceWork::Download { bytes: 4 }.to_string(), "download of 4 bytes");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DeviceWork {
    /// A launch. A kernel call may consist of several launches.
    Kernel {
        /// The kernel call, as the [`ledger`](crate::memory::ledger) names it.
        call: KernelCall,
        /// Name of the device's function, such as `gemm_small_f32`, or the name of the kernel if
        /// the device does not name its functions.
        function: &'static str,
    },
    /// A copy of `bytes` bytes from host to device.
    Upload {
        /// Number of bytes.
        bytes: usize,
    },
    /// A copy of `bytes` bytes from device to host.
    Download {
        /// Number of bytes.
        bytes: usize,
    },
}

impl fmt::Display for DeviceWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kernel { call, .. } => call.fmt(f),
            Self::Upload { bytes } => write!(f, "upload of {bytes} bytes"),
            Self::Download { bytes } => write!(f, "download of {bytes} bytes"),
        }
    }
}
