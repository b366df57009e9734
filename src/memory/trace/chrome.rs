//! The file format of Chrome's trace viewer, which Perfetto also opens.
//!
//! "Trace Event Format" by Google specifies the format: a JSON object with the member
//! `traceEvents`, an array of events. A complete event (`"ph":"X"`) has the time `ts` and the
//! duration `dur` in microseconds. A metadata event (`"ph":"M"`) names a process or a thread.

use super::{
    options::TraceOptions,
    span::{Row, Span, Work},
};
use crate::memory::{device_span::DeviceWork, ledger::KernelCall};
use std::{
    fmt::{self, Display, Write},
    time::Duration,
};

/// Thread id of the first device queue, above the numbers of all threads of the process.
const FIRST_QUEUE_ID: u64 = 1_000_000;

/// Returns the content of a trace file.
pub(super) fn to_json(
    options: &TraceOptions,
    rows: &[(Row, String)],
    spans: &[Span],
    dropped: u64,
) -> String {
    let (rank, limit) = (options.rank, options.max_spans);
    let mut json = format!(
        "{{\"displayTimeUnit\":\"ms\",\"otherData\":{{\"program\":\"cortado {}\",\
         \"max_spans\":{limit},\"dropped_spans\":{dropped}}},\"traceEvents\":[\n",
        env!("CARGO_PKG_VERSION")
    );
    let mut events = Events { json: &mut json, rank };
    events.name("process_name", 0, &format!("cortado, process {rank}"));
    for (row, name) in rows {
        events.name("thread_name", row.id(), name);
    }
    for span in spans {
        events.span(span);
    }
    json.push_str("\n]}\n");
    json
}

/// The events of a file, all with the process id `rank`.
struct Events<'a> {
    json: &'a mut String,
    rank: usize,
}

impl Events<'_> {
    /// Writes the start of an event: its phase, process and thread.
    fn start(&mut self, phase: char, thread: u64) {
        // A comma precedes every event except the first, which follows the opening bracket and a
        // line break.
        if !self.json.ends_with("[\n") {
            self.json.push_str(",\n");
        }
        let rank = self.rank;
        self.write(format_args!("{{\"ph\":\"{phase}\",\"pid\":{rank},\"tid\":{thread},\"name\":"));
    }

    /// Writes the metadata event `kind`, which names a process or a thread.
    fn name(&mut self, kind: &str, thread: u64, name: &str) {
        self.start('M', thread);
        self.write(format_args!("{},\"args\":{{\"name\":{}}}}}", Text(kind), Text(name)));
    }

    fn span(&mut self, span: &Span) {
        self.start('X', span.row.id());
        self.write(format_args!(
            "{},\"cat\":\"{}\",\"ts\":{},\"dur\":{},\"args\":{{",
            Text(&span.work),
            category(&span.work),
            Microseconds(span.start),
            Microseconds(span.duration)
        ));
        self.arguments(&span.work);
        self.json.push_str("}}");
    }

    fn arguments(&mut self, work: &Work) {
        match work {
            Work::Layer { name, fused, pass } => {
                self.write(format_args!("\"layer\":{},\"pass\":\"{pass}\"", Text(name)));
                if let Some(fused) = fused {
                    self.write(format_args!(",\"fused\":{}", Text(fused)));
                }
            }
            Work::Kernel { call, is_fallback, size } => {
                self.call(call);
                self.write(format_args!(",\"fallback\":{is_fallback}"));
                if let Some(size) = size {
                    let (operands, bytes) = (Text(&size.operands), size.bytes);
                    self.write(format_args!(",\"operands\":{operands},\"bytes\":{bytes}"));
                    if !size.shape.is_empty() {
                        self.write(format_args!(",\"shape\":{}", Text(&size.shape)));
                    }
                    if let Some(flops) = size.flops {
                        self.write(format_args!(",\"flops\":{flops}"));
                    }
                }
            }
            Work::Transfer { bytes, device, memory, cause, .. } => {
                self.call(cause);
                self.write(format_args!(",\"bytes\":{bytes},\"device\":{}", Text(device)));
                if let Some(memory) = memory {
                    self.write(format_args!(",\"memory\":{}", Text(memory)));
                }
            }
            Work::Region { kernel: Some(call) } => self.call(call),
            Work::Device(DeviceWork::Kernel { call, .. }) => self.call(call),
            Work::Device(DeviceWork::Upload { bytes } | DeviceWork::Download { bytes }) => {
                self.write(format_args!("\"bytes\":{bytes}"));
            }
            Work::Step { number: Some(number), .. } => {
                self.write(format_args!("\"number\":{number}"));
            }
            Work::Region { kernel: None } | Work::Wait(_) | Work::Step { number: None, .. } => {}
        }
    }

    fn call(&mut self, call: &KernelCall) {
        let site = format_args!("{}:{}", call.site.file(), call.site.line());
        if !call.name.is_empty() {
            self.write(format_args!(
                "\"kernel\":{},\"element\":{},",
                Text(call.name),
                Text(call.element)
            ));
        }
        self.write(format_args!("\"site\":{}", Text(site)));
    }

    fn write(&mut self, text: fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = self.json.write_fmt(text);
    }
}

impl Row {
    /// Returns the thread id of the row in a trace file.
    fn id(self) -> u64 {
        match self {
            Self::Thread(thread) => thread,
            Self::Queue(index) => FIRST_QUEUE_ID + index as u64,
        }
    }
}

/// Returns the category of a span, by which viewers filter and colour spans.
fn category(work: &Work) -> &'static str {
    match work {
        Work::Layer { .. } => "layer",
        Work::Kernel { is_fallback: false, .. } => "kernel",
        Work::Kernel { is_fallback: true, .. } => "fallback",
        Work::Transfer { .. } => "transfer",
        Work::Wait(_) => "wait",
        Work::Region { .. } => "thread",
        Work::Device(_) => "device",
        Work::Step { .. } => "step",
    }
}

/// A duration, formatted in microseconds with three decimals.
struct Microseconds(Duration);

impl Display for Microseconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanoseconds = self.0.as_nanos();
        write!(f, "{}.{:03}", nanoseconds / 1000, nanoseconds % 1000)
    }
}

/// A text, formatted as a JSON string.
struct Text<D>(D);

impl<D: Display> Display for Text<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        write!(Escape(f), "{}", self.0)?;
        f.write_char('"')
    }
}

/// Escapes the characters that RFC 8259 forbids in JSON strings.
struct Escape<'a, 'f>(&'a mut fmt::Formatter<'f>);

impl Write for Escape<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        text.chars().try_for_each(|c| match c {
            '"' | '\\' => write!(self.0, "\\{c}"),
            '\0'..='\x1f' => write!(self.0, "\\u{:04x}", u32::from(c)),
            _ => self.0.write_char(c),
        })
    }
}
