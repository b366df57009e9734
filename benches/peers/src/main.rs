//! Ratios: every case by everybody in turn, so that all of them see the same machine.
//!
//! `cargo run --release -- [--threads N] [--rounds N] [--least] [PART-OF-A-NAME …]`

use cortado::host::Workers;
use cortado_peers::{Peers, Run, Work, cases};
use std::{
    hint::black_box,
    process::ExitCode,
    time::{Duration, Instant},
};

struct Options {
    threads: usize,
    rounds: usize,
    /// Which of the sorted times counts: on a busy machine the least tells more.
    least: bool,
    parts: Vec<String>,
}

fn options() -> Result<Options, String> {
    let mut options = Options { threads: 1, rounds: 15, least: false, parts: Vec::new() };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let number = match argument.as_str() {
            "--threads" => &mut options.threads,
            "--rounds" => &mut options.rounds,
            "--least" => {
                options.least = true;
                continue;
            }
            flag if flag.starts_with('-') => return Err(format!("no such option: {flag}")),
            part => {
                options.parts.push(part.into());
                continue;
            }
        };
        let value = arguments.next().unwrap_or_default();
        *number = match value.parse() {
            Ok(count) if count > 0 => count,
            _ => return Err(format!("{argument} takes a count, not {value:?}")),
        };
    }
    Ok(options)
}

/// How often to run for about a millisecond, which the clock can tell.
fn repetitions(run: &mut Run) -> u32 {
    (run.once)();
    let mut count = 1;
    loop {
        let start = Instant::now();
        (0..count).for_each(|_| (run.once)());
        let time = start.elapsed();
        if time > Duration::from_millis(1) || count > 1 << 20 {
            return count;
        }
        count *= 2;
    }
}

/// Seconds of one run of each: the median over the rounds, or the least.
fn times(runs: &mut [Run], options: &Options) -> Vec<f64> {
    let counts: Vec<_> = runs.iter_mut().map(repetitions).collect();
    let mut times = vec![Vec::new(); runs.len()];
    for round in 0..options.rounds {
        // The next one begins: what the last cache holds of the largest operands hangs on who came
        // before.
        for turn in 0..runs.len() {
            let who = (round + turn) % runs.len();
            let (run, count) = (&mut runs[who], counts[who]);
            // Caches are as it leaves them itself, not as who came before does.
            (run.once)();
            let start = Instant::now();
            (0..count).for_each(|_| black_box(&mut run.once)());
            times[who].push(start.elapsed().as_secs_f64() / f64::from(count));
        }
    }
    times.iter_mut().for_each(|times| times.sort_by(f64::total_cmp));
    times.iter().map(|times| times[if options.least { 0 } else { times.len() / 2 }]).collect()
}

fn main() -> ExitCode {
    let options = match options() {
        Ok(options) => options,
        Err(error) => {
            eprintln!("{error}\nusage: [--threads N] [--rounds N] [--least] [PART-OF-A-NAME …]");
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
    peers.threads(options.threads);
    println!(
        "threads: {}; each peer: its rate, and how many times as fast cortado is",
        options.threads
    );
    let mut ratios: Vec<(&str, &str, f64)> = Vec::new();
    for case in cases() {
        let name = format!("{}/{}", case.group, case.name);
        if !options.parts.is_empty() && !options.parts.iter().any(|part| name.contains(part)) {
            continue;
        }
        let mut runs = (case.runs)(&peers, &workers);
        let times = times(&mut runs, &options);
        let (amount, unit) = match case.work {
            Work::Flops(flops) => (flops, "Gflop/s"),
            Work::Bytes(bytes) => (bytes, "GB/s"),
        };
        let rate = |time: f64| amount as f64 / time * 1e-9;
        print!("{name:<34} {:8.2} {unit:<7}", rate(times[0]));
        for (run, &time) in runs.iter().zip(&times).skip(1) {
            print!("  {} {:.2} {:.2}x", run.who, rate(time), time / times[0]);
            ratios.push((case.group, run.who, time / times[0]));
        }
        println!();
    }
    println!("\ngeometric means, and least");
    ratios.sort_by_key(|&(group, who, _)| (group, who));
    for part in ratios.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
        let mean = part.iter().map(|(.., ratio)| ratio.ln()).sum::<f64>() / part.len() as f64;
        let least = part.iter().map(|&(.., ratio)| ratio).fold(f64::MAX, f64::min);
        println!("{:<16} {:<16} {:.2} {least:.2}", part[0].0, part[0].1, mean.exp());
    }
    ExitCode::SUCCESS
}
