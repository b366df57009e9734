//! Benchmark program whose samples criterion takes.

use cortado::{
    Error, Result,
    bench_kit::{Bench, Samples, Sampling, Work},
};
use criterion::{Criterion, SamplingMode};
use std::time::{Duration, Instant};

/// The smallest number of samples that criterion accepts.
const MIN_SAMPLES: usize = 10;

/// Benchmark program that times its cases with criterion, which stores its statistics in
/// `target/criterion`. The same samples become a part of the report of [`Bench`].
pub(crate) struct CriterionBench {
    criterion: Criterion,
    pub(crate) report: Bench,
}

impl CriterionBench {
    pub(crate) fn from_args(name: &str) -> Result<Self> {
        // criterion compares a case with the baseline that has this name. No such baseline exists,
        // so criterion compares nothing, and the report contains the only comparison.
        let criterion = Criterion::default().without_plots().retain_baseline("none".into(), false);
        Ok(Self { criterion, report: Bench::from_args(name)? })
    }

    /// Times a case with the given names of kernel, element type, device and size in one pass.
    /// `work` is the work of one call of `run`.
    pub(crate) fn time(
        &mut self,
        names: [&str; 4],
        work: Work,
        run: impl FnMut() -> Result<()>,
    ) -> Result<()> {
        // criterion prints its results to standard output, which `--json` reserves for JSON.
        if self.report.is_test() || self.report.is_json() {
            return self.report.time(names, work, run);
        }
        let criterion = &mut self.criterion;
        self.report.time_with(names, work, |case, pass, sampling| {
            sample(criterion, [case, &format!("pass {pass}")], sampling, run)
        })
    }
}

/// Lets criterion sample the time of one call of `run`. The case is a group of criterion's
/// benchmarks, with one benchmark for each pass.
fn sample(
    criterion: &mut Criterion,
    [case, pass]: [&str; 2],
    sampling: Sampling,
    mut run: impl FnMut() -> Result<()>,
) -> Result<Samples> {
    let count = sampling.samples.max(MIN_SAMPLES);
    let mut group = criterion.benchmark_group(case);
    group
        .sample_size(count)
        .nresamples(10_000)
        .warm_up_time(4 * sampling.sample_time)
        .measurement_time(sampling.sample_time * count as u32)
        // All samples have the same number of runs, so that each has the same weight in the median.
        .sampling_mode(SamplingMode::Flat);
    let mut seconds = Vec::new();
    let mut outcome = Ok(());
    group.bench_function(pass, |bencher| {
        bencher.iter_custom(|runs| {
            let start = Instant::now();
            if outcome.is_ok() {
                outcome = (0..runs).try_for_each(|_| run());
            }
            // criterion divides by the time.
            let time = start.elapsed().max(Duration::from_nanos(runs));
            seconds.push(time.as_secs_f64() / runs as f64);
            time
        });
    });
    group.finish();
    outcome?;
    // The calls before the samples warm up the processor.
    let Some(first) = seconds.len().checked_sub(count) else {
        return Err(Error::InvalidData(format!("{case}: criterion took too few samples")));
    };
    Ok(Samples::new(seconds.split_off(first)))
}
