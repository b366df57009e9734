//! Comparison of two runs of the same benchmark cases: which cases became slower or faster.

use super::Record;

/// Change of the time of one benchmark case between two runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Name of the case.
    pub case: String,
    /// Times of the earlier and of the later run, in seconds.
    pub seconds: [f64; 2],
    /// Time of the later run / time of the earlier run.
    pub ratio: f64,
    /// Relative change of the time below which the change is noise, such as 0.1.
    pub noise: f64,
}

impl Change {
    /// Returns whether the case became slower by more than the noise.
    pub fn is_slower(&self) -> bool {
        self.ratio > 1.0 + self.noise
    }

    /// Returns whether the case became faster by more than the noise.
    pub fn is_faster(&self) -> bool {
        self.ratio < 1.0 / (1.0 + self.noise)
    }
}

/// Least relative change that is not noise. The clock rate and the memory bandwidth of a shared
/// machine differ by up to 10 % between two runs.
const MIN_NOISE: f64 = 0.10;

/// Largest noise that follows from the changes of all cases, so that a change of 20 % of one
/// precisely measured case is found in a run with many noisy cases.
const MAX_RUN_NOISE: f64 = 0.15;

/// Returns the changes of the cases that occur in both runs, in descending order of the ratio of
/// times.
///
/// The noise of a case is the sum of the relative widths of the intervals of both runs, and at
/// least 10 %. The interval of a case that a [`Bench`](super::Bench) measured in several passes
/// reaches at least to the time of the second-fastest pass. A change is therefore above the noise
/// only if, in both runs, two passes differ by less than the change.
///
/// The noise is also at least the relative change of the case's limit, because a different peak
/// rate shows that the machine changed: for example, the host moved the processors of a virtual
/// machine to other caches. The noise is also at least the median change of all cases plus five
/// times their spread, up to 15 %: between two runs, the whole machine may become slower or faster.
/// The spread is 1.48 times the median absolute deviation of the logarithms of the ratios, which
/// estimates the standard deviation and ignores outliers (Rousseeuw and Croux, 1993).
///
/// ```
/// use cortado::bench_kit::{Record, compare};
///
/// let record = |seconds: f64| Record {
///     case: "gemm/f32/64".into(), kernel: "gemm".into(), element: "f32".into(),
///     device: "cpu (1 thread)".into(), size: Some(64), bytes: 49_152, flops: 524_288,
///     seconds, interval: [0.99 * seconds, 1.01 * seconds], limit_seconds: None, fallback: false,
/// };
/// let changes = compare(&[record(4e-6)], &[record(4.8e-6)]);
/// assert!(changes[0].is_slower());
/// assert!(!compare(&[record(4e-6)], &[record(4.1e-6)])[0].is_slower());
/// ```
pub fn compare(earlier: &[Record], later: &[Record]) -> Vec<Change> {
    let width = |record: &Record| {
        let [low, high] = record.interval;
        (high - low).max(0.0) / record.seconds
    };
    let limit_change = |old: &Record, new: &Record| {
        let limits = old.limit_seconds.zip(new.limit_seconds);
        limits.map_or(0.0, |(old, new)| (new / old).max(old / new) - 1.0)
    };
    let mut changes: Vec<Change> = later
        .iter()
        .filter_map(|new| {
            let old = earlier.iter().find(|old| old.case == new.case)?;
            Some(Change {
                case: new.case.clone(),
                seconds: [old.seconds, new.seconds],
                ratio: new.seconds / old.seconds,
                noise: (width(old) + width(new)).max(limit_change(old, new)),
            })
        })
        .collect();
    let logarithms: Vec<f64> = changes.iter().map(|change| change.ratio.ln()).collect();
    let centre = median(logarithms.clone());
    let deviations = logarithms.iter().map(|x| (x - centre).abs()).collect();
    let run_noise = (centre.abs() + 5.0 * 1.4826 * median(deviations)).min(MAX_RUN_NOISE);
    for change in &mut changes {
        change.noise = change.noise.max(run_noise).max(MIN_NOISE);
    }
    changes.sort_by(|a, b| b.ratio.total_cmp(&a.ratio));
    changes
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{bench_kit::passes::merge_records, op::RngKey};
    use rand_core::Rng;

    /// Number of simulated cases, about that of the benchmark `blas`.
    const CASES: usize = 180;

    /// Returns random numbers between 0 and 1.
    fn random_numbers(seed: u64) -> impl FnMut() -> f64 {
        let mut rng = RngKey::new(seed).rng();
        move || f64::from(rng.next_u32()) / f64::from(u32::MAX)
    }

    /// Returns one pass of all cases: `factor` scales the true time of each case, and `drift`
    /// scales all times. Each median has normally distributed noise of 1.5 %, and each interval is
    /// ±2 % of the median.
    fn pass(seed: u64, drift: f64, factor: impl Fn(usize) -> f64) -> Vec<Record> {
        let mut uniform = random_numbers(seed);
        let mut normal = move || (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
        let record = |i: usize| {
            let seconds = 1e-6 * (1 + i) as f64 * factor(i) * drift * (1.0 + 0.015 * normal());
            Record {
                case: format!("case {i}"),
                kernel: "k".into(),
                element: "f32".into(),
                device: "d".into(),
                size: None,
                bytes: 1,
                flops: 1,
                seconds,
                interval: [0.98 * seconds, 1.02 * seconds],
                limit_seconds: None,
                fallback: false,
            }
        };
        (0..CASES).map(record).collect()
    }

    /// Slows down some cases of a pass, like the bursts of noise on a virtual machine. A burst
    /// makes up to six neighbouring cases slower by 10 to 110 %, and about 9 % of the cases are in
    /// a burst. These figures follow from a measurement, in which 16 % of the cases of `blas`
    /// differed by more than 10 % between two passes.
    fn add_bursts(records: &mut [Record], seed: u64) {
        let mut uniform = random_numbers(seed);
        let mut factors = [1.0f64; CASES];
        for _ in 0..5 {
            let first = (uniform() * CASES as f64) as usize;
            let count = 1 + (uniform() * 6.0) as usize;
            let factor = 1.1 + uniform();
            factors.iter_mut().skip(first).take(count).for_each(|f| *f = f.max(factor));
        }
        for (record, factor) in records.iter_mut().zip(factors) {
            record.seconds *= factor;
            record.interval = record.interval.map(|time| time * factor);
        }
    }

    /// Returns the results of a benchmark program with three passes, each with bursts of noise.
    fn run(seed: u64, drift: f64, factor: impl Fn(usize) -> f64) -> Vec<Record> {
        let seeds = [seed, 1000 + seed, 2000 + seed];
        let passes = seeds.map(|seed| {
            let mut records = pass(seed, drift, &factor);
            add_bursts(&mut records, 5000 + seed);
            records
        });
        let case = |i: usize| merge_records(&passes.each_ref().map(|pass| pass[i].clone()));
        (0..CASES).filter_map(case).collect()
    }

    fn changed(earlier: &[Record], later: &[Record]) -> Vec<Change> {
        let is_changed = |change: &Change| change.is_slower() || change.is_faster();
        compare(earlier, later).into_iter().filter(is_changed).collect()
    }

    #[test]
    fn bursts_of_noise_do_not_change_the_results_of_three_passes() {
        let mut counts = [Vec::new(), Vec::new()];
        for seed in 0..40 {
            let runs = [run(seed, 1.0, |_| 1.0), run(100 + seed, 1.0, |_| 1.0)];
            let passes = [seed, 100 + seed].map(|seed| {
                let mut records = pass(seed, 1.0, |_| 1.0);
                add_bursts(&mut records, 5000 + seed);
                records
            });
            for (counts, [earlier, later]) in counts.iter_mut().zip([runs, passes]) {
                counts.push(changed(&earlier, &later).len());
            }
        }
        let [three_passes, one_pass] = counts.map(|mut counts| {
            counts.sort_unstable();
            (counts[counts.len() / 2], counts[counts.len() - 1])
        });
        assert!(three_passes.0 == 0 && three_passes.1 <= 3, "{three_passes:?}");
        assert!(one_pass.0 >= 10, "{one_pass:?}");
    }

    #[test]
    fn a_slowdown_of_20_percent_is_found_in_bursts_of_noise() {
        let slow_case = 77;
        let mut found = 0;
        for seed in 0..40 {
            let base = run(seed, 1.0, |_| 1.0);
            let slow = run(200 + seed, 1.0, |i| if i == slow_case { 1.2 } else { 1.0 });
            let case = format!("case {slow_case}");
            let changes = changed(&base, &slow);
            found += usize::from(changes.iter().any(|c| c.case == case && c.is_slower()));
        }
        // The slowdown is below the noise if bursts hit the case in two of the three passes of
        // either run, which happens in 2 · 3 · 0.09² = 5 % of the comparisons.
        assert!(found >= 34, "{found} of 40");
    }

    #[test]
    fn a_slowdown_of_20_percent_is_found_and_a_repeat_run_shows_nothing() {
        for seed in 0..20 {
            let base = pass(seed, 1.0, |_| 1.0);
            let repeat = pass(100 + seed, 1.03, |_| 1.0);
            assert_eq!(compare(&base, &repeat).len(), CASES);
            assert!(changed(&base, &repeat).is_empty());
            let slow = pass(200 + seed, 1.0, |i| if i == 77 { 1.2 } else { 1.0 });
            let slower: Vec<_> =
                compare(&base, &slow).into_iter().filter(Change::is_slower).collect();
            assert!(slower.len() == 1 && slower[0].case == "case 77", "{slower:?}");
        }
    }

    #[test]
    fn a_change_of_the_peak_rate_is_noise() {
        let mut base = pass(1, 1.0, |_| 1.0);
        base.truncate(1);
        base[0].limit_seconds = Some(0.5 * base[0].seconds);
        let mut slower = base.clone();
        slower[0].seconds *= 1.25;
        assert!(compare(&base, &slower)[0].is_slower());
        slower[0].limit_seconds = base[0].limit_seconds.map(|limit| 1.5 * limit);
        assert!(!compare(&base, &slower)[0].is_slower());
        assert!(!compare(&slower, &base)[0].is_faster());
    }

    #[test]
    fn a_noisy_case_is_not_slower() {
        let mut base = pass(1, 1.0, |_| 1.0);
        base.truncate(1);
        let mut noisy = base.clone();
        noisy[0].seconds *= 1.25;
        assert!(compare(&base, &noisy)[0].is_slower());
        noisy[0].interval = [0.5 * noisy[0].seconds, 1.2 * noisy[0].seconds];
        assert!(!compare(&base, &noisy)[0].is_slower());
        assert!(compare(&base, &[]).is_empty());
    }
}
