use super::*;
use crate::{
    data::{Record, Source, SourceRegistry},
    device::CpuDevice,
    proto::parse_text,
};
use std::thread;

/// Records of two bytes, each of which takes its time.
struct Slow(Duration);

impl Source for Slow {
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
    let mut sources = SourceRegistry::default();
    let pause = Duration::from_millis(milliseconds);
    sources.register("slow", move |_| Ok(Box::new(Slow(pause))));
    let text = format!(
        r#"{rest} layer {{ name: "ip" type: "InnerProduct" bottom: "{last}" top: "last"
           inner_product_param {{ num_output: 2 weight_filler {{ type: "xavier" }} }} }}"#
    );
    let device = CpuDevice::with_threads(1).unwrap();
    let builder = Net::<f32, _>::builder(&device).sources(sources);
    let mut net = builder.build(&parse_text(&text, "text").unwrap()).unwrap();
    report(&measure(&mut net, 12, true).unwrap(), &net.memory_use().unwrap())
}

/// Milliseconds a pass, and per cent of the time.
fn waiting(report: &str) -> Option<[f64; 2]> {
    let line = report.lines().find_map(|line| line.strip_prefix("Waiting for data: "))?;
    let line = line.strip_suffix(" % of the time").unwrap();
    let (each, share) = line.split_once(" ms a pass, ").unwrap();
    Some([each, share].map(|number| number.parse().unwrap()))
}

const DATA: &str = r#"layer { name: "x" type: "Data" top: "x"
    data_param { source: "slow:" batch_size: 3 prefetch: 2 } }"#;

#[test]
fn a_slow_source_shows() {
    let report = timed_report(DATA, "x", 5);
    let [each, share] = waiting(&report).unwrap();
    // 15 ms a batch, less the two that were ready.
    assert!(each > 10.0 && share > 90.0, "{report}");
}

#[test]
fn nothing_is_said_of_data_where_there_is_none() {
    let input = r#"layer { name: "x" type: "Input" top: "x"
        input_param { shape { dim: 3 dim: 2 } } }"#;
    let report = timed_report(input, "x", 0);
    assert!(waiting(&report).is_none() && report.contains("Forward pass: "), "{report}");
}

/// What a pass runs as one is timed as one.
#[test]
fn an_activation_is_timed_with_its_convolution() {
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
