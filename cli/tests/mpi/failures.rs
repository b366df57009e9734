//! Tests of runs in which a process fails, is killed, or differs from the others.

use crate::{NET, SOLVER, command::Folder, mpiexec, run, snapshots};
use std::{
    fs,
    hash::{BuildHasher, RandomState},
    path::PathBuf,
    process::{Command, ExitStatus, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

/// Longest time from the end of one process to the end of all.
const END: Duration = Duration::from_secs(10);

/// Returns the ids of the processes of `cortado` whose working directory is `folder`.
fn process_ids(folder: &Folder) -> Vec<String> {
    let folder = fs::canonicalize(folder.path("")).unwrap();
    let is_cortado = |process: &PathBuf| {
        fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd == folder)
            && fs::read_to_string(process.join("comm")).is_ok_and(|name| name.trim() == "cortado")
    };
    let entries = fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path());
    let processes = entries.filter(is_cortado);
    processes.map(|path| path.file_name().unwrap().to_str().unwrap().to_owned()).collect()
}

/// Returns a random number below `end`.
fn random_below(end: u64) -> u64 {
    RandomState::new().hash_one(()) % end
}

/// Trains with `size` processes, and sends SIGKILL to one of them at a random time after the first
/// snapshot. Returns the exit status of mpiexec.
fn kill_one(folder: &Folder, size: usize) -> ExitStatus {
    let mut command =
        mpiexec(folder, size, "train --solver solver.prototxt --shards 4 --threads 1");
    let mut child = command.stderr(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    while folder.files(".solverstate").is_empty() {
        assert!(child.try_wait().unwrap().is_none(), "ended before the first snapshot");
        sleep(Duration::from_millis(5));
    }
    sleep(Duration::from_millis(random_below(300)));
    let processes = process_ids(folder);
    assert_eq!(processes.len(), size);
    let victim = &processes[random_below(size as u64) as usize];
    assert!(Command::new("kill").args(["-KILL", victim]).status().unwrap().success());
    let start = Instant::now();
    let status = child.wait().unwrap();
    while !process_ids(folder).is_empty() {
        assert!(start.elapsed() < END, "processes are left: {:?}", process_ids(folder));
        sleep(Duration::from_millis(10));
    }
    assert!(start.elapsed() < END, "ended after {:?}", start.elapsed());
    status
}

#[test]
fn a_killed_process_ends_all_and_the_run_resumes_with_another_number_of_processes() {
    let solver = SOLVER.replace("max_iter: 8", "max_iter: 1500");
    let solver = solver.replace("snapshot: 4", "snapshot: 100").replace("display: 2", "display: 0");
    let solver = solver.replace("test_interval: 4", "test_interval: 500");
    let expected = Folder::new("mpi-not-killed");
    expected.write("solver.prototxt", &solver);
    expected.run("train --solver solver.prototxt --shards 4 --threads 1").succeeded();
    for (size, other_size) in [(4, 2), (2, 1), (2, 4)] {
        let folder = Folder::new(&format!("mpi-killed-{size}-{other_size}"));
        folder.write("solver.prototxt", &solver);
        let status = kill_one(&folder, size);
        assert!(!status.success(), "{status}");
        let iteration =
            |file: &str| file.trim_matches(|c: char| !c.is_ascii_digit()).parse::<u32>();
        let states = folder.files(".solverstate").into_iter();
        let last = states.max_by_key(|file| iteration(file).unwrap()).unwrap();
        let args = format!("train --solver solver.prototxt --threads 1 --snapshot {last}");
        run(&folder, other_size, &args).succeeded();
        for file in ["lenet_iter_1500.caffemodel", "lenet_iter_1500.solverstate"] {
            assert!(folder.read(file) == expected.read(file), "{file}, {size} to {other_size}");
        }
    }
}

#[test]
fn sigint_to_one_process_stops_all_with_one_snapshot() {
    let folder = Folder::new("mpi-interrupted");
    let solver =
        SOLVER.replace("max_iter: 8", "max_iter: 1000000").replace("display: 2", "display: 0");
    folder.write("solver.prototxt", solver.replace("test_interval: 4", "test_interval: 1000000"));
    let mut child = mpiexec(&folder, 2, "train --solver solver.prototxt --snapshot-keep 1");
    let mut child = child.stderr(Stdio::null()).spawn().unwrap();
    while folder.files(".solverstate").is_empty() {
        assert!(child.try_wait().unwrap().is_none(), "ended before the first snapshot");
        sleep(Duration::from_millis(5));
    }
    let processes = process_ids(&folder);
    let receiver = &processes[random_below(2) as usize];
    assert!(Command::new("kill").args(["-INT", receiver]).status().unwrap().success());
    let start = Instant::now();
    let status = child.wait().unwrap();
    assert!(status.success() && start.elapsed() < END, "{status}");
    // All processes have stopped after the same iteration.
    let [_, _] = &snapshots(&folder)[..] else { panic!("{:?}", folder.files("")) };
}

/// Runs one process with each of two solver definitions, and returns the error lines of `cortado`.
fn errors_of_different_runs(folder: &Folder, args: &str, other_args: &str) -> Vec<String> {
    let mut command = mpiexec(folder, 1, args);
    command.args([":", "-n", "1", env!("CARGO_BIN_EXE_cortado")]);
    let start = Instant::now();
    let output = command.args(other_args.split_whitespace()).output().unwrap();
    assert!(!output.status.success() && start.elapsed() < END);
    assert!(snapshots(folder).is_empty());
    let text = String::from_utf8(output.stderr).unwrap();
    text.lines().filter(|line| line.starts_with("cortado: ")).map(str::to_owned).collect()
}

#[test]
fn processes_with_different_definitions_or_shards_are_refused_with_one_error() {
    let folder = Folder::new("mpi-different");
    folder.write("other.prototxt", SOLVER.replace("base_lr: 0.01", "base_lr: 0.02"));
    let args = "train --solver solver.prototxt";
    let errors = errors_of_different_runs(&folder, args, "train --solver other.prototxt");
    let [error] = &errors[..] else { panic!("{errors:#?}") };
    assert!(error.contains("process 1: digest of the solver's definition"), "{error}");
    let errors = errors_of_different_runs(&folder, args, &format!("{args} --shards 4"));
    let [error] = &errors[..] else { panic!("{errors:#?}") };
    assert!(error.contains("process 1: shards: expected 2 as in process 0, found 4"), "{error}");
}

#[test]
fn an_error_of_one_process_ends_all_with_one_message_that_names_the_process() {
    let folder = Folder::new("mpi-error");
    let args = "train --solver solver.prototxt";
    let errors = errors_of_different_runs(&folder, args, "train --solver missing.prototxt");
    let [error] = &errors[..] else { panic!("{errors:#?}") };
    assert!(error.starts_with("cortado: process 1: missing.prototxt: "), "{error}");
    // All processes fail, but only process 0 reports the error.
    folder.write("net.prototxt", NET.replace("SoftmaxWithLoss", "SoftmaxWithLos"));
    let errors = errors_of_different_runs(&folder, args, args);
    let [error] = &errors[..] else { panic!("{errors:#?}") };
    assert!(error.contains("process 0: ") && error.contains("SoftmaxWithLos"), "{error}");
}

#[test]
fn three_processes_are_refused() {
    let folder = Folder::new("mpi-three");
    let result = run(&folder, 3, "train --solver solver.prototxt");
    assert_ne!(result.code, Some(0));
    let errors: Vec<_> = result.err.iter().filter(|line| line.starts_with("cortado: ")).collect();
    let [error] = &errors[..] else { panic!("{result:#?}") };
    assert!(error.contains("power of two"), "{error}");
}
