//! Options of a trace.

use std::time::SystemTime;

/// Options of a [`Trace`](super::Trace).
///
/// ```
/// use cortado::trace::{Trace, TraceOptions};
///
/// let trace = Trace::with_options(TraceOptions { max_spans: 1, ..TraceOptions::default() });
/// let guard = trace.open();
/// for _ in 0..3 {
///     let _span = cortado::trace::span("step");
/// }
/// drop(guard);
/// assert_eq!((trace.span_count(), trace.dropped()), (1, 2));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct TraceOptions {
    /// The largest number of spans that the trace keeps. The trace counts and drops later spans.
    pub max_spans: usize,
    /// The rank of this process among the processes of a run, which is the process id in the file.
    pub rank: usize,
    /// The time from which the starts of spans are measured. If the origin is `None`, the starts
    /// are measured from the time at which the trace is created. If all processes of a run use the
    /// same origin, the spans of all their files lie on one time axis.
    pub origin: Option<SystemTime>,
}

impl Default for TraceOptions {
    /// Returns the options of the only process of a run, with at most 500 000 spans, which take
    /// about 60 MB of memory and 100 MB in a file.
    fn default() -> Self {
        Self { max_spans: 500_000, rank: 0, origin: None }
    }
}
