//! Tests of the signals SIGINT, SIGTERM, SIGHUP and SIGKILL during training.

use crate::command::{Folder, NET, SOLVER, message};
use cortado::{
    op::RngKey,
    proto::{self, NetParameter},
};
use rand::Rng;
use std::{
    fs,
    io::{BufRead, BufReader, Lines},
    os::unix::process::ExitStatusExt,
    process::{Child, ChildStderr, Command, ExitStatus, Stdio},
    thread::sleep,
    time::{Duration, Instant, SystemTime},
};

/// A running `cortado train` process, whose log the test reads line by line.
struct Running {
    child: Child,
    lines: Lines<BufReader<ChildStderr>>,
}

impl Running {
    fn start(folder: &Folder, flags: &str) -> Self {
        let mut command = folder.command(&format!("train --solver solver.prototxt {flags}"));
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        Self { child, lines }
    }

    /// Reads the log until a line contains `line`.
    fn wait_for(&mut self, line: &str) {
        assert!(self.lines.any(|logged| logged.unwrap().contains(line)), "{line}");
    }

    fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([name, &id]).status().unwrap().success());
    }

    /// Waits until the training process ends. Returns the exit status and the log lines that the
    /// test has not yet read.
    fn finish(mut self) -> (ExitStatus, Vec<String>) {
        let rest = self.lines.map(|line| message(&line.unwrap()).unwrap().to_owned()).collect();
        (self.child.wait().unwrap(), rest)
    }
}

/// Interrupts training with SIGINT once the log contains `line`. Returns the log lines that follow
/// `line`.
fn interrupted_at(folder: &Folder, line: &str) -> Vec<String> {
    let mut running = Running::start(folder, "");
    running.wait_for(line);
    running.signal("-INT");
    let (status, rest) = running.finish();
    assert!(status.success(), "{status}: {rest:#?}");
    rest
}

/// Returns a solver definition that would run for hours, without periodic snapshots.
fn endless() -> String {
    let long = SOLVER.replace("snapshot: 4", "").replace("test_interval: 4", "test_interval: 1000");
    long.replace("max_iter: 8", "max_iter: 100000000")
}

#[test]
fn sigint_stops_training_with_a_snapshot() {
    let folder = Folder::new("interrupt");
    folder.write("solver.prototxt", endless());
    let rest = interrupted_at(&folder, "Iteration 2, lr = ");
    assert_eq!(rest.last().unwrap(), "Optimization stopped early.");
    let [model] = &folder.files(".caffemodel")[..] else { panic!("{rest:#?}") };
    let weights: NetParameter = proto::read_binary(folder.path(model)).unwrap();
    assert_eq!(weights.layer.iter().map(|layer| layer.blobs.len()).sum::<usize>(), 2);
    let state = model.replace(".caffemodel", ".solverstate");
    assert_eq!(folder.files(".solverstate"), [state]);
}

/// Without SIGINT, the solver's test pass would run for hours.
#[test]
fn sigint_stops_during_a_test() {
    let folder = Folder::new("interrupt-test");
    folder.write_replaced("solver.prototxt", SOLVER, "test_iter: 2", "test_iter: 100000000");
    let rest = interrupted_at(&folder, "Testing net (#0)");
    assert_eq!(rest, ["Test interrupted.", "Optimization stopped early."]);
}

/// Each case consists of the signal, the flags, and whether the signal causes a snapshot.
#[test]
fn signal_effects_follow_the_flags() {
    let folder = Folder::new("signals");
    folder.write("solver.prototxt", endless());
    let cases = [
        ("-HUP", "", true),
        ("-HUP", "-sighup_effect=none", false),
        ("-INT", "--sigint-effect snapshot", true),
        ("-INT", "--sigint_effect none", false),
    ];
    for (signal, flags, writes) in cases {
        let mut running = Running::start(&folder, flags);
        running.wait_for("Iteration 2, lr = ");
        running.signal(signal);
        if writes {
            running.wait_for("Snapshotting solver state");
        }
        running.wait_for(", lr = "); // a later iteration
        running.signal("-TERM");
        let (status, rest) = running.finish();
        assert!(status.success(), "{signal} {flags}: {status}: {rest:#?}");
        assert_eq!(rest.last().unwrap(), "Optimization stopped early.");
        let written = folder.files(".solverstate");
        // When SIGTERM stops training, the process writes one more snapshot.
        assert_eq!(written.len(), 1 + usize::from(writes), "{signal} {flags}: {written:?}");
        written.iter().for_each(|state| fs::remove_file(folder.path(state)).unwrap());
    }
    let stop = "train --solver solver.prototxt --sighup-effect stopp";
    folder.run(stop).refused_with(&["'stopp'", "none, stop, snapshot"]);
}

/// One training iteration has 10⁹ batches (`iter_size`) and therefore lasts longer than the test.
#[test]
fn a_second_signal_exits_at_once() {
    let folder = Folder::new("interrupt-twice");
    folder.write("solver.prototxt", format!("{} iter_size: 1000000000", endless()));
    for (signal, code) in [("-INT", 130), ("-TERM", 143)] {
        let mut running = Running::start(&folder, "");
        running.wait_for("Learning Rate Policy");
        sleep(Duration::from_millis(100));
        running.signal(signal);
        running.signal("-HUP");
        sleep(Duration::from_millis(100));
        assert_eq!(running.child.try_wait().unwrap(), None);
        running.signal(signal);
        let (status, _) = running.finish();
        assert_eq!(status.code(), Some(code));
    }
    assert_eq!(folder.files(".caffemodel"), [""; 0]);
}

const KILLS: usize = 50;

/// In this test, training writes a snapshot after each solver update. The test kills the training
/// process at random moments and resumes training from the last snapshot.
#[test]
fn a_run_killed_repeatedly_ends_bit_identical_to_an_uninterrupted_one() {
    let seed = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64;
    println!("seed {seed}");
    let mut rng = RngKey::new(seed).rng();
    let solver = |snapshot: usize, max_iter: usize| {
        let tests = SOLVER.replace("test_iter: 2\ntest_interval: 4\n", "");
        let solver = tests.replace("snapshot: 4", &format!("snapshot: {snapshot}"));
        solver.replace("max_iter: 8", &format!("max_iter: {max_iter}"))
    };
    let folder = Folder::new("killed");
    // A resumed training run reads data from the first record again, so this test puts all records
    // into each batch.
    let net = NET.replace("count=200", "count=8");
    folder.write("net.prototxt", &net);
    folder.write("solver.prototxt", solver(1, 1_000_000));
    let resumed = |from: Option<usize>| {
        let state = from.map(|n| format!(" --snapshot lenet_iter_{n}.solverstate"));
        format!("train --threads 1 --solver solver.prototxt{}", state.unwrap_or_default())
    };
    // Time from the start of training to the third snapshot. The test kills each later training run
    // at a random time, after at most twice this duration.
    let mut usual = Duration::ZERO;
    let (mut last, mut longest) = (None, 0);
    for kill in 0..KILLS {
        let mut command = folder.command(&resumed(last));
        let start = Instant::now();
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        if kill == 0 {
            while !folder.path("lenet_iter_3.solverstate").exists() {
                sleep(Duration::from_millis(1));
            }
            usual = start.elapsed();
        } else {
            sleep(usual.mul_f64(2.0 * f64::from(rng.next_u32()) / f64::from(u32::MAX)));
        }
        child.kill().unwrap();
        let status = child.wait().unwrap();
        assert_eq!(status.signal(), Some(9), "kill {kill}, seed {seed}: {status}");
        let newest = remove_older_states(&folder);
        longest = longest.max(newest - last.unwrap_or(0));
        last = Some(newest);
    }
    let end = last.unwrap() + 3;
    println!("{KILLS} kills, {end} updates, at most {longest} updates between two kills");
    folder.write("solver.prototxt", solver(1, end));
    folder.run(&resumed(last)).succeeded();

    let uninterrupted = Folder::new("not-killed");
    uninterrupted.write("net.prototxt", &net);
    uninterrupted.write("solver.prototxt", solver(0, end));
    uninterrupted.run(&resumed(None)).succeeded();
    for file in [format!("lenet_iter_{end}.caffemodel"), format!("lenet_iter_{end}.solverstate")] {
        assert!(folder.read(&file) == uninterrupted.read(&file), "{file}, seed {seed}");
    }
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
