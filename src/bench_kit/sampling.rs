//! Sampling: repeated measurements of the time of one run, their median and its uncertainty.

use crate::error::Result;
use std::time::{Duration, Instant};

/// Number and length of the samples from which one median time is computed.
///
/// ```
/// use cortado::bench_kit::Sampling;
///
/// let samples = Sampling::QUICK.sample(|| Ok((0..1000).map(std::hint::black_box).for_each(drop)))?;
/// let [low, high] = samples.interval();
/// assert!(low <= samples.median() && samples.median() <= high);
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampling {
    /// Number of samples.
    pub samples: usize,
    /// Duration of one sample, which times as many runs as fit in this duration, but at least one.
    pub sample_time: Duration,
}

impl Sampling {
    /// One sample of one run, for a test of the benchmark itself.
    pub const ONCE: Self = Self { samples: 1, sample_time: Duration::ZERO };
    /// Short sampling, of about 10 ms per case and pass.
    pub const QUICK: Self = Self { samples: 9, sample_time: Duration::from_micros(1100) };
    /// Full sampling, of about 50 ms per case and pass.
    pub const FULL: Self = Self { samples: 10, sample_time: Duration::from_millis(5) };

    /// Measures the time of one call of `run`, after a warm-up call; [`ONCE`](Self::ONCE) has no
    /// warm-up call. One sample times several runs together, because a single run can be shorter
    /// than the resolution of the clock.
    ///
    /// # Errors
    /// Returns the error of the first call that fails.
    pub fn sample(&self, mut run: impl FnMut() -> Result<()>) -> Result<Samples> {
        if *self == Self::ONCE {
            return Ok(Samples { seconds: vec![timed(1, &mut run)?.as_secs_f64()] });
        }
        run()?;
        let run_time = timed(1, &mut run)?;
        let runs_per_sample = self.sample_time.as_nanos() / run_time.as_nanos().max(1);
        let repeats = runs_per_sample.clamp(1, 100_000) as u32;
        let sample = |_| Ok(timed(repeats, &mut run)?.as_secs_f64() / f64::from(repeats));
        (0..self.samples.max(1)).map(sample).collect::<Result<Vec<_>>>().map(Samples::new)
    }
}

/// Times of one run of a benchmark case, each the mean over one sample.
///
/// [`Sampling`] has an example.
#[derive(Clone, Debug)]
pub struct Samples {
    /// Times in seconds, in ascending order.
    seconds: Vec<f64>,
}

impl Samples {
    /// Creates samples from times of one run, in seconds, in any order.
    pub fn new(mut seconds: Vec<f64>) -> Self {
        seconds.sort_by(f64::total_cmp);
        Self { seconds }
    }

    /// Returns the median time, which is at least 1 ns.
    pub fn median(&self) -> Duration {
        self.at(self.median_rank())
    }

    /// Returns a 95 % confidence interval of the median. The ends are order statistics with ranks
    /// `n/2 ± 0.98·√n`, which needs no assumption about the distribution of the times (Conover,
    /// "Practical Nonparametric Statistics", section 3.2).
    pub fn interval(&self) -> [Duration; 2] {
        self.interval_ranks().map(|rank| self.at(rank))
    }

    /// Returns the shortest time, which is at least 1 ns.
    pub fn fastest(&self) -> Duration {
        self.at(0)
    }

    /// Returns the median time and its interval in seconds as `f64`, because a [`Duration`] would
    /// round both to nanoseconds.
    #[cfg(feature = "report")]
    pub(super) fn seconds(&self) -> (f64, [f64; 2]) {
        (
            self.seconds_at(self.median_rank()),
            self.interval_ranks().map(|rank| self.seconds_at(rank)),
        )
    }

    fn median_rank(&self) -> usize {
        self.seconds.len() / 2
    }

    fn interval_ranks(&self) -> [usize; 2] {
        let half_width = 0.98 * (self.seconds.len() as f64).sqrt();
        let middle = self.seconds.len() as f64 / 2.0;
        let ranks = [(middle - half_width).floor(), (middle + half_width).ceil() - 1.0];
        ranks.map(|rank| rank.max(0.0) as usize)
    }

    fn at(&self, rank: usize) -> Duration {
        Duration::try_from_secs_f64(self.seconds_at(rank)).unwrap_or(Duration::MAX)
    }

    /// Returns the time with the given rank, or the longest time if the rank is too high, in
    /// seconds.
    fn seconds_at(&self, rank: usize) -> f64 {
        let seconds = self.seconds.get(rank).or(self.seconds.last()).copied().unwrap_or(0.0);
        seconds.max(1e-9)
    }
}

fn timed(repeats: u32, run: &mut impl FnMut() -> Result<()>) -> Result<Duration> {
    let start = Instant::now();
    (0..repeats).try_for_each(|_| run())?;
    Ok(start.elapsed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_has_the_ranks_of_the_binomial_distribution() {
        // For 20 samples, the ranks 6 and 15 (counted from 1) enclose the median with a probability
        // of 95.9 %, and the ranks 7 and 14 with 88.5 % (binomial distribution, p = 1/2).
        let samples = Samples { seconds: (1..=20).map(f64::from).collect() };
        assert_eq!(samples.interval().map(|time| time.as_secs()), [6, 15]);
        assert_eq!(samples.median().as_secs(), 11);
        let samples = Samples { seconds: vec![3.0] };
        assert_eq!(samples.interval().map(|time| time.as_secs()), [3, 3]);
    }

    #[test]
    fn an_error_of_a_run_ends_the_sampling() {
        let mut calls = 0;
        let outcome = Sampling::QUICK.sample(|| {
            calls += 1;
            Err(crate::Error::device("test", "broken"))
        });
        assert!(outcome.is_err() && calls == 1);
    }
}
