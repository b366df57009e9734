//! Traces: timelines of what a program does, for Perfetto and `chrome://tracing`.
//!
//! - A [`Trace`] is a value that the caller opens on a thread, like a
//!   [`Ledger`](crate::ledger::Ledger). Data threads and pool threads that work for the thread
//!   record spans, too.
//! - Kernels, transfers, layers, waits and the training loop record spans themselves. [`span`] adds
//!   a span of the program.
//! - [`Trace::record_queue`] adds a row with the times that a device measures.
//! - While no trace is open, a kernel call or a pass of a layer costs one relaxed atomic load.

mod chrome;
mod options;
mod queue;
pub(super) mod recorder;
pub(super) mod span;

pub(crate) use super::ledger::open_traces::start;
pub use super::ledger::open_traces::{SpanGuard, TraceGuard, span};
#[cfg(feature = "net")]
pub(crate) use super::ledger::open_traces::{SpanStart, collect, numbered_span};
pub use options::TraceOptions;
pub use recorder::Trace;
pub use span::{Pass, Row, Span, Wait, Work};
