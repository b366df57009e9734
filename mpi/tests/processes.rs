//! Tests of `MpiCommunicator` between processes that `mpiexec` starts.
//!
//! The program starts itself through `mpiexec`, or the program that the environment variable
//! `CORTADO_MPIEXEC` names. `.ci/mpi` runs the program with each MPI library.

use cortado::{
    Result,
    communicator::{Communicator, all_gather, sum_tree},
    conformance::check_communicator,
};
use cortado_mpi::{Mpi, MpiCommunicator};
use std::{
    env,
    process::{self, Command, ExitStatus},
    thread,
    time::{Duration, Instant},
};

/// A part of a test, which each process of a run executes.
type Process = fn(MpiCommunicator) -> Result<MpiCommunicator>;

/// Processes that exchange data and succeed.
const SUCCESSFUL: [(&str, Process); 4] = [
    ("kit", kit),
    ("exchanges", exchanges),
    ("collectives", collectives),
    ("wrong_lengths", wrong_lengths),
];

/// The status of a process that fails on purpose.
const FAILURE: u8 = 7;

/// Time within which all processes must end after one process has failed.
const END: Duration = Duration::from_secs(10);

fn main() {
    match env::args().nth(1) {
        Some(name) if name == "exit" || name == "abort" => fail(&name),
        Some(name) if SUCCESSFUL.iter().any(|(known, _)| *known == name) => succeed(&name),
        // Arguments of `cargo test`, such as `--nocapture`, are ignored.
        _ => run_all(),
    }
}

fn run_all() {
    for size in [1, 2, 4] {
        for (name, _) in SUCCESSFUL {
            let status = mpiexec(size, name);
            assert!(status.success(), "{name} with {size} processes: {status}");
            println!("{name} with {size} processes: ok");
        }
    }
    for name in ["exit", "abort"] {
        for size in [2, 4] {
            let start = Instant::now();
            let status = mpiexec(size, name);
            let elapsed = start.elapsed();
            assert!(!status.success(), "{name} with {size} processes succeeded");
            assert!(elapsed < END, "{name} with {size} processes: ended after {elapsed:?}");
            println!("{name} with {size} processes: ok");
        }
    }
}

fn mpiexec(size: usize, name: &str) -> ExitStatus {
    let launcher = env::var("CORTADO_MPIEXEC").unwrap_or_else(|_| "mpiexec".into());
    let mut command = Command::new(&launcher);
    command.args(["-n", &size.to_string()]).arg(env::current_exe().unwrap()).arg(name);
    command.status().unwrap_or_else(|error| panic!("{launcher}: {error}"))
}

/// Executes one process in a thread of its own, as a solver does.
fn succeed(name: &str) {
    let (mpi, communicator) = Mpi::init().unwrap();
    assert!(Mpi::init().is_err());
    let expected: usize =
        env::var("OMPI_COMM_WORLD_SIZE").or(env::var("PMI_SIZE")).unwrap().parse().unwrap();
    assert_eq!((mpi.size(), mpi.host_size()), (expected, expected));
    assert_eq!(mpi.rank(), mpi.host_rank());
    assert!(mpi.library_version().contains("MPI"), "{}", mpi.library_version());
    let (_, process) = SUCCESSFUL.iter().find(|(known, _)| *known == name).unwrap();
    let communicator = thread::spawn(|| process(communicator).unwrap()).join().unwrap();
    drop(communicator);
    mpi.finalize().unwrap();
}

/// One process fails while the others wait for it.
fn fail(name: &str) {
    let (mpi, mut communicator) = Mpi::init().unwrap();
    let peer = mpi.rank() ^ 1;
    if mpi.rank() == mpi.size() - 1 {
        thread::sleep(Duration::from_millis(300));
        if name == "abort" {
            mpi.abort(FAILURE);
        }
        process::exit(FAILURE.into());
    }
    // A process whose peer is alive exchanges messages until the run is aborted.
    loop {
        if communicator.exchange(peer, &[0], &mut [0]).is_err() {
            thread::sleep(Duration::from_secs(60));
        }
    }
}

/// Returns a message that differs for each sender, receiver and length.
fn message(from: usize, to: usize, len: usize) -> Vec<u8> {
    (0..len).map(|index| (index * 31 + from * 7 + to * 3 + len) as u8).collect()
}

/// Runs the checks of the conformance kit, which need at least two processes.
fn kit(mut communicator: MpiCommunicator) -> Result<MpiCommunicator> {
    if communicator.size() > 1 {
        check_communicator(&mut communicator)?;
    }
    Ok(communicator)
}

/// Exchanges messages of many lengths, which differ in the two directions, between all pairs.
fn exchanges(mut communicator: MpiCommunicator) -> Result<MpiCommunicator> {
    let (rank, size) = (communicator.rank(), communicator.size());
    for distance in 1..size {
        let peer = rank ^ distance;
        for [lower, upper] in [[0, 0], [1, 0], [0, 5], [7, 7], [1000, 3], [100_000, 3_000_001]] {
            let (len, other_len) = if rank < peer { (lower, upper) } else { (upper, lower) };
            let mut received = vec![0; other_len];
            communicator.exchange(peer, &message(rank, peer, len), &mut received)?;
            assert!(received == message(peer, rank, other_len), "{rank} and {peer}: {other_len}");
        }
    }
    for peer in [rank, size] {
        let error = communicator.exchange(peer, &[], &mut []).unwrap_err().to_string();
        assert!(error.contains("another process below"), "{error}");
    }
    Ok(communicator)
}

/// Adds values whose sum depends on the order of the additions, and gathers messages.
fn collectives(mut communicator: MpiCommunicator) -> Result<MpiCommunicator> {
    let (rank, size) = (communicator.rank(), communicator.size());
    let value = |rank: usize, index: usize| {
        let hash = (rank * 1009 + index).wrapping_mul(2_654_435_761) as u32;
        (hash as f32 / 2f32.powi(31) - 1.0) * 10f32.powi((hash % 7) as i32)
    };
    for count in [0, 1, 3, 1000, 100_003] {
        let mut values: Vec<f32> = (0..count).map(|index| value(rank, index)).collect();
        sum_tree(&mut communicator, &mut values)?;
        for (index, &sum) in values.iter().enumerate() {
            let mut parts: Vec<f32> = (0..size).map(|rank| value(rank, index)).collect();
            while parts.len() > 1 {
                parts = parts.chunks(2).map(|pair| pair[0] + pair[1]).collect();
            }
            assert_eq!(sum.to_bits(), parts[0].to_bits(), "value {index} of {count}");
        }
    }
    let gathered = all_gather(&mut communicator, &message(rank, 0, 100 * rank))?;
    let expected: Vec<_> = (0..size).map(|rank| message(rank, 0, 100 * rank)).collect();
    assert_eq!(gathered, expected);
    Ok(communicator)
}

/// A message of a wrong length fails in its receiver, and the next exchange succeeds.
fn wrong_lengths(mut communicator: MpiCommunicator) -> Result<MpiCommunicator> {
    let rank = communicator.rank();
    let peer = rank ^ 1;
    if peer >= communicator.size() {
        return Ok(communicator);
    }
    for (sent, expected) in [(2, 3), (3, 2), (0, 1), (100_000, 50_000)] {
        // The lower rank receives another number of bytes than the upper rank sends.
        let (len, other_len) = if rank < peer { (1, expected) } else { (sent, 1) };
        let mut received = vec![0; other_len];
        let result = communicator.exchange(peer, &message(rank, peer, len), &mut received);
        let start = format!("process {rank}: exchange with process {peer}: ");
        match result {
            Ok(()) => assert!(rank > peer, "{sent} bytes instead of {expected}"),
            Err(error) => {
                assert!(rank < peer && error.to_string().starts_with(&start), "{error}");
                let end = format!("expected {expected} bytes, received {sent} bytes");
                assert!(error.to_string().contains(&end), "{error}");
            }
        }
    }
    let mut received = [0];
    communicator.exchange(peer, &[rank as u8], &mut received)?;
    assert_eq!(received, [peer as u8]);
    Ok(communicator)
}
