//! Spans of a trace: what a thread or a device queue did, and when.

use super::kernel_size::KernelSize;
use crate::memory::{
    device_span::DeviceWork,
    ledger::{EventKind, KernelCall},
};
use std::{fmt, sync::Arc, time::Duration};

/// The time span of one piece of work on one row of a [`Trace`](super::Trace).
///
/// ```
/// use cortado::{trace::{Trace, Work}, prelude::*};
///
/// let trace = Trace::new();
/// let x = Blob::from_slice(&SimulatedDevice::new(), &[2], &[1.0f32, 2.0])?;
/// let guard = trace.open();
/// x.scale_data(2.0)?;
/// drop(guard);
/// // A span ends before the spans that contain it, so the upload precedes its kernel.
/// let [upload, kernel] = &trace.spans()[..] else { panic!("two spans") };
/// assert!(matches!(upload.work, Work::Transfer { bytes: 8, .. }));
/// assert!(matches!(kernel.work, Work::Kernel { call, .. } if call.name == "scal"));
/// assert!(kernel.start <= upload.start && upload.end() <= kernel.end());
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    /// The work that the span measures.
    pub work: Work,
    /// The row of the span.
    pub row: Row,
    /// Time from the origin of the trace to the start of the work.
    pub start: Duration,
    /// Duration of the work.
    pub duration: Duration,
}

impl Span {
    /// Returns the time from the origin of the trace to the end of the work.
    pub fn end(&self) -> Duration {
        self.start + self.duration
    }
}

/// A row of a trace. The spans of a thread are nested or disjoint, and those of a queue are
/// disjoint.
///
/// ```
/// use cortado::trace::{self, Row, Trace};
///
/// let trace = Trace::new();
/// let guard = trace.open();
/// drop(trace::span("here"));
/// drop(guard);
/// assert!(matches!(trace.spans()[0].row, Row::Thread(number) if number >= 1));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Row {
    /// A thread of this process. The numbers of threads start at 1.
    Thread(u64),
    /// A device queue. The numbers of queues start at 0, in the order of the calls of
    /// [`Trace::record_queue`](super::Trace::record_queue).
    Queue(usize),
}

/// The work that a [`Span`] measures. Its text is the name that the timeline shows.
///
/// ```
/// use cortado::trace::Work;
///
/// let step = Work::Step { name: "iteration", number: Some(7) };
/// assert_eq!(step.to_string(), "iteration 7");
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Work {
    /// A pass of a layer.
    Layer {
        /// Name of the layer.
        name: Arc<str>,
        /// Name of the activation layer that is fused into this layer, if any.
        fused: Option<Arc<str>>,
        /// Direction of the pass.
        pass: Pass,
    },
    /// A kernel call, as the [`ledger`](crate::ledger) names it. On a device with a queue, the call
    /// only queues the kernel.
    Kernel {
        /// Name, element type and call site of the kernel.
        call: KernelCall,
        /// Whether the kernel ran on the host because the device does not override the kernel.
        is_fallback: bool,
        /// The size of the call; `None` if the kernel was not called through an
        /// [`AnyDevice`](crate::AnyDevice), or is a part of another kernel.
        size: Option<Arc<KernelSize>>,
    },
    /// A copy between host and device. If the copy waits for earlier work of the queue, the span
    /// includes the wait.
    Transfer {
        /// Direction of the copy: upload or download.
        kind: EventKind,
        /// Bytes copied.
        bytes: u64,
        /// Name of the device.
        device: Arc<str>,
        /// Name of the memory ([`SyncedMemory::set_name`](crate::SyncedMemory::set_name)), such as
        /// the name of a net's blob, if it has one.
        memory: Option<Arc<str>>,
        /// The kernel call that needed the copy. The name is empty for a memory access outside of
        /// kernels.
        cause: KernelCall,
    },
    /// A wait of a thread.
    Wait(Wait),
    /// A thread's part of the work of a parallel region.
    Region {
        /// The kernel call whose work the thread did; `None` outside of kernels.
        kernel: Option<KernelCall>,
    },
    /// Work of a device queue, measured by the device.
    Device(DeviceWork),
    /// A step of a program or of the training loop, such as `solver update`.
    Step {
        /// Name of the step.
        name: &'static str,
        /// Number of the step, such as the number of an iteration.
        number: Option<u64>,
    },
}

/// The direction of a layer's pass.
///
/// ```
/// use cortado::trace::{Pass, Work};
///
/// let work = Work::Layer { name: "conv1".into(), fused: None, pass: Pass::Backward };
/// assert_eq!(work.to_string(), "conv1 backward");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Pass {
    /// The forward pass.
    Forward,
    /// The backward pass.
    Backward,
}

/// The event for which a thread waits.
///
/// ```
/// use cortado::trace::{Wait, Work};
///
/// assert_eq!(Work::Wait(Wait::Batch).to_string(), "wait for a batch");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Wait {
    /// A net waits until the queue of its device is empty.
    Device,
    /// A data layer waits for its next batch.
    Batch,
    /// A prefetch thread waits for records.
    Records,
    /// A reader or prefetch thread waits until the consumer returns a buffer.
    Buffer,
    /// A solver waits for other processes.
    Processes,
}

impl fmt::Display for Pass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Forward => "forward",
            Self::Backward => "backward",
        })
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Device => "wait for the device",
            Self::Batch => "wait for a batch",
            Self::Records => "wait for records",
            Self::Buffer => "wait for a free buffer",
            Self::Processes => "wait for other processes",
        })
    }
}

/// Formats the name of the work, as the timeline shows it.
impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Layer { name, fused: None, pass } => write!(f, "{name} {pass}"),
            Self::Layer { name, fused: Some(fused), pass } => write!(f, "{name} + {fused} {pass}"),
            Self::Kernel { call, .. } => f.write_str(call.name),
            Self::Transfer { kind, .. } => kind.fmt(f),
            Self::Wait(wait) => wait.fmt(f),
            Self::Region { kernel: Some(call) } => write!(f, "part of {}", call.name),
            Self::Region { kernel: None } => f.write_str("part of a parallel region"),
            Self::Device(DeviceWork::Kernel { function, .. }) => f.write_str(function),
            Self::Device(DeviceWork::Upload { .. }) => f.write_str("upload"),
            Self::Device(DeviceWork::Download { .. }) => f.write_str("download"),
            Self::Step { name, number: None } => f.write_str(name),
            Self::Step { name, number: Some(number) } => write!(f, "{name} {number}"),
        }
    }
}
