//! Tests of the `cortado` command: training, testing, logs and snapshots.

#[cfg(unix)]
mod caffe_commands;
mod caffe_logs;
#[cfg(unix)]
mod caffe_scripts;
mod classify;
mod command;
mod convert;
#[cfg(feature = "cuda")]
#[path = "../../../tests/cuda_on_cpu/mod.rs"]
mod cuda_on_cpu;
#[path = "../../../tests/support/data_sets.rs"]
mod data_sets;
mod databases;
mod definitions;
mod detect;
mod divergence;
mod export_onnx;
mod flags;
#[cfg(feature = "cuda")]
mod gpus;
mod inspect;
#[cfg(unix)]
mod interruptions;
mod mistakes;
#[path = "../../../tests/support/optimized.rs"]
mod optimized;
mod other_subcommands;
mod records;
#[path = "../../../tests/support/mod.rs"]
mod support;
mod terminal;
mod traces;
mod upgrades;

use command::{Folder, NET, RunResult, SOLVER, message, shape};
use optimized::optimized;
use std::{collections::BTreeSet, fs};
use support::testdata;

/// Log line with the time spent waiting for data, which Caffe does not print.
const WAIT_LINE: &str = "    Waited for data: Ns, N% of the time";
/// Log lines of each displayed iteration, with numbers replaced by `N`.
const DISPLAY: [&str; 4] = [
    "Iteration N (N iter/s, Ns/N iters), loss = N",
    "    Train net output #N: loss = N (* N = N loss)",
    WAIT_LINE,
    "Iteration N, lr = N",
];

const TEST: [&str; 3] = [
    "Iteration N, Testing net (#N)",
    "    Test net output #N: accuracy = N",
    "    Test net output #N: loss = N (* N = N loss)",
];

const SNAPSHOT: [&str; 2] = [
    "Snapshotting to binary proto file lenet_iter_N.caffemodel",
    "Snapshotting solver state to binary proto file lenet_iter_N.solverstate",
];

fn shapes(result: &RunResult) -> Vec<String> {
    let start = result.log.iter().position(|line| line.starts_with("Solving ")).unwrap();
    result.log[start..].iter().map(|line| shape(line)).collect()
}

#[test]
fn training_logs_and_writes_snapshots_at_the_solvers_intervals() {
    let folder = Folder::new("training");
    let result = folder.run("train --solver solver.prototxt").succeeded();

    let half_lines = [&TEST[..], &DISPLAY, &DISPLAY, &SNAPSHOT].concat();
    let start = ["Solving LeNet", "Learning Rate Policy: inv"];
    let end = [&TEST[..], &["Iteration N, loss = N", "Optimization Done."]].concat();
    assert_eq!(shapes(&result), [&start[..], &half_lines, &half_lines, &end].concat());
    assert_eq!(result.out, "");

    let display_lines: Vec<_> = result.log.iter().filter(|line| line.contains(", lr = ")).collect();
    assert_eq!(display_lines[0], "Iteration 0, lr = 0.01");
    // The learning rate of iteration 6 is 0.01 · (1 + 0.0001 · 6)^−0.75.
    assert_eq!(display_lines[3], "Iteration 6, lr = 0.0099955");
    let files = ["lenet_iter_4", "lenet_iter_8"];
    assert_eq!(folder.files(".caffemodel"), files.map(|stem| format!("{stem}.caffemodel")));
    assert_eq!(folder.files(".solverstate"), files.map(|stem| format!("{stem}.solverstate")));
}

#[test]
fn debug_info_logs_the_mean_magnitude_of_each_blob() {
    let folder = Folder::new("debug");
    folder.write("solver.prototxt", format!("{SOLVER} debug_info: true"));
    let result = folder.run("train --solver solver.prototxt").succeeded();
    let debug_lines: Vec<_> = result.log.iter().filter(|line| line.starts_with("    [")).collect();
    let batch = [
        "    [Forward] Layer data, top blob data data: N",
        "    [Forward] Layer data, top blob label data: N",
        "    [Forward] Layer label_data_N_split, top blob label_data_N_split_N data: N",
        "    [Forward] Layer label_data_N_split, top blob label_data_N_split_N data: N",
        "    [Forward] Layer ip, top blob ip data: N",
        "    [Forward] Layer ip, param blob N data: N",
        "    [Forward] Layer ip, param blob N data: N",
        "    [Forward] Layer ip_ip_N_split, top blob ip_ip_N_split_N data: N",
        "    [Forward] Layer ip_ip_N_split, top blob ip_ip_N_split_N data: N",
        "    [Forward] Layer accuracy, top blob accuracy data: N",
        "    [Forward] Layer loss, top blob loss data: N",
    ];
    let pass = [
        "    [Forward] Layer data, top blob data data: N",
        "    [Forward] Layer data, top blob label data: N",
        "    [Forward] Layer ip, top blob ip data: N",
        "    [Forward] Layer ip, param blob N data: N",
        "    [Forward] Layer ip, param blob N data: N",
        "    [Forward] Layer loss, top blob loss data: N",
        "    [Backward] Layer loss, bottom blob ip diff: N",
        "    [Backward] Layer ip, param blob N diff: N",
        "    [Backward] Layer ip, param blob N diff: N",
        "    [Backward] All net params (data, diff): LN norm = (N, N); LN norm = (N, N)",
    ];
    let half_lines = [&batch[..], &batch, &pass, &pass].concat();
    let shapes: Vec<_> = debug_lines.iter().map(|line| shape(line)).collect();
    assert_eq!(shapes, [&half_lines[..], &half_lines, &batch, &batch].concat());
    // The debug log shows the mean absolute value of the loss blob, which equals the loss. An
    // element of the softmax loss's gradient is a probability minus 0 or 1, divided by the batch
    // size.
    let value = |line: &str| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap();
    let loss = result.log.iter().find(|line| line.contains("Iteration 0 (")).unwrap();
    let first = &debug_lines[2 * batch.len()..];
    assert_eq!(value(first[5]), value(loss));
    assert!((0.0..0.25).contains(&value(first[6])), "{}", first[6]);
    // The logged accuracy of a test pass is the mean over the pass's batches.
    let test = result.log.iter().find(|line| line.contains("accuracy = ")).unwrap();
    let mean = (value(debug_lines[9]) + value(debug_lines[9 + batch.len()])) / 2.0;
    assert!((mean - value(test)).abs() < 1e-5, "{mean}: {test}");
    let plain_run = Folder::new("debug-not").run("train --solver solver.prototxt").succeeded();
    assert!(!plain_run.log.iter().any(|line| line.starts_with("    [")));
}

#[test]
fn log_lines_have_the_form_of_caffes_log_lines() {
    let check = "the comparison with Caffe's log";
    let Some(log) = testdata("golden/lenet/caffe_train.log", check) else {
        return;
    };
    let log = fs::read_to_string(log).unwrap();
    let lines = log.lines().skip_while(|line| !line.contains("Solving LeNet"));
    // Dates in Caffe's log contain the year, because a version of glog newer than 0.4 wrote this
    // log.
    let without_year = |line: &str| [&line[..1], line[1..].strip_prefix("2026").unwrap()].concat();
    let caffe_lines = lines.map(|line| shape(message(&without_year(line)).unwrap()));
    let caffe_lines: BTreeSet<_> = caffe_lines.collect();
    let result = Folder::new("log").run("train --solver solver.prototxt").succeeded();
    let cortado_lines: BTreeSet<_> =
        shapes(&result).into_iter().filter(|line| line != WAIT_LINE).collect();
    let only_in_caffes_log: Vec<_> = caffe_lines.difference(&cortado_lines).collect();
    assert_eq!(only_in_caffes_log, ["Restarting data prefetching from start."]);
    assert!(cortado_lines.is_subset(&caffe_lines), "{:?}", cortado_lines.difference(&caffe_lines));
}

#[test]
fn caffes_weights_give_caffes_scores() {
    let check = "the comparison with the scores of Caffe's trained weights";
    let Some(weights) = testdata("golden/lenet/lenet_iter_10000.caffemodel", check) else { return };
    let Some(mnist) = testdata("data/mnist", check) else { return };
    let Some(log) = testdata("golden/lenet/caffe_train.log", check) else { return };
    if !optimized("the comparison with Caffe's scores on all test images") {
        return;
    }
    let model = include_str!("../../../examples/mnist/lenet.prototxt");
    let folder = Folder::new("scores");
    let digits = format!("idx:{}", mnist.join("t10k").display());
    folder.write_replaced("lenet.prototxt", model, "idx:examples/mnist/data/t10k", &digits);
    let weights = weights.display();
    let test = format!("test --model lenet.prototxt --weights {weights} --iterations 100");
    let out = folder.run(&test).succeeded().out;

    let log = fs::read_to_string(log).unwrap();
    let score = |text: &str, name: &str| -> f64 {
        let start = format!("{name} = ");
        let line = text.lines().rfind(|line| line.contains(&start)).unwrap();
        let number = line.split(&start).nth(1).unwrap().split(' ').next().unwrap();
        number.parse().unwrap()
    };
    assert_eq!(score(&out, "accuracy"), score(&log, "accuracy"), "{out}");
    // The numbers in Caffe's log have six significant digits.
    let (cortado_loss, caffe_loss) = (score(&out, "loss"), score(&log, "Test net output #1: loss"));
    assert!((cortado_loss - caffe_loss).abs() <= 2e-7, "{cortado_loss} {caffe_loss}");
}

#[test]
fn one_seed_gives_the_same_model_on_any_number_of_threads() {
    let folder = Folder::new("threads");
    let train = |args: &str| {
        folder.run(&format!("train --solver solver.prototxt {args}")).succeeded();
        (folder.read("lenet_iter_8.caffemodel"), folder.read("lenet_iter_8.solverstate"))
    };
    let on_one_thread = train("--threads 1");
    assert!(train("--threads 2") == on_one_thread);
    folder.write_replaced("solver.prototxt", SOLVER, "random_seed: 7", "random_seed: 8");
    assert!(train("--threads 1").0 != on_one_thread.0, "the seed has no effect");
}

/// Each batch contains all records, so the snapshots do not depend on where the run resumes. The
/// test `a_run_killed_repeatedly_ends_bit_identical_to_an_uninterrupted_one` covers runs that
/// resume in the middle of the data.
#[test]
fn a_resumed_run_writes_the_same_snapshots_as_an_uninterrupted_one() {
    let folder = Folder::new("resumed");
    folder.write_replaced("net.prototxt", NET, "count=200", "count=8");
    folder.run("train --solver solver.prototxt").succeeded();
    let files = ["lenet_iter_8.caffemodel", "lenet_iter_8.solverstate"];
    let uninterrupted_files = files.map(|file| folder.read(file));
    folder.write(files[0], "");
    let args = "train --solver solver.prototxt --snapshot lenet_iter_4.solverstate";
    let result = folder.run(args).succeeded();
    assert!(files.map(|file| folder.read(file)) == uninterrupted_files);
    assert!(!result.log.iter().any(|line| line.contains("Iteration 0")), "{result:#?}");

    let args_with_weights = format!("{args} --weights lenet_iter_4.caffemodel");
    folder.run(&args_with_weights).refused_with(&[
        "--snapshot",
        "--weights",
        "cannot be used with",
    ]);
}

#[test]
fn snapshot_keep_removes_older_snapshots_of_the_same_prefix() {
    let folder = Folder::new("snapshot-keep");
    folder.write_replaced("solver.prototxt", SOLVER, "snapshot: 4", "snapshot: 2");
    for other in ["lenet2_iter_2.caffemodel", "lenet_iter_90.caffemodel", "lenet_iter_x.caffemodel"]
    {
        folder.write(other, "");
    }
    folder.run("train --solver solver.prototxt --snapshot-keep 2").succeeded();
    let models = folder.files(".caffemodel");
    assert_eq!(
        models,
        [
            "lenet2_iter_2.caffemodel",
            "lenet_iter_6.caffemodel",
            "lenet_iter_8.caffemodel",
            "lenet_iter_90.caffemodel",
            "lenet_iter_x.caffemodel",
        ]
    );
    assert_eq!(
        folder.files(".solverstate"),
        ["lenet_iter_6.solverstate", "lenet_iter_8.solverstate"]
    );
    folder
        .run("train --solver solver.prototxt --snapshot-keep 0")
        .refused_with(&["--snapshot-keep"]);
}

#[test]
fn snapshot_format_hdf5_writes_hdf5_snapshots() {
    let folder = Folder::new("hdf5");
    folder.write_replaced("net.prototxt", NET, "count=200", "count=8");
    folder.write_replaced("solver.prototxt", SOLVER, "display: 2", "snapshot_format: HDF5");
    let result = folder.run("train --solver solver.prototxt");
    if cfg!(not(feature = "hdf5")) {
        result.failed_with(&["solver.prototxt", "feature `hdf5`", "BINARYPROTO"]);
        folder.write("a.h5", b"\x89HDF\r\n\x1a\n");
        for args in ["inspect a.h5", "test --model net.prototxt --weights a.h5"] {
            folder.run(args).failed_with(&["a.h5", "feature `hdf5`"]);
        }
        return;
    }
    result.succeeded();
    let files = ["lenet_iter_8.caffemodel.h5", "lenet_iter_8.solverstate.h5"];
    let uninterrupted_files = files.map(|file| folder.read(file));
    folder.write(files[0], "");
    let resume = "train --solver solver.prototxt --snapshot lenet_iter_4.solverstate.h5";
    folder.run(resume).succeeded();
    assert!(files.map(|file| folder.read(file)) == uninterrupted_files);
    assert_eq!(folder.files(".caffemodel"), [""; 0]);

    // Training with binary snapshots produces the same weights as training with HDF5 snapshots.
    let scores = |weights: &str| {
        let args = format!("test --model net.prototxt --iterations 3 --weights {weights}");
        folder.run(&args).succeeded().out
    };
    folder.write("solver.prototxt", SOLVER);
    folder.run("train --solver solver.prototxt").succeeded();
    assert_eq!(scores(files[0]), scores("lenet_iter_8.caffemodel"));

    let net = folder.run(&format!("inspect {}", files[0])).succeeded().out;
    assert!(net.contains("ip.0") && net.contains("10×784"), "{net}");
    let state = folder.run(&format!("inspect {}", files[1])).succeeded().out;
    for part in ["solver state", "iter: 8", &format!("learned_net: {}", files[0]), "history.1"] {
        assert!(state.contains(part), "{state}");
    }
    for file in files {
        folder.write(file, &folder.read(file)[..1000]); // truncate the file
        folder.run(&format!("inspect {file}")).failed_with(&[file]);
    }
}

#[test]
fn test_prints_the_means_of_the_batches() {
    let folder = Folder::new("testing");
    folder.run("train -solver solver.prototxt").succeeded(); // Caffe's scripts pass flags with one dash
    let result = folder
        .run("test -model net.prototxt -weights=lenet_iter_8.caffemodel -iterations 3")
        .succeeded();
    let value = |line: &str| line.split(' ').nth(2).unwrap().parse::<f64>().unwrap();
    let [_, accuracy, loss] = result.out.lines().collect::<Vec<_>>()[..] else {
        panic!("{result:#?}");
    };
    for (mean, name) in [(accuracy, "accuracy"), (loss, "loss")] {
        let is_score =
            |line: &&String| line.starts_with("Batch ") && line.contains(&format!(", {name} = "));
        let batches: Vec<_> = result.log.iter().filter(is_score).collect();
        assert_eq!(batches.len(), 3, "{result:#?}");
        let sum: f64 = batches.iter().map(|line| value(line.split_once(", ").unwrap().1)).sum();
        assert!(mean.starts_with(name), "{mean}");
        assert!((value(mean) - sum / 3.0).abs() < 1e-5, "{mean}, of {batches:?}");
    }
    assert!(result.out.starts_with("Loss: "), "{}", result.out);
    assert_eq!(shape(loss), "loss = N (* N = N loss)");
}
