//! Input data and timing that the programs of all frameworks share.

use std::{
    env, fs,
    hint::black_box,
    time::{Duration, Instant},
};

/// Folder to which cortado's program `export` writes its files.
pub const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../data");

/// Image that the program `classify` of each framework classifies.
pub const IMAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../examples/digits/seven.png");

/// Number of points for which cortado's program `export` writes random numbers.
pub const MAX_POINTS: usize = 100_000;

/// Returns the number in the environment variable `variable`, or `None` if it is not set.
fn number(variable: &str) -> Option<usize> {
    env::var(variable).ok().map(|text| text.parse().expect("the variable holds a number"))
}

/// Returns the number of points to classify: the value of the environment variable `POINTS` (200 if
/// it is not set), but at most `MAX_POINTS`.
pub fn points() -> usize {
    number("POINTS").unwrap_or(200).min(MAX_POINTS)
}

/// Returns two random numbers for each point, the same numbers for all frameworks.
pub fn noise() -> Vec<f32> {
    let path = format!("{DATA}/noise.f32");
    let bytes = fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}; run `export`"));
    let numbers = bytes.chunks_exact(4).map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap()));
    numbers.take(2 * points()).collect()
}

/// Times `work`, each call of which processes `units` items, and prints the median time per item in
/// milliseconds. `unit` is the word for an item, such as `image`. The environment variable `ROUNDS`
/// gives the number of timed rounds; without it, this function does nothing.
pub fn time<T>(unit: &str, units: usize, mut work: impl FnMut() -> T) {
    let Some(rounds) = number("ROUNDS") else { return };
    let mut duration_of = |calls: usize| {
        let start = Instant::now();
        (0..calls).for_each(|_| drop(black_box(work())));
        start.elapsed()
    };
    let mut calls = 1;
    while duration_of(calls) < Duration::from_millis(20) {
        calls *= 2;
    }
    let mut durations: Vec<_> = (0..rounds.max(1)).map(|_| duration_of(calls)).collect();
    durations.sort();
    let median = durations[durations.len() / 2].as_secs_f64() * 1e3 / (calls * units) as f64;
    println!("{median:.6} ms per {unit}");
}
