//! Tests of traces: the spans of a training run, and the file format of Chrome's trace viewer.

use crate::{custom_backend::Remote, digits::train_digits};
use cortado::{
    CpuDevice, Device, SimulatedDevice,
    device::simulated::Fault,
    host::Workers,
    kernel::traits::*,
    ledger::{EventKind, Ledger},
    prelude::*,
    proto,
    trace::{self, Row, Span, Trace, TraceOptions, Wait, Work},
};
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    time::{Duration, SystemTime},
};

/// A complete event of a trace file. Times are in nanoseconds.
struct Event {
    name: String,
    category: String,
    row: (u64, u64),
    start: u64,
    end: u64,
    args: Value,
}

/// The decoded content of a trace file.
struct TraceFile {
    events: Vec<Event>,
    thread_names: BTreeMap<(u64, u64), String>,
    process_names: Vec<String>,
    dropped: u64,
}

impl TraceFile {
    /// Decodes `json`, and checks that each event has the fields that "Trace Event Format" requires
    /// for its phase.
    fn decode(json: &str) -> Self {
        let json: Value = serde_json::from_str(json).unwrap();
        let (mut events, mut thread_names, mut process_names) =
            (Vec::new(), BTreeMap::new(), Vec::new());
        for event in json["traceEvents"].as_array().unwrap() {
            let row = (event["pid"].as_u64().unwrap(), event["tid"].as_u64().unwrap());
            let name = event["name"].as_str().unwrap().to_owned();
            let args = event["args"].clone();
            assert!(args.is_object(), "{event}");
            match (event["ph"].as_str().unwrap(), &*name) {
                ("M", "process_name") => {
                    process_names.push(args["name"].as_str().unwrap().to_owned());
                }
                ("M", "thread_name") => {
                    let name = args["name"].as_str().unwrap().to_owned();
                    assert!(thread_names.insert(row, name).is_none(), "{row:?}");
                }
                ("X", _) => {
                    let nanoseconds = |member: &str| {
                        let microseconds = event[member].as_f64().unwrap();
                        (microseconds * 1000.0).round() as u64
                    };
                    let start = nanoseconds("ts");
                    let end = start + nanoseconds("dur");
                    let category = event["cat"].as_str().unwrap().to_owned();
                    events.push(Event { name, category, row, start, end, args });
                }
                _ => panic!("{event}"),
            }
        }
        assert!(events.iter().all(|event| thread_names.contains_key(&event.row)));
        let dropped = json["otherData"]["dropped_spans"].as_u64().unwrap();
        Self { events, thread_names, process_names, dropped }
    }

    fn of_category(&self, category: &str) -> Vec<&Event> {
        self.events.iter().filter(|event| event.category == category).collect()
    }

    /// Asserts that any two events of a row are nested or disjoint.
    fn assert_nested(&self) {
        let mut rows: BTreeMap<_, Vec<&Event>> = BTreeMap::new();
        for event in &self.events {
            rows.entry(event.row).or_default().push(event);
        }
        for (row, mut events) in rows {
            events.sort_by_key(|event| (event.start, std::cmp::Reverse(event.end)));
            let mut open: Vec<&Event> = Vec::new();
            for event in events {
                while open.last().is_some_and(|outer| outer.end <= event.start) {
                    open.pop();
                }
                if let Some(outer) = open.last() {
                    let names = (&outer.name, &event.name);
                    assert!(event.end <= outer.end, "{row:?}: {names:?} overlap");
                }
                open.push(event);
            }
        }
    }
}

/// Returns the names of the layers of the digits example in the phase TRAIN.
fn layer_names() -> BTreeSet<String> {
    let net = proto::read_net("examples/digits/lenet.prototxt").unwrap();
    let is_test_layer = |layer: &proto::LayerParameter| {
        layer.include.iter().any(|rule| rule.phase.is_some() && rule.phase() == proto::Phase::Test)
    };
    let layers = net.layer.iter().filter(|layer| !is_test_layer(layer));
    layers.map(|layer| layer.name().to_owned()).collect()
}

#[test]
fn a_trace_of_lenet_training_matches_the_counters_the_ledger_and_the_net() {
    const ITERATIONS: usize = 4; // of `train_digits`
    let device = SimulatedDevice::with_threads(2).unwrap();
    let (trace, ledger) = (Trace::new(), Ledger::new());
    let before = device.counters();
    {
        let _guards = (trace.open(), ledger.open());
        assert!(trace.record_queue(&device).unwrap());
        train_digits(&device).unwrap();
        trace.end_queues().unwrap();
    }
    let after = device.counters();
    let file = TraceFile::decode(&trace.to_json());
    assert_eq!((file.dropped, trace.dropped()), (0, 0));
    assert_eq!(file.process_names, ["cortado, process 0"]);
    file.assert_nested();

    // Every kernel call has one span on the thread that called the kernel, and one span on the
    // queue. The expected number comes from the device's own counter.
    let kernels = usize::try_from(after.kernels - before.kernels).unwrap();
    let on_queue = |event: &&&Event| event.args.get("kernel").is_some();
    assert_eq!(file.of_category("kernel").len(), kernels);
    assert_eq!(file.of_category("device").iter().filter(on_queue).count(), kernels);
    assert!(file.of_category("fallback").is_empty());

    // The trace has the same transfers and bytes as the ledger, and as many uploads as the device
    // counts.
    let transfers = file.of_category("transfer");
    for kind in [EventKind::Upload, EventKind::Download] {
        let copies: Vec<_> =
            transfers.iter().filter(|event| event.name == kind.to_string()).collect();
        let bytes: u64 = copies.iter().map(|event| event.args["bytes"].as_u64().unwrap()).sum();
        let total = ledger.total(kind);
        assert_eq!((copies.len() as u64, bytes), (total.count, total.bytes), "{kind}");
        assert!(bytes > 0);
        if kind == EventKind::Upload {
            assert_eq!(copies.len() as u64, after.uploads - before.uploads);
        }
    }
    assert!(transfers.iter().all(|event| event.args["device"] == "simulated"));
    let has_site =
        |event: &&Event| event.args["site"].as_str().is_some_and(|site| site.contains(".rs:"));
    assert!(transfers.iter().all(has_site) && file.of_category("kernel").iter().all(has_site));

    // Every kernel call has a size, except the broadcasts and activations that are parts of
    // `gemm_with_bias`, whose size is that of its GEMM. The convolutions of LeNet have 20 outputs of 24×24 elements with
    // 25 taps, and 50 outputs of 8×8 elements with 500 taps. The backward passes compute the
    // gradients of both filters and of the second convolution's input. The batch has 8 images.
    let kernels = file.of_category("kernel");
    let without_size = kernels.iter().filter(|event| event.args["bytes"].as_u64().is_none());
    let without_size: BTreeSet<&str> = without_size.map(|event| &*event.name).collect();
    let parts = BTreeSet::from(["broadcast", "unary_relu"]);
    assert!(without_size.is_subset(&parts), "{without_size:?}");
    let convolutions = kernels.iter().filter(|event| event.name.starts_with("convolve"));
    let flops: u64 = convolutions.map(|event| event.args["flops"].as_u64().unwrap()).sum();
    let [first, second] = [2 * 20 * 24 * 24 * 25, 2 * 50 * 8 * 8 * 500];
    assert_eq!(flops, (ITERATIONS * 8 * (2 * first + 3 * second)) as u64);

    // The input of the first convolution has one channel of 28×28 elements, and the last matrix
    // product computes the scores of ten classes.
    let shape = |kernel: &str, shape: &str| {
        let mut events = kernels.iter().filter(|event| event.name.starts_with(kernel));
        events.any(|event| event.args["shape"] == shape)
    };
    let first = "images: 8, outputs: 20, groups: 1, channels: 1, input: 28×28, kernel: 5×5, \
                 stride: 1×1, pad: 0×0, dilation: 1×1";
    assert!(shape("convolve", first) && shape("gemm", "m: 8, n: 10, k: 500"));
    let pool = "planes: 160, input: 24×24, kernel: 2×2, stride: 2×2, pad: 0×0";
    assert!(shape("max_pool", pool) && shape("softmax", "outer: 8, extent: 10, inner: 1"));

    // The uploads of parameters and of batches name their memories.
    let names: BTreeSet<_> =
        transfers.iter().filter_map(|event| event.args["memory"].as_str()).collect();
    assert!(names.contains("parameter 0 of conv1"), "{names:?}");

    // Each layer has a forward pass per iteration, alone or fused into the preceding layer.
    let mut forward: BTreeMap<String, usize> = BTreeMap::new();
    for event in file.of_category("layer") {
        if event.args["pass"] == "forward" {
            for name in [&event.args["layer"], &event.args["fused"]] {
                *forward.entry(name.as_str().unwrap_or_default().to_owned()).or_default() += 1;
            }
        }
    }
    forward.remove(""); // layers without a fused activation
    assert_eq!(forward.keys().cloned().collect::<BTreeSet<_>>(), layer_names());
    assert!(forward.values().all(|&count| count == ITERATIONS), "{forward:?}");

    // Each iteration has one solver update, whose span lies within the span of the iteration.
    let iterations: Vec<_> =
        file.events.iter().filter(|event| event.name.starts_with("iteration ")).collect();
    assert_eq!(iterations.len(), ITERATIONS);
    let updates = file.events.iter().filter(|event| event.name == "solver update");
    let iterations_around = |event: &Event| {
        let is_around = |outer: &&&Event| {
            outer.row == event.row && outer.start <= event.start && event.end <= outer.end
        };
        iterations.iter().filter(is_around).count()
    };
    assert_eq!(updates.map(iterations_around).collect::<Vec<_>>(), [1; ITERATIONS]);

    // The threads of the data layer and the queue have rows of their own.
    let names: BTreeSet<&str> = file.thread_names.values().map(|name| &**name).collect();
    for name in ["cortado-data", "cortado-read", "queue of simulated"] {
        assert!(names.contains(name), "{names:?}");
    }
    let waits = file.of_category("wait");
    let waits_for_batches = waits.iter().filter(|event| event.name == Wait::Batch.to_string());
    assert_eq!(waits_for_batches.count(), ITERATIONS);
    assert!(!file.of_category("thread").is_empty());
}

#[test]
fn kernels_are_fallbacks_exactly_on_a_device_without_native_kernels() {
    fn count(device: &impl Device) -> ([usize; 2], u64) {
        let (trace, ledger) = (Trace::new(), Ledger::new());
        let x = Blob::from_slice(device, &[4], &[1.0f32, 2.0, 3.0, 4.0]).unwrap();
        let _guards = (trace.open(), ledger.open());
        x.apply(Unary::Sqr).unwrap().sum(0).unwrap();
        x.scale_data(2.0).unwrap();
        let kinds = [true, false].map(|expected| {
            let is_kind = |span: &&Span| {
                matches!(span.work, Work::Kernel { is_fallback, .. } if is_fallback == expected)
            };
            trace.spans().iter().filter(is_kind).count()
        });
        (kinds, ledger.total(EventKind::Fallback).count)
    }
    assert_eq!(count(&Remote), ([3, 0], 3));
    assert_eq!(count(&SimulatedDevice::new()), ([0, 3], 0));
    assert_eq!(count(&CpuDevice::with_threads(1).unwrap()), ([0, 3], 0));
}

#[test]
fn each_thread_of_a_parallel_region_has_a_row() {
    let (workers, trace, joined) = (Workers::new(2).unwrap(), Trace::new(), AtomicUsize::new(0));
    let guard = trace.open();
    workers.run(2, |_| {
        joined.fetch_add(1, Relaxed);
        while joined.load(Relaxed) < 2 {
            std::thread::yield_now(); // each thread takes one task
        }
    });
    drop(guard);
    workers.run(2, |_| ()); // after the trace is closed
    let rows: BTreeSet<Row> = trace.spans().iter().map(|span| span.row).collect();
    assert_eq!((trace.spans().len(), rows.len()), (2, 2));
    assert!(trace.rows().iter().any(|(_, name)| name == "cortado-0"), "{:?}", trace.rows());
    assert!(trace.spans().iter().all(|span| span.work == Work::Region { kernel: None }));
}

#[test]
fn names_with_special_characters_are_escaped() {
    let trace = Trace::new();
    let guard = trace.open();
    let name = "say \"hi\"\n\u{1}\\ µ";
    drop(trace::span(name));
    drop(guard);
    assert_eq!(TraceFile::decode(&trace.to_json()).events[0].name, name);
}

#[test]
fn spans_of_a_process_count_from_the_origin_of_the_run() {
    let origin = Some(SystemTime::now() - Duration::from_secs(5));
    let trace = Trace::with_options(TraceOptions { rank: 3, origin, max_spans: 2 });
    let guard = trace.open();
    (0..5).for_each(|_| drop(trace::span("step")));
    drop(guard);
    let file = TraceFile::decode(&trace.to_json());
    assert_eq!((file.events.len(), file.dropped), (2, 3));
    assert_eq!(file.process_names, ["cortado, process 3"]);
    assert!(file.events.iter().all(|event| event.row.0 == 3 && event.start >= 5_000_000_000));
}

#[test]
fn a_failed_kernel_in_a_recorded_queue_is_returned_once() {
    let (device, trace) = (SimulatedDevice::new(), Trace::new());
    let x = Blob::from_slice(&device, &[2], &[1.0f32, 2.0]).unwrap();
    x.data().unwrap().view().device().unwrap();
    assert!(trace.record_queue(&device).unwrap());
    device.inject_fault(Fault::InFlight, 1);
    x.scale_data(2.0).unwrap();
    let error = trace.end_queues().unwrap_err().to_string();
    assert!(error.contains("scal"), "{error}");
    trace.end_queues().unwrap();
    x.scale_data(2.0).unwrap();
    assert_eq!(device.take_spans().unwrap(), [], "the recording has ended");
}
