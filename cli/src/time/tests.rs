use super::*;
use cortado::{
    bench_kit::{Level, Limits},
    data::{Record, Source, SourceRegistry},
    device::{CpuDevice, Device, SimulatedDevice},
    proto::parse_text,
};
use std::{thread, time::Duration};

/// Source of two-byte records, which sleeps for the given time before it returns a record.
struct SlowSource(Duration);

impl Source for SlowSource {
    fn describe(&self) -> String {
        "slow".into()
    }
    fn records(&self) -> Option<u64> {
        None
    }
    fn read(&mut self, record: &mut Record) -> Result<()> {
        thread::sleep(self.0);
        record.bytes_mut([1, 1, 2])?.fill(1);
        Ok(())
    }
}

fn timed_report(rest: &str, last: &str, milliseconds: u64) -> String {
    timed_report_on(&CpuDevice::with_threads(1).unwrap(), rest, last, milliseconds)
}

fn timed_report_on<D: Device>(device: &D, rest: &str, last: &str, milliseconds: u64) -> String {
    let mut sources = SourceRegistry::default();
    let pause = Duration::from_millis(milliseconds);
    sources.register("slow", move |_| Ok(Box::new(SlowSource(pause))));
    let text = format!(
        r#"{rest} layer {{ name: "ip" type: "InnerProduct" bottom: "{last}" top: "last"
           inner_product_param {{ num_output: 2 weight_filler {{ type: "xavier" }} }} }}"#
    );
    let builder = Net::<f32>::builder(device).sources(sources);
    let mut net = builder.build(&parse_text(&text, "text").unwrap()).unwrap();
    report(&measure(&mut net, 12, true, &|| Ok(())).unwrap(), &net.memory_use().unwrap(), None)
}

/// Parses the wait for data in a report of `cortado time`: milliseconds per pass, and percentage of
/// the time.
fn data_wait(report: &str) -> Option<[f64; 2]> {
    let line = report.lines().find_map(|line| line.strip_prefix("Waiting for data: "))?;
    let line = line.strip_suffix(" % of the time").unwrap();
    let (each, share) = line.split_once(" ms per pass, ").unwrap();
    Some([each, share].map(|number| number.parse().unwrap()))
}

const SLOW_DATA_LAYER: &str = r#"layer { name: "x" type: "Data" top: "x"
    data_param { source: "slow:" batch_size: 3 prefetch: 2 } }"#;

#[test]
fn a_slow_source_appears_as_wait_for_data() {
    let report = timed_report(SLOW_DATA_LAYER, "x", 5);
    let [each, share] = data_wait(&report).unwrap();
    // Each pass waits 15 ms for its batch, except for the two batches that were prefetched.
    assert!(each > 10.0 && share > 90.0, "{report}");
}

#[test]
fn a_net_without_data_layers_reports_no_wait() {
    let input = r#"layer { name: "x" type: "Input" top: "x"
        input_param { shape { dim: 3 dim: 2 } } }"#;
    let report = timed_report(input, "x", 0);
    assert!(data_wait(&report).is_none() && report.contains("Forward pass: "), "{report}");
}

#[test]
fn the_report_has_the_number_of_parameters_of_each_layer() {
    let input = r#"layer { name: "x" type: "Input" top: "x"
        input_param { shape { dim: 3 dim: 2 } } }"#;
    let report = timed_report(input, "x", 0);
    let end = report.lines().next().unwrap().find("parameters").unwrap() + "parameters".len();
    // The widths of columns count characters, and the tops contain `×`.
    let until_end = |name| {
        let line = report.lines().find(|line| line.starts_with(name)).unwrap();
        line.chars().take(end).collect::<String>()
    };
    // Two inputs for each of the two outputs, and two biases.
    assert!(until_end("ip ").ends_with(" 6"), "{report}");
    assert!(until_end("x ").ends_with("  "), "{report}");
}

/// The simulated device measures the times of its kernels, and the CPU does not.
#[test]
fn the_report_has_the_times_that_the_device_measures() {
    let input = r#"layer { name: "x" type: "Input" top: "x"
        input_param { shape { dim: 3 dim: 2 } } }"#;
    let device = SimulatedDevice::with_threads(1).unwrap();
    let report = timed_report_on(&device, input, "x", 0);
    let header = report.lines().next().unwrap();
    assert_eq!(header.matches("device ms").count(), 2, "{report}");
    let row = |name| report.lines().find(|line| line.starts_with(name)).unwrap();
    let on_device = row("ip ").split_whitespace().nth(5).unwrap();
    assert!(on_device.parse::<f64>().is_ok(), "{report}");
    let gemm: Vec<_> = row("gemm ").split_whitespace().take(4).collect();
    assert_eq!(gemm, ["gemm", "f32", "gemm", "1"], "{report}");
    assert!(!timed_report(input, "x", 0).contains("device ms"));
}

#[test]
fn a_fused_activation_is_timed_with_its_convolution() {
    let convolution = r#"layer { name: "x" type: "Input" top: "x"
        input_param { shape { dim: 1 dim: 1 dim: 4 dim: 4 } } }
        layer { name: "conv" type: "Convolution" bottom: "x" top: "c"
        convolution_param { num_output: 2 kernel_size: 3 weight_filler { type: "xavier" } } }"#;
    let forward = |top: &str| {
        let relu = r#"layer { name: "relu" type: "ReLU" bottom: "c" top: "#;
        let report = timed_report(&format!(r#"{convolution} {relu}"{top}" }}"#), top, 0);
        let row = report.lines().find(|line| line.starts_with("relu ")).unwrap();
        row.split_whitespace().nth(3).unwrap().to_owned()
    };
    assert_eq!(forward("c"), "above");
    assert!(forward("y").parse::<f64>().is_ok());
}

#[test]
fn the_roofline_counts_the_work_of_each_pass_and_its_least_time() {
    let device = CpuDevice::with_threads(1).unwrap();
    let text = r#"layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 3 dim: 4 } } }
        layer { name: "ip" type: "InnerProduct" bottom: "x" top: "y" inner_product_param {
            num_output: 2 weight_filler { type: "xavier" } } }
        layer { name: "sigmoid" type: "Sigmoid" bottom: "y" top: "z" }"#;
    let mut net = Net::<f32>::builder(&device).build(&parse_text(text, "text").unwrap()).unwrap();
    let times = measure(&mut net, 3, true, &|| Ok(())).unwrap();
    let level = Level { name: "memory".into(), capacity: u64::MAX, bandwidth: 2e9 };
    let limits = Limits {
        device: "cpu (1 thread)".into(),
        flops: vec![("f32".into(), 1e9)],
        levels: vec![level],
    };
    let roofline = Roofline::measure(&mut net, "net", &times.rows, true, limits).unwrap();
    let [product, sigmoid] = roofline.records() else { panic!("{:?}", roofline.records()) };
    // The product reads 3×4 inputs, 2×4 weights and 2 biases, and writes 3×2 sums. At 2 GB/s the
    // bytes take 56 ns, which exceeds the 48 ns of the operations at 1 GFLOP/s.
    assert_eq!((&*product.case, product.flops), ("net/ip/forward", 2 * 3 * 4 * 2));
    assert_eq!(product.bytes, 4 * (3 * 4 + 2 * 4 + 2 + 3 * 2));
    assert!((product.limit_seconds.unwrap() - 56e-9).abs() < 1e-15, "{product:?}");
    let seconds = median(&times.rows[1].forward).unwrap();
    assert!((product.seconds - seconds).abs() < 1e-9, "the clock counts nanoseconds");
    // The sigmoid reads and writes six elements.
    assert_eq!((sigmoid.flops, sigmoid.bytes), (0, 4 * 2 * 6));
    let table = roofline.table();
    assert!(table.contains("ip       forward  memory") && table.contains("GFLOP/s"), "{table}");

    let folder = std::env::temp_dir().join(format!("cortado-roofline-{}", std::process::id()));
    let page = fs::read_to_string(roofline.store(&folder).unwrap()).unwrap();
    fs::remove_dir_all(&folder).unwrap();
    assert!(
        page.contains(">layers-cpu-1-thread-net</text>") && page.contains("net/ip/forward"),
        "{page}"
    );
}
