//! Passes of a benchmark program: each case is measured several times, seconds apart, and the
//! results of its passes are merged.

use super::{Record, Survey, Timing, survey::Peaks};
use std::{
    cmp::Ordering,
    thread,
    time::{Duration, Instant},
};

/// Number of passes of a benchmark program: the least number with which two passes can agree even
/// if another program slows down one pass.
pub(super) const PASSES: usize = 3;

/// Least time between the starts of two consecutive passes. On a shared machine, another program
/// slows down a case for 0.05 s to 0.5 s, and therefore in only one of the passes.
pub(super) const MIN_PASS_TIME: Duration = Duration::from_secs(1);

/// Returns an iterator over the numbers of `count` passes, counted from 1. Before each pass but the
/// first, the iterator waits until `min_time` after the start of the previous pass. If
/// `shows_progress` is true, the iterator prints the number of each pass to standard error.
pub(super) fn passes(
    count: usize,
    min_time: Duration,
    shows_progress: bool,
) -> impl Iterator<Item = usize> {
    let mut last_start: Option<Instant> = None;
    (1..=count).inspect(move |pass| {
        if let Some(start) = last_start {
            thread::sleep(min_time.saturating_sub(start.elapsed()));
        }
        last_start = Some(Instant::now());
        if shows_progress {
            eprintln!("pass {pass} of {count}");
        }
    })
}

/// Returns the time of a case and its interval, merged from the time and the interval of each pass;
/// `None` without a pass. Other programs can only make a pass slower, so the merged time is that of
/// the fastest pass. The merged interval starts at the low end of the fastest pass's interval. The
/// merged interval ends at the high end of the fastest pass's interval or at the time of the
/// second-fastest pass, whichever is greater.
fn merge<T: Copy + PartialOrd>(passes: impl Iterator<Item = (T, [T; 2])>) -> Option<(T, [T; 2])> {
    let mut passes: Vec<_> = passes.collect();
    passes.sort_by(|a, b| a.0.partial_cmp(&b.0).unwrap_or(Ordering::Equal));
    let (time, [low, high]) = *passes.first()?;
    let high = passes.get(1).map(|pass| pass.0).filter(|second| *second > high).unwrap_or(high);
    Some((time, [low, high]))
}

/// Returns the record of a case from the records of its passes; `None` without a pass.
pub(super) fn merge_records(passes: &[Record]) -> Option<Record> {
    let times = passes.iter().map(|record| (record.seconds, record.interval));
    let (seconds, interval) = merge(times)?;
    Some(Record { seconds, interval, ..passes.first()?.clone() })
}

/// Returns the survey of a device from the surveys of its passes; `None` without a pass.
pub(super) fn merge_surveys(passes: &[Survey]) -> Option<Survey> {
    let first = passes.first()?;
    let timing = |timing: &Timing| {
        let timings = || {
            let all = passes.iter().flat_map(|survey| &survey.timings);
            all.filter(move |other| other.kernel == timing.kernel && other.size == timing.size)
        };
        let (time, interval) = merge(timings().map(|timing| (timing.time, timing.interval)))?;
        let time_with_transfers = timings().map(|timing| timing.time_with_transfers).min()?;
        Some(Timing { time, interval, time_with_transfers, ..*timing })
    };
    let timings: Vec<_> = first.timings.iter().filter_map(timing).collect();
    Some(Survey { peaks: Peaks::of(&timings), timings, ..first.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench_kit::Work;

    #[test]
    fn the_time_is_that_of_the_fastest_pass_and_the_interval_reaches_the_second() {
        let pass = |time: f64| (time, [0.9 * time, 1.1 * time]);
        let merged = |times: &[f64]| merge(times.iter().map(|time| pass(*time)));
        assert_eq!(merged(&[30.0, 10.0, 20.0]), Some((10.0, [9.0, 20.0])));
        // The high end of the fastest pass's interval exceeds the time of the second-fastest pass.
        assert_eq!(merged(&[10.5, 30.0, 10.0]), Some((10.0, [9.0, 11.0])));
        assert_eq!(merged(&[10.0]), Some((10.0, [9.0, 11.0])));
        assert_eq!(merged(&[]), None);
    }

    #[test]
    fn merged_surveys_have_the_fastest_times_and_rates() {
        let survey = |times: [u64; 2]| {
            let timings = [8, 16].into_iter().zip(times).map(|(size, nanos)| {
                let time = Duration::from_nanos(nanos);
                Timing {
                    kernel: "copy",
                    size,
                    work: Work { bytes: 1000, flops: 0 },
                    time,
                    interval: [time, time],
                    time_with_transfers: 2 * time,
                    fallback: false,
                }
            });
            let timings: Vec<_> = timings.collect();
            Survey { device: "d".into(), element: "f32", peaks: Peaks::of(&timings), timings }
        };
        let merged =
            merge_surveys(&[survey([10, 60]), survey([14, 20]), survey([30, 50])]).unwrap();
        let nanos = |time: Duration| time.as_nanos();
        let times = merged.timings.iter().map(|timing| {
            let with_transfers = nanos(timing.time_with_transfers);
            (timing.size, nanos(timing.time), timing.interval.map(nanos), with_transfers)
        });
        let expected = [(8, 10, [10, 14], 20), (16, 20, [20, 50], 40)];
        assert_eq!(times.collect::<Vec<_>>(), expected);
        assert_eq!(merged.peaks.bandwidth.round(), 1e11); // 1000 bytes in 10 ns
        assert!(merge_surveys(&[]).is_none());
    }

    #[test]
    fn passes_start_at_least_the_given_time_apart() {
        let start = Instant::now();
        let min_time = Duration::from_millis(20);
        assert_eq!(passes(2, min_time, false).collect::<Vec<_>>(), [1, 2]);
        assert!(start.elapsed() >= min_time);
    }
}
