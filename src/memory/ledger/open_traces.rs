//! The traces that are open on a thread, and the spans that the thread records in them.

use super::context::{Watch, is_watched, region_watch, with_context};
use crate::{
    host::RegionWatch,
    memory::trace::{recorder::Trace, span::Work},
};
use std::{marker::PhantomData, time::Instant};

impl Trace {
    /// Opens the trace on the calling thread until the returned guard is dropped. The trace records
    /// the spans of the calling thread, and of the threads that work for the calling thread: pool
    /// threads, and the threads of data layers and solvers that are built while the trace is open.
    /// Every open trace of a thread records each span.
    pub fn open(&self) -> TraceGuard {
        let (watch, region_watch) = (Watch::new(), region_watch());
        with_context(|context| context.traces.push(self.clone()));
        TraceGuard { trace: self.clone(), _watch: watch, _region_watch: region_watch }
    }
}

/// A guard that keeps a [`Trace`] open on the thread that opened the trace.
///
/// ```
/// use cortado::trace::{self, Trace};
///
/// let trace = Trace::new();
/// let guard = trace.open();
/// drop(trace::span("first"));
/// drop(guard);
/// drop(trace::span("second")); // after the trace is closed
/// assert_eq!(trace.spans().len(), 1);
/// ```
#[must_use = "dropping the guard closes the trace"]
#[derive(Debug)]
pub struct TraceGuard {
    trace: Trace,
    _watch: Watch,
    _region_watch: RegionWatch,
}

impl Drop for TraceGuard {
    fn drop(&mut self) {
        with_context(|context| {
            let is_this_trace = |trace: &Trace| trace.is_same(&self.trace);
            if let Some(index) = context.traces.iter().rposition(is_this_trace) {
                context.traces.remove(index);
            }
        });
    }
}

/// Starts a span of the calling thread. The open traces record the time until the returned guard is
/// dropped as a step with the name `name`.
///
/// ```
/// use cortado::trace::{self, Trace, Work};
///
/// let trace = Trace::new();
/// let _guard = trace.open();
/// {
///     let _span = trace::span("read the labels");
/// }
/// assert_eq!(trace.spans()[0].work, Work::Step { name: "read the labels", number: None });
/// ```
pub fn span(name: &'static str) -> SpanGuard {
    SpanGuard { start: start(), name, number: None }
}

/// Like [`span`], but for a step with a number, such as the number of an iteration.
#[cfg(feature = "net")]
pub(crate) fn numbered_span(name: &'static str, number: usize) -> SpanGuard {
    SpanGuard { start: start(), name, number: u64::try_from(number).ok() }
}

/// A guard for the span that [`span`] starts. The span ends when the guard is dropped.
///
/// ```
/// use cortado::trace::{self, Trace};
///
/// let trace = Trace::new();
/// let _guard = trace.open();
/// let span = trace::span("train");
/// assert_eq!(trace.spans().len(), 0);
/// drop(span);
/// assert_eq!(trace.spans().len(), 1);
/// ```
#[must_use = "dropping the guard ends the span"]
pub struct SpanGuard {
    start: SpanStart,
    name: &'static str,
    number: Option<u64>,
}

impl Drop for SpanGuard {
    fn drop(&mut self) {
        self.start.finish(|| Work::Step { name: self.name, number: self.number });
    }
}

/// The start of a span of the calling thread; `None` if no trace is open.
#[derive(Clone, Copy)]
pub(crate) struct SpanStart(Option<Instant>, PhantomData<*const ()>);

/// Starts a span of the calling thread.
#[inline]
pub(crate) fn start() -> SpanStart {
    let start = if is_watched() { with_context(|context| context.span_start()) } else { None };
    SpanStart(start, PhantomData)
}

impl SpanStart {
    /// Records the span in the open traces of the calling thread. The closure `work` returns the
    /// work that the span measures.
    #[inline]
    pub(crate) fn finish(self, work: impl FnOnce() -> Work) {
        if let Some(start) = self.0 {
            let work = work();
            with_context(|context| context.record_span(start, work));
        }
    }
}

/// Moves the spans that devices have measured to the open traces of the calling thread.
///
/// # Errors
/// Returns the error of failed work in a queue, like [`Trace::collect`].
#[cfg(feature = "net")]
pub(crate) fn collect() -> crate::error::Result<()> {
    if !is_watched() {
        return Ok(());
    }
    // Clone the traces, because `Trace::collect` may run a queue's work, which may access the
    // ledger context.
    let traces = with_context(|context| context.traces.clone());
    traces.iter().try_for_each(Trace::collect)
}
