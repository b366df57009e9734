//! Traces: timelines of what a program does, for Perfetto and `chrome://tracing`.
//!
//! - A [`Trace`] is a value that the caller opens on a thread, like a
//!   [`Ledger`](crate::ledger::Ledger). Data threads and pool threads that work for the thread
//!   record spans, too.
//! - Kernels, transfers, layers, waits and the training loop record spans themselves. With
//!   [`span`], a program adds spans of its own.
//! - [`Trace::record_queue`] adds a row with the times that a device measures.
//! - While no trace is open, the overhead per kernel call or pass of a layer is one relaxed atomic
//!   load.

mod chrome;
pub(super) mod kernel_size;
mod options;
mod queue;
pub(super) mod recorder;
pub(super) mod span;

pub(crate) use super::ledger::open_traces::start;
pub use super::ledger::open_traces::{SpanGuard, TraceGuard, span};
#[cfg(feature = "net")]
pub(crate) use super::ledger::open_traces::{SpanStart, collect, numbered_span};
pub use kernel_size::KernelSize;
pub use options::TraceOptions;
pub use recorder::Trace;
pub use span::{Pass, Row, Span, Wait, Work};
