//! The `cortado` command, interrupted while it trains: politely and not.

use crate::command::{Folder, NET, SOLVER, message};
use cortado::{
    op::RngKey,
    proto::{self, NetParameter},
};
use rand::Rng;
use std::{
    fs,
    io::{BufRead, BufReader},
    os::unix::process::ExitStatusExt,
    process::{Command, Stdio},
    thread::sleep,
    time::{Duration, Instant, SystemTime},
};

/// Interrupts training once it has logged `line`; returns what it logs from then on.
fn interrupted_at(folder: &Folder, line: &str) -> Vec<String> {
    let mut command = folder.command("train --solver solver.prototxt");
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let running = lines.any(|logged| logged.contains(line));
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let rest: Vec<_> = lines.collect();
    let status = child.wait().unwrap();
    assert!(running && sent.success() && status.success(), "{status}: {rest:#?}");
    rest.iter().map(|line| message(line).unwrap().to_owned()).collect()
}

#[test]
fn an_interrupt_ends_training_with_a_snapshot() {
    let folder = Folder::new("interrupt");
    let long = SOLVER.replace("snapshot: 4", "").replace("test_interval: 4", "test_interval: 1000");
    folder.write_replaced("solver.prototxt", &long, "max_iter: 8", "max_iter: 1000000");
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
