//! Benchmark program: its arguments, the times of its cases, a summary, and its part of the report.

use super::{
    BreakEven, Limits, Part, Record, Samples, Sampling, SizeRange, Survey, Work, compare,
    record::time_text, report_folder, survey::device_label,
};
use crate::{
    device::{AnyDevice, CpuDevice, Device},
    error::{Error, Result},
};
use std::{collections::BTreeMap, env, path::PathBuf};

/// Benchmark program that `cargo bench` starts. A program times cases, prints a line per case and a
/// summary, and stores its part of the report.
///
/// ```no_run
/// use cortado::bench_kit::{Bench, Work};
/// use std::hint::black_box;
///
/// let mut bench = Bench::from_args("mine")?; // parses `cargo bench --bench mine -- --quick`
/// let x = vec![1.0f32; 1000];
/// let work = Work { bytes: 4_000, flops: 1_000 };
/// bench.time(["sum", "f32", "host", "1000"], work, || {
///     black_box(black_box(&x).iter().sum::<f32>());
///     Ok(())
/// })?;
/// bench.finish()?;
/// # Ok::<(), cortado::Error>(())
/// ```
pub struct Bench {
    part: Part,
    options: Options,
}

/// Arguments of a benchmark program.
#[derive(Debug)]
struct Options {
    sampling: Sampling,
    json: bool,
    save_baseline: bool,
    /// Selects the cases whose names contain at least one of these texts; empty to select all
    /// cases.
    filters: Vec<String>,
}

const USAGE: &str = "usage: cargo bench --bench PROGRAM -- [FILTER..] [FLAGS]
  FILTER           time only the cases whose names contain this text
  --quick          take fewer and shorter samples
  --json           print one JSON object per case instead of text
  --save-baseline  also store the results as the baseline of later reports
  --test           run each case once, and store nothing";

impl Options {
    fn parse(args: impl Iterator<Item = String>) -> Result<Self> {
        let (mut bench, mut test) = (false, false);
        let mut options = Self {
            sampling: Sampling::FULL,
            json: false,
            save_baseline: false,
            filters: Vec::new(),
        };
        for arg in args {
            match &*arg {
                "--bench" => bench = true, // from cargo
                "--test" => test = true,
                "--quick" => options.sampling = Sampling::QUICK,
                "--json" => options.json = true,
                "--save-baseline" => options.save_baseline = true,
                flag if flag.starts_with('-') => {
                    return Err(Error::InvalidData(format!("unknown flag {flag}\n{USAGE}")));
                }
                _ => options.filters.push(arg),
            }
        }
        // `cargo bench` passes `--bench`, and `cargo test` does not.
        if test || !bench {
            options.sampling = Sampling::ONCE;
        }
        Ok(options)
    }

    fn selects(&self, name: &str) -> bool {
        self.filters.is_empty() || self.filters.iter().any(|filter| name.contains(&**filter))
    }
}

impl Bench {
    /// Starts the benchmark program `name` with the arguments of the process: `--quick`, `--json`,
    /// `--save-baseline`, `--test` and filters.
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`], with the usage, for an unknown flag.
    pub fn from_args(name: &str) -> Result<Self> {
        let options = Options::parse(env::args().skip(1))?;
        Ok(Self { part: Part::new(name), options })
    }

    /// Returns whether the program only runs each case once, without a measurement.
    pub fn is_test(&self) -> bool {
        self.options.sampling == Sampling::ONCE
    }

    /// Returns whether standard output must contain only JSON objects.
    pub fn is_json(&self) -> bool {
        self.options.json
    }

    /// Returns whether the filters select a case or kernel of this name.
    pub fn selects(&self, name: &str) -> bool {
        self.options.selects(name)
    }

    /// Measures the peak rates of a device, so that the report gives each time of this device as a
    /// percentage of its limit. Measures nothing in a test. Returns the name of the device with its
    /// number of threads, for [`time`](Self::time).
    ///
    /// # Errors
    /// Returns an error if a kernel fails.
    pub fn measure_limits(&mut self, device: &impl Device) -> Result<String> {
        if !self.is_test() {
            self.part.limits.push(Limits::measure(device)?);
        }
        Ok(device_label(&AnyDevice::new(device)))
    }

    /// Times a case with the given names of kernel, element type, device and size, if the filters
    /// select it. `work` is the work of one call of `run`.
    ///
    /// # Errors
    /// Returns the error of `run`.
    pub fn time(
        &mut self,
        names: [&str; 4],
        work: Work,
        mut run: impl FnMut() -> Result<()>,
    ) -> Result<()> {
        self.time_with(names, work, |_, sampling| sampling.sample(&mut run))
    }

    /// Times a case as [`time`](Self::time) does, but with samples that `sample` takes, for example
    /// with the crate `criterion`. `sample` gets the name of the case and the number and length of
    /// the samples that the arguments request.
    ///
    /// # Errors
    /// Returns the error of `sample`.
    pub fn time_with(
        &mut self,
        [kernel, element, device, size]: [&str; 4],
        work: Work,
        sample: impl FnOnce(&str, Sampling) -> Result<Samples>,
    ) -> Result<()> {
        let case = [kernel, element, device, size].map(|name| name.replace(' ', "_"));
        let case = case.into_iter().filter(|name| !name.is_empty()).collect::<Vec<_>>().join("/");
        if !self.selects(&case) {
            return Ok(());
        }
        let samples = sample(&case, self.options.sampling)?;
        self.add(Record {
            case,
            kernel: kernel.into(),
            element: element.into(),
            device: device.into(),
            size: size.parse().ok(),
            bytes: work.bytes,
            flops: work.flops,
            seconds: samples.median().as_secs_f64(),
            interval: samples.interval().map(|time| time.as_secs_f64()),
            limit_seconds: self.limit_seconds(device, element, work),
            fallback: false,
        });
        Ok(())
    }

    /// Times the kit's cases of the kernels that the filters select, prints their table, and returns
    /// the survey.
    ///
    /// # Errors
    /// Returns an error if a kernel or a transfer fails.
    pub fn survey(&mut self, device: &impl Device, sizes: SizeRange) -> Result<Survey> {
        let selects = |kernel: &str| self.options.selects(kernel);
        let survey = Survey::measure_where::<f32>(device, sizes, self.options.sampling, selects)?;
        for timing in &survey.timings {
            let limit_seconds = self.limit_seconds(&survey.device, survey.element, timing.work);
            let record = Record {
                case: format!(
                    "{}/{}/{}/{}",
                    timing.kernel, survey.element, survey.device, timing.size
                )
                .replace(' ', "_"),
                kernel: timing.kernel.into(),
                element: survey.element.into(),
                device: survey.device.clone(),
                size: Some(timing.size as u64),
                bytes: timing.work.bytes,
                flops: timing.work.flops,
                seconds: timing.time.as_secs_f64(),
                interval: timing.interval.map(|time| time.as_secs_f64()),
                limit_seconds,
                fallback: timing.fallback,
            };
            if self.options.json {
                println!("{}", record.to_json());
            }
            self.part.records.push(record);
        }
        self.print(&format!("{survey}"));
        Ok(survey)
    }

    /// Prints and stores the sizes from which one surveyed device is faster than another.
    pub fn break_even(&mut self, device: &Survey, host: &Survey) {
        let sizes = BreakEven::between(device, host);
        self.part.add_break_even(&device.device, &sizes);
        self.print(&sizes.to_string());
    }

    /// Prints a summary, stores the results as a part of the report, and writes the page; stores
    /// and writes nothing in a test or with filters.
    ///
    /// # Errors
    /// Returns an error if a file of the report cannot be read or written.
    pub fn finish(self) -> Result<()> {
        let folder = report_folder();
        let baseline = Part::read_all(&folder.join("baseline"))?;
        let baseline = baseline.into_iter().find(|part| part.name == self.part.name);
        self.print(&summary(&self.part, baseline.as_ref()));
        if !self.is_test() && self.options.filters.is_empty() {
            let page = self.part.store(&folder, self.options.save_baseline)?;
            self.print(&format!("report: {}\n", page.display()));
        }
        Ok(())
    }

    fn limit_seconds(&self, device: &str, element: &str, work: Work) -> Option<f64> {
        let limits = self.part.limits.iter().find(|limits| limits.device == device)?;
        limits.seconds(element, work)
    }

    fn add(&mut self, record: Record) {
        if self.options.json {
            println!("{}", record.to_json());
        } else {
            let [low, high] = record.interval;
            let noise = 50.0 * (high - low) / record.seconds;
            println!(
                "{:<44} {:>10} ±{noise:<4.1}% {:>16} {:>8}",
                record.case,
                time_text(record.seconds),
                record.rate(),
                record.share(),
            );
        }
        self.part.records.push(record);
    }

    fn print(&self, text: &str) {
        if !self.options.json {
            println!("{text}");
        }
    }
}

/// Times all cases of the bench kit on `device` in `f32`, compares the times with those of one CPU
/// thread, times transfers of several sizes, and adds the results to the report in
/// [`report_folder`]. Returns the path of the page.
///
/// # Errors
/// Returns an error if a kernel or a transfer fails, or if a file of the report cannot be written.
///
/// ```no_run
/// use cortado::{SimulatedDevice, bench_kit};
///
/// let page = bench_kit::report(&SimulatedDevice::new())?;
/// println!("open {} in a browser", page.display());
/// # Ok::<(), cortado::Error>(())
/// ```
pub fn report(device: &impl Device) -> Result<PathBuf> {
    let sampling = Sampling::QUICK;
    let options = Options { sampling, json: false, save_baseline: false, filters: Vec::new() };
    let mut bench = Bench { part: Part::of("device", &device.name()), options };
    bench.measure_limits(device)?;
    let host = Survey::measure::<f32>(&CpuDevice::with_threads(1)?, SizeRange::Full)?;
    let survey = bench.survey(device, SizeRange::Full)?;
    bench.break_even(&survey, &host);
    bench.transfers(device)?;
    bench.part.store(&report_folder(), false)
}

/// Largest number of rows of a summary, so that the summary fits on one screen.
const MAX_ROWS: usize = 24;

/// Returns the summary of a program on one screen: the highest rate of each kernel and its share of
/// the limit, and the comparison with the baseline.
fn summary(part: &Part, baseline: Option<&Part>) -> String {
    let mut best: BTreeMap<(&str, &str), &Record> = BTreeMap::new();
    let by_device: BTreeMap<_, ()> =
        part.records.iter().map(|record| ((&*record.kernel, &*record.device), ())).collect();
    for record in &part.records {
        let device = if by_device.len() > MAX_ROWS { "" } else { &*record.device };
        let speed = |record: &Record| record.flops.max(record.bytes) as f64 / record.seconds;
        let entry = best.entry((&record.kernel, device)).or_insert(record);
        if speed(record) > speed(entry) {
            *entry = record;
        }
    }
    let mut text = format!("summary of {}: fastest case of each kernel\n", part.name);
    for record in best.values().take(MAX_ROWS) {
        let share = match record.percent_of_limit() {
            Some(_) => format!("{} of the limit", record.share()),
            None => String::new(),
        };
        text += format!("{:<52} {:>16}  {share}", record.case, record.rate()).trim_end();
        text.push('\n');
    }
    if let Some(baseline) = baseline {
        let changes = compare(&baseline.records, &part.records);
        let slower: Vec<_> = changes.iter().filter(|change| change.is_slower()).collect();
        let faster = changes.iter().filter(|change| change.is_faster()).count();
        text += &format!(
            "compared with the baseline: {} of {} cases slower, {faster} faster\n",
            slower.len(),
            changes.len()
        );
        for change in slower.iter().take(5) {
            text += &format!("  {} takes {:.2} times as long\n", change.case, change.ratio);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(args: &[&str]) -> Result<Options> {
        Options::parse(args.iter().map(|arg| (*arg).to_owned()))
    }

    #[test]
    fn arguments_select_the_sampling_and_the_cases() {
        let options_of = |args: &[&str]| options(args).unwrap();
        assert_eq!(options_of(&[]).sampling, Sampling::ONCE);
        assert_eq!(options_of(&["--bench"]).sampling, Sampling::FULL);
        assert_eq!(options_of(&["--bench", "--quick"]).sampling, Sampling::QUICK);
        assert_eq!(options_of(&["--bench", "--test"]).sampling, Sampling::ONCE);
        let filtered = options_of(&["--bench", "gemm", "dot"]);
        assert!(filtered.selects("gemm/f32/64") && !filtered.selects("axpy"));
        let error = options(&["--qick"]).unwrap_err().to_string();
        assert!(error.contains("--qick") && error.contains("--quick"), "{error}");
    }

    #[test]
    fn a_summary_has_the_fastest_case_and_the_slower_cases() {
        let record = |size: u64, seconds: f64| Record {
            case: format!("gemm/f32/cpu/{size}"),
            kernel: "gemm".into(),
            element: "f32".into(),
            device: "cpu".into(),
            size: Some(size),
            bytes: 1,
            flops: 1000,
            seconds,
            interval: [seconds; 2],
            limit_seconds: Some(1e-9),
            fallback: false,
        };
        let part = |records| Part { name: "blas".into(), records, ..Part::default() };
        let base = part(vec![record(1, 1e-8), record(2, 2e-9)]);
        let now = part(vec![record(1, 2e-8), record(2, 2e-9)]);
        let text = summary(&now, Some(&base));
        assert!(text.contains("gemm/f32/cpu/2") && text.contains("500.0 GFLOP/s"), "{text}");
        assert!(text.contains("50 % of the limit"), "{text}");
        assert!(
            text.contains("1 of 2 cases slower") && text.contains("cpu/1 takes 2.00"),
            "{text}"
        );
    }
}
