//! Benchmark of cortado against other libraries. Every round of a case runs all libraries, so that
//! changes in the machine's speed affect all libraries alike. Without filters, the program adds the
//! results to the report of cortado's benchmarks.
//!
//! `cargo run --release -- [--threads N] [--rounds N] [--least] [FILTER …]`

use cortado::{
    bench_kit::{self, Part, PeerTimes, report_folder},
    host::Workers,
};
use cortado_peers::{Case, Peers, Run, Work, cases};
use std::{
    env,
    hint::black_box,
    path::Path,
    process::ExitCode,
    time::{Duration, Instant},
};

struct Options {
    threads: usize,
    rounds: usize,
    /// Whether to report minimum times instead of medians. Minimum times vary less than medians on
    /// a busy machine.
    minimum: bool,
    /// Substrings that select benchmark cases by name. The program runs only cases whose name
    /// contains one of the substrings, or all cases if the list is empty.
    name_parts: Vec<String>,
}

fn parse_options() -> Result<Options, String> {
    let mut options = Options { threads: 1, rounds: 15, minimum: false, name_parts: Vec::new() };
    let mut arguments = env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let number = match argument.as_str() {
            "--threads" => &mut options.threads,
            "--rounds" => &mut options.rounds,
            "--least" => {
                options.minimum = true;
                continue;
            }
            flag if flag.starts_with('-') => return Err(format!("{flag}: unknown option")),
            part => {
                options.name_parts.push(part.into());
                continue;
            }
        };
        let value = arguments.next().unwrap_or_default();
        *number = match value.parse() {
            Ok(count) if count > 0 => count,
            _ => return Err(format!("{argument}: expected a positive number, found {value:?}")),
        };
    }
    Ok(options)
}

/// Returns a number of calls that together take at least a millisecond, which the clock measures
/// accurately.
fn repetitions(run: &mut Run) -> u32 {
    (run.call)();
    let mut count = 1;
    loop {
        let start = Instant::now();
        (0..count).for_each(|_| (run.call)());
        let time = start.elapsed();
        if time > Duration::from_millis(1) || count > 1 << 20 {
            return count;
        }
        count *= 2;
    }
}

/// Returns the time per call of each run in seconds: the median over the rounds, or the minimum.
fn measure(runs: &mut [Run], options: &Options) -> Vec<f64> {
    let counts: Vec<_> = runs.iter_mut().map(repetitions).collect();
    let mut times = vec![Vec::new(); runs.len()];
    for round in 0..options.rounds {
        // Each round starts with a different library, because the preceding library determines
        // which parts of the operands are in the last-level cache.
        for turn in 0..runs.len() {
            let index = (round + turn) % runs.len();
            let (run, count) = (&mut runs[index], counts[index]);
            // An untimed call fills the caches with the operands of the timed calls.
            (run.call)();
            let start = Instant::now();
            (0..count).for_each(|_| black_box(&mut run.call)());
            times[index].push(start.elapsed().as_secs_f64() / f64::from(count));
        }
    }
    times.iter_mut().for_each(|times| times.sort_by(f64::total_cmp));
    times.iter().map(|times| times[if options.minimum { 0 } else { times.len() / 2 }]).collect()
}

/// Returns the times of a case for the report. `copy` is no other library: it only shows the limit
/// of the memory bandwidth.
fn peer_times(case: &Case, threads: usize, runs: &[Run], times: &[f64]) -> PeerTimes {
    let others = runs.iter().zip(times).skip(1).filter(|(run, _)| run.library != "copy");
    let work = match case.work {
        Work::Flops(flops) => bench_kit::Work { bytes: 0, flops },
        Work::Bytes(bytes) => bench_kit::Work { bytes, flops: 0 },
    };
    PeerTimes {
        kernel: case.group.into(),
        case: case.name.clone(),
        threads,
        work,
        seconds: times[0],
        others: others.map(|(run, &seconds)| (run.library.into(), seconds)).collect(),
    }
}

/// Adds the times to the report in the folder that `CARGO_TARGET_DIR` names, or in the folder
/// `target` of cortado, where its other benchmarks store their results.
fn store(threads: usize, peers: Vec<PeerTimes>) -> cortado::Result<()> {
    let folder = match env::var_os("CARGO_TARGET_DIR") {
        Some(_) => report_folder(),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/report"),
    };
    let part = Part { peers, ..Part::of("peers", &threads.to_string()) };
    println!("report: {}", part.store(&folder, false)?.display());
    Ok(())
}

fn main() -> ExitCode {
    let options = match parse_options() {
        Ok(options) => options,
        Err(error) => {
            eprintln!("{error}\nusage: [--threads N] [--rounds N] [--least] [FILTER …]");
            return ExitCode::from(2);
        }
    };
    let peers = Peers::find();
    let workers = match Workers::new(options.threads) {
        Ok(workers) => workers,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    peers.set_threads(options.threads);
    for library in &peers.libraries {
        if let Some(core) = library.core_name() {
            println!("{}: kernels for {core}", library.name);
        }
    }
    println!(
        "threads: {}; for each library: rate, and cortado's rate divided by the library's rate",
        options.threads
    );
    let mut ratios: Vec<(&str, &str, f64)> = Vec::new();
    let mut results = Vec::new();
    for case in cases() {
        let name = format!("{}/{}", case.group, case.name);
        let parts = &options.name_parts;
        if !parts.is_empty() && !parts.iter().any(|part| name.contains(part)) {
            continue;
        }
        let mut runs = (case.runs)(&peers, &workers);
        let times = measure(&mut runs, &options);
        results.push(peer_times(&case, options.threads, &runs, &times));
        let (amount, unit) = match case.work {
            Work::Flops(flops) => (flops, "GFLOP/s"),
            Work::Bytes(bytes) => (bytes, "GB/s"),
        };
        let rate = |time: f64| amount as f64 / time * 1e-9;
        print!("{name:<34} {:8.2} {unit:<7}", rate(times[0]));
        for (run, &time) in runs.iter().zip(&times).skip(1) {
            print!("  {} {:.2} {:.2}x", run.library, rate(time), time / times[0]);
            ratios.push((case.group, run.library, time / times[0]));
        }
        println!();
    }
    println!("\ngeometric mean and minimum of the ratios");
    ratios.sort_by_key(|&(group, library, _)| (group, library));
    for ratios in ratios.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
        let mean = ratios.iter().map(|(.., ratio)| ratio.ln()).sum::<f64>() / ratios.len() as f64;
        let min = ratios.iter().map(|&(.., ratio)| ratio).fold(f64::MAX, f64::min);
        println!("{:<16} {:<16} {:.2} {min:.2}", ratios[0].0, ratios[0].1, mean.exp());
    }
    // A part of the cases would replace the results of a full run.
    if options.name_parts.is_empty()
        && let Err(error) = store(options.threads, results)
    {
        eprintln!("{error}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
