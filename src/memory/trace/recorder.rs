//! The recorder of a trace: a bounded list of spans, and the device queues that measure spans.

use super::{
    chrome,
    options::TraceOptions,
    span::{Row, Span, Work},
};
use crate::{
    atomic_fs::write_atomically, error::Result, memory::device_span::DeviceSpan, sync::Mutex,
};
use std::{
    collections::BTreeMap,
    fmt,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant, SystemTime},
};

/// A timeline of what a program does: spans of layers, kernels, transfers, waits, threads and device
/// queues. Clones of a trace share one record.
///
/// A trace records the spans of the threads on which it is [open](Self::open).
/// [`write`](Self::write) writes the spans as a file for Perfetto and `chrome://tracing`.
///
/// ```
/// use cortado::{trace::Trace, prelude::*};
///
/// let device = SimulatedDevice::new();
/// let a = Blob::<f32, _>::ones(&device, &[64, 64])?;
/// let trace = Trace::new();
/// let guard = trace.open();
/// trace.record_queue(&device)?; // a row for the device
/// matmul(&a, &a)?.to_vec()?;
/// trace.end_queues()?;
/// drop(guard);
/// let folder = tempfile::tempdir().unwrap();
/// trace.write(folder.path().join("trace.json"))?;
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone)]
pub struct Trace(Arc<Recorder>);

struct Recorder {
    options: TraceOptions,
    /// The time at which the trace was created, and the time from the origin of the trace to the
    /// creation.
    start: (Instant, Duration),
    spans: Mutex<Spans>,
    queues: Mutex<Vec<Queue>>,
}

/// The recorded spans, and the names of the threads that recorded spans.
#[derive(Default)]
struct Spans {
    spans: Vec<Span>,
    dropped: u64,
    threads: BTreeMap<u64, String>,
}

/// A device queue that measures spans.
struct Queue {
    /// Time from the origin of the trace to the start of the queue's recording.
    start: Duration,
    is_recording: bool,
    recorder: QueueRecorder,
}

/// The methods of a device that measures the spans of its queue.
pub(super) struct QueueRecorder {
    /// Name of the queue's row.
    pub(super) name: String,
    /// Calls `Memory::take_spans`.
    pub(super) take_spans: Box<dyn Fn() -> Result<Vec<DeviceSpan>> + Send + Sync>,
    /// Calls `Memory::record_spans` to end the recording.
    pub(super) end: Box<dyn Fn() -> Result<()> + Send + Sync>,
}

impl Trace {
    /// Creates an empty trace with the default [`TraceOptions`].
    pub fn new() -> Self {
        Self::with_options(TraceOptions::default())
    }

    /// Creates an empty trace.
    pub fn with_options(options: TraceOptions) -> Self {
        let since_origin = |origin| SystemTime::now().duration_since(origin).unwrap_or_default();
        let start = (Instant::now(), options.origin.map(since_origin).unwrap_or_default());
        let (spans, queues) = (Mutex::default(), Mutex::default());
        Self(Arc::new(Recorder { options, start, spans, queues }))
    }

    /// Returns whether `self` and `other` are clones of one trace.
    pub(in crate::memory) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Returns the rank of this process among the processes of a run.
    pub fn rank(&self) -> usize {
        self.0.options.rank
    }

    /// Returns the recorded spans. The spans of each row are in the order in which they ended.
    pub fn spans(&self) -> Vec<Span> {
        self.0.spans.lock().spans.clone()
    }

    /// Returns the number of recorded spans.
    pub fn span_count(&self) -> usize {
        self.0.spans.lock().spans.len()
    }

    /// Returns the number of spans that the trace has dropped because it was full.
    pub fn dropped(&self) -> u64 {
        self.0.spans.lock().dropped
    }

    /// Returns the largest number of spans that the trace keeps.
    pub fn max_spans(&self) -> usize {
        self.0.options.max_spans
    }

    /// Returns the rows of the trace with their names: first the rows of threads, then the rows of
    /// device queues.
    pub fn rows(&self) -> Vec<(Row, String)> {
        let threads = self.0.spans.lock().threads.clone();
        let threads = threads.into_iter().map(|(thread, name)| (Row::Thread(thread), name));
        let queues = self.0.queues.lock();
        let queues = queues.iter().enumerate();
        let queues = queues.map(|(index, queue)| (Row::Queue(index), queue.recorder.name.clone()));
        threads.chain(queues).collect()
    }

    /// Adds a row for a queue that has just started to record.
    pub(super) fn add_queue(&self, recorder: QueueRecorder) {
        let start = self.time(Instant::now()).unwrap_or_default();
        self.0.queues.lock().push(Queue { start, is_recording: true, recorder });
    }

    /// Waits for all queues that [`record_queue`](Self::record_queue) has added, and moves the
    /// spans of these queues to the trace.
    ///
    /// # Errors
    /// Returns the error of failed work in a queue, like
    /// [`Memory::take_spans`](crate::Memory::take_spans).
    pub fn collect(&self) -> Result<()> {
        let queues = self.0.queues.lock();
        let queues = queues.iter().enumerate();
        for (index, queue) in queues.filter(|(_, queue)| queue.is_recording) {
            let device_spans = (queue.recorder.take_spans)()?;
            let mut spans = self.0.spans.lock();
            for DeviceSpan { work, start, duration } in device_spans {
                let (work, row) = (Work::Device(work), Row::Queue(index));
                spans.push(Span { work, row, start: queue.start + start, duration }, self);
            }
        }
        Ok(())
    }

    /// Collects the spans of all queues like [`collect`](Self::collect), and ends the recording of
    /// the queues. Ends the recording even if a queue returns an error.
    ///
    /// # Errors
    /// Returns the error of failed work in a queue, like
    /// [`Memory::take_spans`](crate::Memory::take_spans).
    pub fn end_queues(&self) -> Result<()> {
        let collected = self.collect();
        let mut queues = self.0.queues.lock();
        let recording = queues.iter_mut().filter(|queue| queue.is_recording);
        let ends = recording.map(|queue| {
            queue.is_recording = false;
            (queue.recorder.end)()
        });
        ends.fold(collected, Result::and)
    }

    /// Writes the trace to the file `path`, in the format of Chrome's trace viewer: one JSON object
    /// whose member `traceEvents` has a complete event for each span. If the file exists, it is
    /// replaced atomically.
    ///
    /// # Errors
    /// Returns [`Error::Io`](crate::Error::Io) with the path if the file cannot be written.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<()> {
        write_atomically(path, self.to_json().as_bytes())
    }

    /// Returns the content of the file that [`write`](Self::write) writes.
    pub fn to_json(&self) -> String {
        let rows = self.rows();
        let spans = self.0.spans.lock();
        chrome::to_json(&self.0.options, &rows, &spans.spans, spans.dropped)
    }

    /// Records the span of `work`, which the calling thread started at `start` and has just ended.
    /// Records nothing if the work started before the trace was created.
    pub(in crate::memory) fn record(&self, start: Instant, work: Work) {
        let (end, thread) = (Instant::now(), THREAD.with(|thread| *thread));
        let Some(time) = self.time(start) else { return };
        let span = Span {
            work,
            row: Row::Thread(thread),
            start: time,
            duration: end.saturating_duration_since(start),
        };
        let mut spans = self.0.spans.lock();
        spans.threads.entry(thread).or_insert_with(thread_name);
        spans.push(span, self);
    }

    /// Returns the time from the origin of the trace to `instant`; `None` if `instant` precedes the
    /// creation of the trace.
    fn time(&self, instant: Instant) -> Option<Duration> {
        let (start, since_origin) = self.0.start;
        Some(instant.checked_duration_since(start)? + since_origin)
    }
}

impl Spans {
    fn push(&mut self, span: Span, trace: &Trace) {
        if self.spans.len() < trace.max_spans() {
            self.spans.push(span);
        } else {
            self.dropped += 1;
        }
    }
}

impl Default for Trace {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let spans = self.0.spans.lock();
        write!(f, "Trace({} spans, {} dropped)", spans.spans.len(), spans.dropped)
    }
}

thread_local! {
    /// The number of the thread, which is the same in all traces of the process.
    static THREAD: u64 = {
        static COUNT: AtomicU64 = AtomicU64::new(1);
        COUNT.fetch_add(1, Relaxed)
    };
}

/// Returns the name of the calling thread.
fn thread_name() -> String {
    thread::current().name().unwrap_or("thread").to_owned()
}
