//! Tests of training runs whose loss or weights become NaN or infinite.

use crate::command::{Folder, SOLVER};
use std::fs;

fn diverging_folder(name: &str, changes: &[(&str, &str)]) -> Folder {
    let folder = Folder::new(name);
    let mut solver = SOLVER.to_owned();
    for (from, to) in changes {
        assert!(solver.contains(from), "{from}");
        solver = solver.replace(from, to);
    }
    folder.write("solver.prototxt", solver);
    folder
}

fn snapshots(folder: &Folder) -> Vec<String> {
    let files = fs::read_dir(folder.path("")).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.filter(|name| name.ends_with(".caffemodel")).collect();
    names.sort();
    names
}

#[test]
fn nan_weights_stop_training_and_keep_the_last_snapshot() {
    // With these changes, the learning rate exceeds the range of `f32` from iteration 5 on, so
    // training diverges.
    let changes = [
        ("lr_policy: \"inv\"", "lr_policy: \"multistep\" stepvalue: 5"),
        ("gamma: 0.0001", "gamma: 1e60"),
    ];
    let folder = diverging_folder("divergence-stop", &changes);
    let result = folder.run("train --solver solver.prototxt --log-json run.jsonl");
    result.failed_with(&[
        "iteration 6: ",
        "the loss is NaN",
        "layer `ip`, parameter `0`",
        "_nan_iter_6",
    ]);
    assert_eq!(snapshots(&folder), ["lenet_iter_4.caffemodel", "lenet_nan_iter_6.caffemodel"]);
    let log = String::from_utf8(folder.read("run.jsonl")).unwrap();
    assert!(log.contains(r#""event":"diverged""#) && log.contains(r#""layer":"ip""#), "{log}");
}

#[test]
fn nan_weights_are_found_before_a_snapshot_is_written() {
    let folder = diverging_folder(
        "divergence-snapshot",
        &[("base_lr: 0.01", "base_lr: nan"), ("max_iter: 8", "max_iter: 1")],
    );
    folder
        .run("train --solver solver.prototxt")
        .failed_with(&["iteration 1: ", "layer `ip`, parameter `0`"]);
    assert_eq!(snapshots(&folder), ["lenet_nan_iter_1.caffemodel"]);
}

#[test]
fn training_continues_after_nan_if_the_user_asks_for_it() {
    let folder = diverging_folder("divergence-warn", &[("base_lr: 0.01", "base_lr: nan")]);
    let result = folder.run("train --solver solver.prototxt --on-nan warn").succeeded();
    let warnings: Vec<_> =
        result.log.iter().filter(|line| line.contains("NaN or infinite value")).collect();
    assert_eq!(warnings.len(), 1, "{result:#?}");
    assert!(
        result.log.iter().any(|line| line.ends_with("loss = -nan") || line.ends_with("loss = nan")),
        "{result:#?}"
    );
    let result = folder.run("train --solver solver.prototxt --on-nan ignore").succeeded();
    assert!(!result.log.iter().any(|line| line.contains("NaN or infinite value")), "{result:#?}");
}
