//! Comparison of two runs of the same benchmark cases: which cases became slower or faster.

use super::Record;

/// Change of the time of one benchmark case between two runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Name of the case.
    pub case: String,
    /// Median times in seconds, of the earlier and of the later run.
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
/// The noise of a case is the sum of the relative half-widths of both confidence intervals, at least
/// 10 %. The noise is also at least the median change of all cases plus five times their spread, up to
/// 15 %: between two runs, the whole machine may become slower or faster. The spread is 1.48 times the median absolute deviation of the logarithms of the ratios, which estimates the
/// standard deviation and ignores outliers (Rousseeuw and Croux, 1993).
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
    let half_width = |record: &Record| {
        let [low, high] = record.interval;
        (high - low).max(0.0) / (2.0 * record.seconds)
    };
    let mut changes: Vec<Change> = later
        .iter()
        .filter_map(|new| {
            let old = earlier.iter().find(|old| old.case == new.case)?;
            Some(Change {
                case: new.case.clone(),
                seconds: [old.seconds, new.seconds],
                ratio: new.seconds / old.seconds,
                noise: half_width(old) + half_width(new),
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
    use crate::op::RngKey;
    use rand_core::Rng;

    /// Returns records of 500 cases: `factor` scales the true time of each case, and `drift` scales
    /// all times. Each median has normally distributed noise of 1.5 %, and each interval is ±2 % of
    /// the median.
    fn run(seed: u64, drift: f64, factor: impl Fn(usize) -> f64) -> Vec<Record> {
        let mut rng = RngKey::new(seed).rng();
        let mut uniform = move || f64::from(rng.next_u32()) / f64::from(u32::MAX);
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
        (0..500).map(record).collect()
    }

    #[test]
    fn a_slowdown_of_20_percent_is_found_and_a_repeat_run_shows_nothing() {
        for seed in 0..20 {
            let base = run(seed, 1.0, |_| 1.0);
            let repeat = run(100 + seed, 1.03, |_| 1.0);
            let changes = compare(&base, &repeat);
            assert_eq!(changes.len(), 500);
            assert!(!changes.iter().any(|change| change.is_slower() || change.is_faster()));
            let slow = run(200 + seed, 1.0, |i| if i == 77 { 1.2 } else { 1.0 });
            let slower: Vec<_> =
                compare(&base, &slow).into_iter().filter(Change::is_slower).collect();
            assert!(slower.len() == 1 && slower[0].case == "case 77", "{slower:?}");
        }
    }

    #[test]
    fn a_noisy_case_is_not_slower() {
        let mut base = run(1, 1.0, |_| 1.0);
        base.truncate(1);
        let mut noisy = base.clone();
        noisy[0].seconds *= 1.25;
        assert!(compare(&base, &noisy)[0].is_slower());
        noisy[0].interval = [0.5 * noisy[0].seconds, 1.2 * noisy[0].seconds];
        assert!(!compare(&base, &noisy)[0].is_slower());
        assert!(compare(&base, &[]).is_empty());
    }
}
