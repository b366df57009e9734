//! The `cortado` command, interrupted while it trains: politely and not.

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

/// A run of `train` that is watched.
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

    /// Waits until it logs this.
    fn until(&mut self, line: &str) {
        assert!(self.lines.any(|logged| logged.unwrap().contains(line)), "{line}");
    }

    fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([name, &id]).status().unwrap().success());
    }

    /// The exit status and what it logs from now on.
    fn end(mut self) -> (ExitStatus, Vec<String>) {
        let rest = self.lines.map(|line| message(&line.unwrap()).unwrap().to_owned()).collect();
        (self.child.wait().unwrap(), rest)
    }
}

/// Interrupts training once it has logged `line`; returns what it logs from then on.
fn interrupted_at(folder: &Folder, line: &str) -> Vec<String> {
    let mut running = Running::start(folder, "");
    running.until(line);
    running.signal("-INT");
    let (status, rest) = running.end();
    assert!(status.success(), "{status}: {rest:#?}");
    rest
}

/// A solver that would take hours, and writes no snapshots on its own.
fn endless() -> String {
    let long = SOLVER.replace("snapshot: 4", "").replace("test_interval: 4", "test_interval: 1000");
    long.replace("max_iter: 8", "max_iter: 100000000")
}

#[test]
fn an_interrupt_ends_training_with_a_snapshot() {
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

/// The test would take hours.
#[test]
fn an_interrupt_ends_a_test_as_well() {
    let folder = Folder::new("interrupt-test");
    folder.write_replaced("solver.prototxt", SOLVER, "test_iter: 2", "test_iter: 100000000");
    let rest = interrupted_at(&folder, "Testing net (#0)");
    assert_eq!(rest, ["Test interrupted.", "Optimization stopped early."]);
}

/// The signal, the flags with which it asks for a snapshot, and what it does.
#[test]
fn signals_do_what_flags_say() {
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
        running.until("Iteration 2, lr = ");
        running.signal(signal);
        if writes {
            running.until("Snapshotting solver state");
        }
        running.until(", lr = "); // it goes on
        running.signal("-TERM");
        let (status, rest) = running.end();
        assert!(status.success(), "{signal} {flags}: {status}: {rest:#?}");
        assert_eq!(rest.last().unwrap(), "Optimization stopped early.");
        let written = folder.files(".solverstate");
        // The last one is that of the end.
        assert_eq!(written.len(), 1 + usize::from(writes), "{signal} {flags}: {written:?}");
        written.iter().for_each(|state| fs::remove_file(folder.path(state)).unwrap());
    }
    let stop = "train --solver solver.prototxt --sighup-effect stopp";
    folder.run(stop).refused_with(&["'stopp'", "none, stop, snapshot"]);
}

/// An iteration of so many batches would never hear the first signal.
#[test]
fn a_second_interrupt_leaves_at_once() {
    let folder = Folder::new("interrupt-twice");
    folder.write("solver.prototxt", format!("{} iter_size: 1000000000", endless()));
    for (signal, code) in [("-INT", 130), ("-TERM", 143)] {
        let mut running = Running::start(&folder, "");
        running.until("Learning Rate Policy");
        sleep(Duration::from_millis(100));
        running.signal(signal);
        running.signal("-HUP");
        sleep(Duration::from_millis(100));
        assert_eq!(running.child.try_wait().unwrap(), None);
        running.signal(signal);
        let (status, _) = running.end();
        assert_eq!(status.code(), Some(code));
    }
    assert_eq!(folder.files(".caffemodel"), [""; 0]);
}

/// Kills of one run.
const KILLS: usize = 50;

/// A process that writes a snapshot after each update is killed at random moments and goes on from
/// its last snapshot: in the end it has the bits of one that was never killed.
#[test]
fn a_run_killed_over_and_over_ends_as_the_unbroken_one() {
    let seed = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64;
    println!("seed {seed}");
    let mut rng = RngKey::new(seed).rng();
    let solver = |snapshot: usize, max_iter: usize| {
        let tests = SOLVER.replace("test_iter: 2\ntest_interval: 4\n", "");
        let solver = tests.replace("snapshot: 4", &format!("snapshot: {snapshot}"));
        solver.replace("max_iter: 8", &format!("max_iter: {max_iter}"))
    };
    let folder = Folder::new("killed");
    // Data start again from the first record: each batch is all of them.
    let net = NET.replace("count=200", "count=8");
    folder.write("net.prototxt", &net);
    folder.write("solver.prototxt", solver(1, 1_000_000));
    let resumed = |from: Option<usize>| {
        let state = from.map(|n| format!(" --snapshot lenet_iter_{n}.solverstate"));
        format!("train --threads 1 --solver solver.prototxt{}", state.unwrap_or_default())
    };
    // From start to third snapshot, to know what a random moment is.
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
        let newest = tidied(&folder);
        longest = longest.max(newest - last.unwrap_or(0));
        last = Some(newest);
    }
    let end = last.unwrap() + 3;
    println!("{KILLS} kills, {end} updates, {longest} at most between two kills");
    folder.write("solver.prototxt", solver(1, end));
    folder.run(&resumed(last)).succeeded();

    let unbroken = Folder::new("killed-not");
    unbroken.write("net.prototxt", &net);
    unbroken.write("solver.prototxt", solver(0, end));
    unbroken.run(&resumed(None)).succeeded();
    for file in [format!("lenet_iter_{end}.caffemodel"), format!("lenet_iter_{end}.solverstate")] {
        assert!(folder.read(&file) == unbroken.read(&file), "{file}, seed {seed}");
    }
}

/// The iteration of the newest state. All states are whole, and so are the weights they name; older
/// ones are removed.
fn tidied(folder: &Folder) -> usize {
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
