//! Tests of the flag `--trace`.

use crate::command::{Folder, SOLVER};
use serde_json::Value;
use std::collections::BTreeSet;

/// Returns the names of the complete events in the file `trace.json`.
fn event_names(folder: &Folder) -> BTreeSet<String> {
    let file: Value = serde_json::from_slice(&folder.read("trace.json")).unwrap();
    let events = file["traceEvents"].as_array().unwrap().iter();
    let events = events.filter(|event| event["ph"] == "X");
    events.map(|event| event["name"].as_str().unwrap().to_owned()).collect()
}

fn assert_contains(names: &BTreeSet<String>, expected: &[&str]) {
    assert!(expected.iter().all(|name| names.contains(*name)), "{expected:?}: {names:?}");
}

#[test]
fn train_test_and_time_write_timelines() {
    let folder = Folder::new("trace");
    let train = "train --solver solver.prototxt --device simulated --trace trace.json";
    let result = folder.run(train).succeeded();
    assert!(result.log.iter().any(|line| line.contains("spans to trace.json")), "{result:#?}");
    let steps = ["iteration 7", "ip forward", "ip backward", "solver update", "snapshot"];
    assert_contains(&event_names(&folder), &steps);
    assert_contains(&event_names(&folder), &["test of test net 0", "upload", "gemm"]);

    let weights = "--model net.prototxt --weights lenet_iter_8.caffemodel";
    folder.run(&format!("test {weights} --iterations 3 --trace trace.json")).succeeded();
    assert_contains(&event_names(&folder), &["batch 2", "accuracy forward", "wait for a batch"]);

    let time = "time --model net.prototxt --iterations 2 --trace trace.json";
    folder.run(time).succeeded();
    assert_contains(&event_names(&folder), &["ip backward", "wait for the device"]);
    let result = folder.run(&format!("{time} --trace-limit 20")).succeeded();
    let warning = result.log.iter().find(|line| line.starts_with("--trace: the timeline lacks"));
    assert!(warning.is_some_and(|line| line.ends_with("which was 20")), "{result:#?}");
}

#[test]
fn a_failed_run_writes_its_timeline() {
    let folder = Folder::new("trace-failure");
    folder.write_replaced("solver.prototxt", SOLVER, "base_lr: 0.01", "base_lr: nan");
    folder.run("train --solver solver.prototxt --trace trace.json").failed_with(&["NaN"]);
    assert_contains(&event_names(&folder), &["ip forward", "solver update"]);
    // The command finds out before training that it cannot write the file.
    let result = folder.run("train --solver solver.prototxt --trace missing/trace.json");
    result.failed_with(&["missing/trace.json"]);
    assert!(!result.log.iter().any(|line| line.contains("Iteration")), "{result:#?}");
}
