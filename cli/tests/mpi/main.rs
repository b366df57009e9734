//! Tests of `cortado train` on several processes, which `mpiexec` starts.
//!
//! The environment variable `CORTADO_MPIEXEC` names the launcher; the default is `mpiexec`.
//! `.ci/mpi` runs the tests with each MPI library.

#[allow(dead_code)]
#[path = "../cli/command.rs"]
mod command;
mod failures;

use command::{Folder, NET, RunResult, SOLVER};
use std::{env, process::Command};

/// Returns a command that starts `size` processes of `cortado` in `folder`.
fn mpiexec(folder: &Folder, size: usize, args: &str) -> Command {
    let launcher = env::var("CORTADO_MPIEXEC").unwrap_or_else(|_| "mpiexec".into());
    let mut command = Command::new(launcher);
    command.args(["-n", &size.to_string(), env!("CARGO_BIN_EXE_cortado")]);
    command.args(args.split_whitespace()).current_dir(folder.path(""));
    command
}

fn run(folder: &Folder, size: usize, args: &str) -> RunResult {
    RunResult::new(args, mpiexec(folder, size, args).output().unwrap())
}

/// A solver with momentum, clipping, two batches per iteration and a test net.
fn solver() -> String {
    format!("{SOLVER}iter_size: 2\nclip_gradients: 0.5\n")
}

/// A net with dropout, whose random numbers differ for each record.
fn net() -> String {
    let dropout = r#"layer { name: "drop" type: "Dropout" bottom: "data" top: "data" }"#;
    NET.replacen("layer {\n  name: \"ip\"", &format!("{dropout}\nlayer {{\n  name: \"ip\""), 1)
}

/// Returns the bytes of the snapshots of a run.
fn snapshots(folder: &Folder) -> Vec<(String, Vec<u8>)> {
    let files = [folder.files(".caffemodel"), folder.files(".solverstate")].concat();
    files.into_iter().map(|file| (file.clone(), folder.read(&file))).collect()
}

#[test]
fn snapshots_do_not_depend_on_the_number_of_processes() {
    let folder = |name: &str| {
        let folder = Folder::new(name);
        folder.write("solver.prototxt", solver());
        folder.write("net.prototxt", net());
        folder
    };
    // Without mpiexec, so that the results of all MPI libraries are compared with one run.
    let alone = folder("mpi-alone");
    let args = "train --solver solver.prototxt --shards 4 --threads 1";
    alone.run(args).succeeded();
    let expected = snapshots(&alone);
    assert_eq!(expected.len(), 4);
    for size in [1, 2, 4] {
        let folder = folder(&format!("mpi-{size}"));
        let result = run(&folder, size, args).succeeded();
        assert!(snapshots(&folder) == expected, "{size} processes");
        // Only process 0 logs the run.
        let displays = result.log.iter().filter(|line| line.contains(", lr = ")).count();
        assert_eq!(displays, 4, "{:#?}", result.log);
        let waits = result.log.iter().filter(|line| line.contains("Waited for other processes"));
        assert_eq!(waits.count(), if size == 1 { 0 } else { 4 });
        let is_exchange = |line: &&String| line.contains("Exchanged with other processes: ");
        let exchanges = result.log.iter().filter(is_exchange).count();
        assert_eq!(exchanges, if size == 1 { 0 } else { 4 });
    }
}

#[test]
fn the_default_number_of_shards_is_the_number_of_processes() {
    let processes = Folder::new("mpi-default-shards");
    run(&processes, 2, "train --solver solver.prototxt").succeeded();
    let alone = Folder::new("mpi-two-shards");
    alone.run("train --solver solver.prototxt --shards 2").succeeded();
    assert!(snapshots(&processes) == snapshots(&alone));
    // A run goes on with the number of shards in the snapshot.
    processes.write("solver.prototxt", SOLVER.replace("max_iter: 8", "max_iter: 12"));
    alone.write("solver.prototxt", SOLVER.replace("max_iter: 8", "max_iter: 12"));
    let resume = "train --solver solver.prototxt --snapshot lenet_iter_8.solverstate";
    processes.run(resume).succeeded();
    run(&alone, 2, resume).succeeded();
    assert!(snapshots(&processes) == snapshots(&alone));
}

#[test]
fn time_prints_one_report_with_the_time_of_the_communication() {
    let folder = Folder::new("mpi-time");
    let result = run(&folder, 2, "time --model net.prototxt --iterations 3");
    assert_eq!(result.code, Some(0), "{result:#?}");
    let lines = |start: &str| result.out.lines().filter(|line| line.starts_with(start)).count();
    assert_eq!(lines("Forward and backward: "), 1, "{}", result.out);
    assert_eq!(lines("Communication, sum of the gradients of 2 processes: "), 1, "{}", result.out);
}
