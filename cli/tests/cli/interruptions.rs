//! Tests of the signals SIGINT, SIGTERM, SIGHUP and SIGKILL during training.

use crate::{
    command::{Folder, RunResult, SOLVER, message},
    data_sets::write_data_sets,
};
use cortado::{
    op::RngKey,
    proto::{self, NetParameter},
};
use rand::Rng;
use std::{
    fs,
    io::{BufRead, BufReader, Lines},
    os::unix::process::ExitStatusExt,
    path::Path,
    process::{Child, ChildStderr, Command, ExitStatus, Stdio},
    thread::sleep,
    time::{Duration, Instant, SystemTime},
};

/// A running `cortado` process, whose log the test reads line by line.
struct RunningProcess {
    child: Child,
    lines: Lines<BufReader<ChildStderr>>,
}

impl RunningProcess {
    fn start(folder: &Folder, flags: &str) -> Self {
        Self::start_command(folder.command(&format!("train --solver solver.prototxt {flags}")))
    }

    fn start_command(mut command: Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        Self { child, lines }
    }

    /// Reads the log until a line contains `text`.
    fn wait_for(&mut self, text: &str) {
        assert!(self.lines.any(|line| line.unwrap().contains(text)), "{text}");
    }

    fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([name, &id]).status().unwrap().success());
    }

    /// Waits until the process ends. Returns the exit status and the log lines that the
    /// test has not yet read.
    fn finish(mut self) -> (ExitStatus, Vec<String>) {
        let rest = self.lines.map(|line| message(&line.unwrap()).unwrap().to_owned()).collect();
        (self.child.wait().unwrap(), rest)
    }
}

/// Trains until a log line contains `text`, then sends SIGINT to the process. Returns the log lines
/// that follow the line with `text`.
fn interrupt_at(folder: &Folder, text: &str) -> Vec<String> {
    let mut process = RunningProcess::start(folder, "");
    process.wait_for(text);
    process.signal("-INT");
    let (status, rest) = process.finish();
    assert!(status.success(), "{status}: {rest:#?}");
    rest
}

/// Returns a solver definition that would run for hours, without periodic snapshots.
fn endless_solver() -> String {
    let solver =
        SOLVER.replace("snapshot: 4", "").replace("test_interval: 4", "test_interval: 1000");
    solver.replace("max_iter: 8", "max_iter: 100000000")
}

#[test]
fn sigint_stops_training_with_a_snapshot() {
    let folder = Folder::new("interrupt");
    folder.write("solver.prototxt", endless_solver());
    let rest = interrupt_at(&folder, "Iteration 2, lr = ");
    assert_eq!(rest[rest.len() - 2], "Optimization stopped early.");
    let [model] = &folder.files(".caffemodel")[..] else { panic!("{rest:#?}") };
    let weights: NetParameter = proto::read_binary(folder.path(model)).unwrap();
    assert_eq!(weights.layer.iter().map(|layer| layer.blobs.len()).sum::<usize>(), 2);
    let state = model.replace(".caffemodel", ".solverstate");
    assert_eq!(folder.files(".solverstate"), [&*state]);

    // The last line of the log contains the command that resumes the run. The test sets `max_iter`
    // to the iteration of the snapshot, so the resumed run makes no updates.
    let (iteration, command) = rest.last().unwrap().split_once(" with: ").unwrap();
    let iteration = iteration.strip_prefix("Resume from iteration ").unwrap();
    assert_eq!(state, format!("lenet_iter_{iteration}.solverstate"));
    let program = env!("CARGO_BIN_EXE_cortado");
    assert_eq!(command, format!("{program} train --solver solver.prototxt --snapshot {state}"));
    let end = format!("max_iter: {iteration}");
    folder.write("solver.prototxt", endless_solver().replace("max_iter: 100000000", &end));
    let mut shell = Command::new("sh");
    let output = shell.args(["-c", command]).current_dir(folder.path("")).output().unwrap();
    let result = RunResult::new(command, output).succeeded();
    assert!(result.log.contains(&format!("Resuming from {state}")), "{result:#?}");
    assert_eq!(result.log.last().unwrap(), "Optimization Done.");
}

/// Without SIGINT, training and `cortado time` would run for hours.
#[test]
fn sigint_writes_the_timeline() {
    let folder = Folder::new("interrupt-trace");
    folder.write("solver.prototxt", endless_solver());
    let time = "time --model net.prototxt --iterations 100000000";
    let train = "train --solver solver.prototxt";
    for (args, line, code) in [(train, "Iteration 2, lr = ", 0), (time, "Testing for", 1)] {
        let command = folder.command(&format!("{args} --trace trace.json"));
        let mut process = RunningProcess::start_command(command);
        process.wait_for(line);
        process.signal("-INT");
        process.lines.by_ref().for_each(drop);
        assert_eq!(process.child.wait().unwrap().code(), Some(code), "{args}");
        let trace: serde_json::Value = serde_json::from_slice(&folder.read("trace.json")).unwrap();
        let events = trace["traceEvents"].as_array().unwrap();
        assert!(events.iter().any(|event| event["name"] == "ip forward"), "{args}");
    }
}

/// Without SIGINT, `cortado test` would run for hours.
#[test]
fn sigint_during_cortado_test_prints_the_means_so_far() {
    let folder = Folder::new("interrupt-means");
    folder.run("train --solver solver.prototxt").succeeded();
    let test = "test --model net.prototxt --weights lenet_iter_8.caffemodel --iterations 100000000";
    let mut command = folder.command(test);
    command.stdout(Stdio::piped());
    let mut process = RunningProcess::start_command(command);
    let mut log = Vec::new();
    for line in process.lines.by_ref() {
        log.push(line.unwrap());
        if log.last().unwrap().contains("Batch 2, loss") {
            break;
        }
    }
    process.signal("-INT");
    log.extend(process.lines.by_ref().map(Result::unwrap));
    let output = process.child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{log:#?}");
    let losses: Vec<f64> = log
        .iter()
        .filter(|line| line.contains("Batch ") && line.contains(", loss = "))
        .map(|line| line.rsplit(' ').next().unwrap().parse().unwrap())
        .collect();
    let batches = losses.len();
    let want =
        format!("cortado: interrupted; the means are those of {batches} of 100000000 batches");
    assert_eq!(log.last(), Some(&want));
    let out = String::from_utf8(output.stdout).unwrap();
    let printed_text = out.lines().find_map(|line| line.strip_prefix("loss = ")).unwrap();
    let printed_mean: f64 = printed_text.split(' ').next().unwrap().parse().unwrap();
    let mean = losses.iter().sum::<f64>() / batches as f64;
    assert!((printed_mean - mean).abs() < 1e-4, "{printed_mean} {mean}");
}

/// Without SIGINT, the solver's test pass would run for hours.
#[test]
fn sigint_stops_training_during_a_test_pass() {
    let folder = Folder::new("interrupt-test");
    folder.write_replaced("solver.prototxt", SOLVER, "test_iter: 2", "test_iter: 100000000");
    let rest = interrupt_at(&folder, "Testing net (#0)");
    assert_eq!(rest, ["Test interrupted.", "Optimization stopped early."]);
}

/// Each case consists of the signal, the flags, and whether the signal causes a snapshot.
#[test]
fn signal_effects_follow_the_flags() {
    let folder = Folder::new("signals");
    folder.write("solver.prototxt", endless_solver());
    let cases = [
        ("-HUP", "", true),
        ("-HUP", "-sighup_effect=none", false),
        ("-INT", "--sigint-effect snapshot", true),
        ("-INT", "--sigint_effect none", false),
    ];
    for (signal, flags, writes_snapshot) in cases {
        let mut process = RunningProcess::start(&folder, flags);
        process.wait_for("Iteration 2, lr = ");
        process.signal(signal);
        if writes_snapshot {
            process.wait_for("Snapshotting solver state");
        }
        process.wait_for(", lr = "); // a later iteration
        process.signal("-TERM");
        let (status, rest) = process.finish();
        assert!(status.success(), "{signal} {flags}: {status}: {rest:#?}");
        assert_eq!(rest[rest.len() - 2], "Optimization stopped early.");
        assert!(rest.last().unwrap().starts_with("Resume from iteration "), "{rest:#?}");
        let states = folder.files(".solverstate");
        // When SIGTERM stops training, the process writes one more snapshot.
        assert_eq!(states.len(), 1 + usize::from(writes_snapshot), "{signal} {flags}: {states:?}");
        states.iter().for_each(|state| fs::remove_file(folder.path(state)).unwrap());
    }
    let stop = "train --solver solver.prototxt --sighup-effect stopp";
    folder.run(stop).refused_with(&["'stopp'", "none, stop, snapshot"]);
}

#[test]
fn a_second_process_with_the_same_snapshot_prefix_logs_a_warning() {
    let folder = Folder::new("two-processes");
    folder.write("solver.prototxt", endless_solver());
    folder.write("short.prototxt", SOLVER);
    folder.write_replaced("other.prototxt", SOLVER, "\"lenet\"", "\"other\"");
    let mut first_process = RunningProcess::start(&folder, "");
    first_process.wait_for("Iteration 2, lr = ");
    let warning =
        format!("process {} is training with the same snapshot prefix", first_process.child.id());
    let warns = |solver: &str| {
        let result = folder.run(&format!("train --solver {solver}")).succeeded();
        result.log.iter().any(|line| line.contains(&warning))
    };
    assert!(warns("short.prototxt"));
    assert!(!warns("other.prototxt"));
    first_process.signal("-KILL");
    first_process.finish();
    assert!(!warns("short.prototxt"), "SIGKILL must release the lock");
    assert_eq!(folder.files(".lock"), [""; 0]);
}

/// One training iteration has 10⁹ batches (`iter_size`) and therefore lasts longer than the test.
#[test]
fn a_second_signal_ends_the_process_at_once() {
    let folder = Folder::new("interrupt-twice");
    folder.write("solver.prototxt", format!("{} iter_size: 1000000000", endless_solver()));
    for (signal, code) in [("-INT", 130), ("-TERM", 143)] {
        let mut process = RunningProcess::start(&folder, "");
        process.wait_for("Learning Rate Policy");
        sleep(Duration::from_millis(100));
        process.signal(signal);
        process.signal("-HUP");
        sleep(Duration::from_millis(100));
        assert_eq!(process.child.try_wait().unwrap(), None);
        process.signal(signal);
        let (status, _) = process.finish();
        assert_eq!(status.code(), Some(code));
    }
    assert_eq!(folder.files(".caffemodel"), [""; 0]);
}

/// The number of times that the test kills training, for each data source.
const KILLS: usize = 7;

/// Returns data layers that read different sources, each paired with the method of the solver that
/// trains on this source. The net's inputs are small, so that training is fast.
fn sources() -> Vec<(String, &'static str)> {
    let transform = "transform_param { scale: 0.01 mirror: true crop_size: 7 }";
    let layer = |kind: &str, params: &str, method| {
        let tops = "name: 'data' top: 'data' top: 'label'";
        (format!("layer {{ type: '{kind}' {tops} {params} {transform} }}"), method)
    };
    let images = "source: 'images.txt' batch_size: 3";
    let windows = "source: 'windows.txt' batch_size: 4 fg_threshold: 0.5 bg_threshold: 0.5";
    let mut sources = vec![
        layer("Data", "data_param { source: 'digits:train?count=20' batch_size: 3 }", "SGD"),
        layer("Data", "data_param { source: 'idx:idx' batch_size: 5 rand_skip: 9 }", "Nesterov"),
        layer("Data", "data_param { source: 'lmdb' batch_size: 5 backend: LMDB }", "AdaGrad"),
        layer("ImageData", &format!("image_data_param {{ {images} }}"), "RMSProp"),
        layer("ImageData", &format!("image_data_param {{ {images} shuffle: true }}"), "AdaDelta"),
        layer("WindowData", &format!("window_data_param {{ {windows} }}"), "Adam"),
    ];
    for shuffle in [false, true].into_iter().take(if cfg!(feature = "hdf5") { 2 } else { 0 }) {
        let (mut text, method) = layer(
            "HDF5Data",
            &format!("hdf5_data_param {{ source: 'rows.txt' batch_size: 4 shuffle: {shuffle} }}"),
            "Adam",
        );
        text = text.replace(transform, "");
        sources.push((text, method));
    }
    sources
}

/// In this test, training writes a snapshot after each solver update. The test kills the training
/// process at random times and resumes training from the last snapshot, with another number of
/// threads.
#[test]
fn a_run_killed_repeatedly_ends_bit_identical_to_an_uninterrupted_one() {
    let seed = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64;
    println!("seed {seed}");
    let mut rng = RngKey::new(seed).rng();
    for (index, (data, method)) in sources().into_iter().enumerate() {
        let layers = r#"
            layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
              inner_product_param { num_output: 8 weight_filler { type: "xavier" } } }
            layer { name: "drop" type: "Dropout" bottom: "ip" top: "ip" }
            layer { name: "class" type: "InnerProduct" bottom: "ip" top: "class"
              inner_product_param { num_output: 10 weight_filler { type: "xavier" } } }
            layer { name: "loss" type: "SoftmaxWithLoss" bottom: "class" bottom: "label" top: "l" }
            "#;
        let momentum = match method {
            "AdaGrad" | "RMSProp" => "",
            _ => "momentum: 0.9",
        };
        let solver = |snapshot: usize, max_iter: usize| {
            format!(
                r#"net: "net.prototxt" type: "{method}" {momentum} base_lr: 0.01 random_seed: 7
                   lr_policy: "inv" gamma: 0.0001 power: 0.75 weight_decay: 0.0005 display: 100000
                   snapshot: {snapshot} max_iter: {max_iter} snapshot_prefix: "lenet""#
            )
        };
        let folder = |name: &str| {
            let folder = Folder::new(&format!("{name}-{index}"));
            let images = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/images");
            write_data_sets(&folder.path(""), &images.canonicalize().unwrap());
            folder.write("net.prototxt", format!("{data} {layers}"));
            folder
        };
        let killed_folder = folder("killed");
        let end = kill_and_resume(&killed_folder, &mut rng, solver) + 3;
        println!("{data}: {KILLS} kills, {end} updates");

        let uninterrupted_folder = folder("not-killed");
        uninterrupted_folder.write("solver.prototxt", solver(0, end));
        uninterrupted_folder.run("train --threads 1 --solver solver.prototxt").succeeded();
        for suffix in ["caffemodel", "solverstate"] {
            let file = format!("lenet_iter_{end}.{suffix}");
            let is_equal = killed_folder.read(&file) == uninterrupted_folder.read(&file);
            assert!(is_equal, "{data}: {file}, seed {seed}");
        }
    }
}

/// Kills training [`KILLS`] times, then resumes training for three more iterations. Returns the
/// iteration of the snapshot from which the last run resumed.
fn kill_and_resume(
    folder: &Folder,
    rng: &mut impl Rng,
    solver: impl Fn(usize, usize) -> String,
) -> usize {
    folder.write("solver.prototxt", solver(1, 1_000_000));
    let resume_args = |from: Option<usize>, threads: usize| {
        let state = from.map(|n| format!(" --snapshot lenet_iter_{n}.solverstate"));
        let state = state.unwrap_or_default();
        format!("train --threads {threads} --solver solver.prototxt{state}")
    };
    // Time from the start of training to the third snapshot. The test kills each later training run
    // at a random time, after at most twice `startup_time`.
    let mut startup_time = Duration::ZERO;
    let mut last_iteration = None;
    for kill in 0..KILLS {
        let mut command = folder.command(&resume_args(last_iteration, 1 + kill % 2));
        let start = Instant::now();
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        if kill == 0 {
            while !folder.path("lenet_iter_3.solverstate").exists() {
                assert_eq!(child.try_wait().unwrap(), None, "training ended");
                sleep(Duration::from_millis(1));
            }
            startup_time = start.elapsed();
        } else {
            sleep(startup_time.mul_f64(2.0 * f64::from(rng.next_u32()) / f64::from(u32::MAX)));
        }
        child.kill().unwrap();
        let status = child.wait().unwrap();
        assert_eq!(status.signal(), Some(9), "kill {kill}: {status}");
        last_iteration = Some(remove_older_states(folder));
    }
    let newest = last_iteration.unwrap();
    folder.write("solver.prototxt", solver(1, newest + 3));
    folder.run(&resume_args(last_iteration, 2)).succeeded();
    newest
}

/// Checks that all solver states, and the weight files that they name, are complete. Removes all
/// solver states except the newest, and returns the iteration of the newest.
fn remove_older_states(folder: &Folder) -> usize {
    let number = |file: &String| {
        let number = file.strip_prefix("lenet_iter_").unwrap().strip_suffix(".solverstate");
        number.unwrap().parse::<usize>().unwrap()
    };
    let states: Vec<usize> = folder.files(".solverstate").iter().map(number).collect();
    let newest = *states.iter().max().unwrap();
    for n in states {
        let stem = format!("lenet_iter_{n}");
        let [state, model] = ["solverstate", "caffemodel"].map(|end| format!("{stem}.{end}"));
        let read: proto::SolverState = proto::read_binary(folder.path(&state)).unwrap();
        assert_eq!((read.iter(), read.learned_net()), (n as i32, &model[..]));
        proto::read_binary::<NetParameter>(folder.path(&model)).unwrap();
        if n != newest {
            [state, model].iter().for_each(|file| fs::remove_file(folder.path(file)).unwrap());
        }
    }
    newest
}
