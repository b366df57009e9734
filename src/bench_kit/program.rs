//! Benchmark program: its passes, the times of its cases, a summary, and its part of the report.

use super::{
    BreakEven, Limits, Part, Record, Samples, Sampling, SizeRange, Survey, Work,
    options::Options,
    passes::{MIN_PASS_TIME, merge_records, merge_surveys, passes},
    record::time_text,
    report_folder,
    summary::summary,
    survey::device_label,
};
use crate::{
    device::{AnyDevice, CpuDevice, Device},
    error::{Error, Result},
};
use std::{
    env, fmt,
    io::{self, Write},
    path::PathBuf,
};

/// Benchmark program that `cargo bench` starts. A program measures its cases in several passes,
/// prints a line per case and a summary, and stores its part of the report.
///
/// On a shared machine, other programs slow down a case for a fraction of a second. All consecutive
/// samples of the case are then equally slow, so their spread does not show the slowdown. A program
/// therefore measures all of its cases, then all of them again, and so on, and allocates the
/// operands of a case anew in each pass. The time of a case is the median of the samples of its
/// fastest pass. The interval of the time starts at the low end of the confidence interval of the
/// fastest pass. The interval reaches at least to the median of the second-fastest pass, so it is
/// narrow only if two of three passes agree. The program measures the peak rates of a device in
/// each pass, and keeps the greatest value of each rate.
///
/// ```no_run
/// use cortado::bench_kit::{Bench, Work};
/// use std::hint::black_box;
///
/// let mut bench = Bench::from_args("mine")?; // parses `cargo bench --bench mine -- --quick`
/// for _ in bench.passes() {
///     let x = vec![1.0f32; 1000];
///     let work = Work { bytes: 4_000, flops: 1_000 };
///     bench.time(["sum", "f32", "host", "1000"], work, || {
///         black_box(black_box(&x).iter().sum::<f32>());
///         Ok(())
///     })?;
/// }
/// bench.finish()?;
/// # Ok::<(), cortado::Error>(())
/// ```
pub struct Bench {
    part: Part,
    options: Options,
    /// Records of each case, one for each pass.
    cases: Vec<Vec<Record>>,
    /// Surveys of each device, one for each pass.
    surveys: Vec<Vec<Survey>>,
    /// Tables of break-even sizes, as text to print after the last pass.
    break_even_tables: Vec<String>,
}

impl Bench {
    /// Starts the benchmark program `name` with the arguments of the process: `--quick`, `--json`,
    /// `--save-baseline`, `--test` and filters.
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`], with the usage for an unknown flag, or for an argument that is not
    /// valid UTF-8.
    pub fn from_args(name: &str) -> Result<Self> {
        let arguments = env::args_os().skip(1).map(|argument| {
            argument.into_string().map_err(|argument| {
                Error::InvalidData(format!("argument {argument:?}: expected UTF-8"))
            })
        });
        let arguments: Vec<_> = arguments.collect::<Result<_>>()?;
        Ok(Self::new(Part::new(name), Options::parse(arguments.into_iter())?))
    }

    fn new(part: Part, options: Options) -> Self {
        let (cases, surveys, break_even_tables) = Default::default();
        Self { part, options, cases, surveys, break_even_tables }
    }

    /// Returns an iterator over the numbers of the passes, from 1 to 3. A test has one pass. The
    /// passes start at least a second apart. The iterator prints the number of each pass to
    /// standard error, unless the program prints JSON or is a test.
    ///
    /// Within a pass, each case needs a name of its own, because results of the same name count as
    /// passes of one case.
    pub fn passes(&self) -> impl Iterator<Item = usize> + use<> {
        let count = self.options.passes;
        passes(count, MIN_PASS_TIME, count > 1 && !self.is_json())
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
    /// percentage of its limit. Keeps the greatest rates of all passes. Measures nothing in a test.
    /// Returns the name of the device with its number of threads, for [`time`](Self::time).
    ///
    /// # Errors
    /// Returns an error if a kernel fails.
    pub fn measure_limits(&mut self, device: &impl Device) -> Result<String> {
        let label = device_label(&AnyDevice::new(device));
        if !self.is_test() {
            let limits = Limits::measure(device)?;
            match self.part.limits.iter_mut().find(|earlier| earlier.device == label) {
                Some(earlier) => earlier.raise_to(&limits),
                None => self.part.limits.push(limits),
            }
        }
        Ok(label)
    }

    /// Times one pass of the case that `names` identifies by kernel, element type, device and size,
    /// if the filters select the case. `work` is the work of one call of `run`.
    ///
    /// # Errors
    /// Returns the error of `run`.
    pub fn time(
        &mut self,
        names: [&str; 4],
        work: Work,
        mut run: impl FnMut() -> Result<()>,
    ) -> Result<()> {
        self.time_with(names, work, |_, _, sampling| sampling.sample(&mut run))
    }

    /// Times a case as [`time`](Self::time) does, but with samples that `sample` takes, for example
    /// with the crate `criterion`. `sample` gets the name of the case, the number of the pass,
    /// counted from 1, and the number and length of the samples that the arguments request.
    ///
    /// # Errors
    /// Returns the error of `sample`.
    pub fn time_with(
        &mut self,
        [kernel, element, device, size]: [&str; 4],
        work: Work,
        sample: impl FnOnce(&str, usize, Sampling) -> Result<Samples>,
    ) -> Result<()> {
        let case = [kernel, element, device, size].map(|name| name.replace(' ', "_"));
        let case = case.into_iter().filter(|name| !name.is_empty()).collect::<Vec<_>>().join("/");
        if !self.selects(&case) {
            return Ok(());
        }
        let index = self.cases.iter().position(|passes| passes[0].case == case);
        let pass = index.map_or(1, |index| self.cases[index].len() + 1);
        let (seconds, interval) = sample(&case, pass, self.options.sampling)?.seconds();
        let record = Record {
            case,
            kernel: kernel.into(),
            element: element.into(),
            device: device.into(),
            size: size.parse().ok(),
            bytes: work.bytes,
            flops: work.flops,
            seconds,
            interval,
            limit_seconds: None,
            fallback: false,
        };
        match index {
            Some(index) => self.cases[index].push(record),
            None => self.cases.push(vec![record]),
        }
        Ok(())
    }

    /// Times the bench kit's cases of the kernels that the filters select, in one pass.
    ///
    /// # Errors
    /// Returns an error if a kernel or a transfer fails.
    pub fn survey(&mut self, device: &impl Device, sizes: SizeRange) -> Result<()> {
        let selects = |kernel: &str| self.options.selects(kernel);
        let survey = Survey::measure_where::<f32>(device, sizes, self.options.sampling, selects)?;
        match self.surveys.iter_mut().find(|passes| passes[0].device == survey.device) {
            Some(passes) => passes.push(survey),
            None => self.surveys.push(vec![survey]),
        }
        Ok(())
    }

    /// Determines the sizes from which `device` is faster than `host`, with the results of all
    /// passes so far. Call this method after the last pass.
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`] if [`survey`](Self::survey) was not called for both devices.
    pub fn break_even(&mut self, device: &impl Device, host: &impl Device) -> Result<()> {
        let device = self.merged_survey(&AnyDevice::new(device))?;
        let host = self.merged_survey(&AnyDevice::new(host))?;
        self.add_break_even(&device, &host);
        Ok(())
    }

    fn merged_survey(&self, device: &AnyDevice) -> Result<Survey> {
        let label = device_label(device);
        let passes = self.surveys.iter().find(|passes| passes[0].device == label);
        passes.and_then(|passes| merge_surveys(passes)).ok_or_else(|| {
            let reason = "the device has no survey; call `survey` before `break_even`";
            Error::InvalidData(reason.into()).context(label)
        })
    }

    fn add_break_even(&mut self, device: &Survey, host: &Survey) {
        let sizes = BreakEven::between(device, host);
        self.part.add_break_even(&device.device, &sizes);
        self.break_even_tables.push(sizes.to_string());
    }

    /// Prints the results and a summary, stores the results as a part of the report, and writes the
    /// page; stores and writes nothing in a test or with filters.
    ///
    /// # Errors
    /// Returns an error if a file of the report cannot be read or written, or if standard output cannot
    /// be written. Closed standard output is not an error.
    pub fn finish(mut self) -> Result<()> {
        self.merge_and_print()?;
        if self.is_test() {
            return self.print(&summary(&self.part, None));
        }
        let folder = report_folder();
        let baseline = Part::read_all(&folder.join("baseline"))?;
        let baseline = baseline.into_iter().find(|part| part.name == self.part.name);
        self.print(&summary(&self.part, baseline.as_ref()))?;
        if self.options.filters.is_empty() {
            let page = self.part.store(&folder, self.options.save_baseline)?;
            self.print(&format!("report: {}\n", page.display()))?;
        }
        Ok(())
    }

    /// Merges the passes of each case into the records of the part, and prints the results: a table
    /// for each survey, the tables of break-even sizes, and a line for each other case.
    fn merge_and_print(&mut self) -> Result<()> {
        let surveys: Vec<_> = self.surveys.iter().filter_map(|s| merge_surveys(s)).collect();
        let mut records: Vec<_> = surveys.iter().flat_map(Survey::records).collect();
        let in_surveys = records.len();
        records.extend(self.cases.iter().filter_map(|passes| merge_records(passes)));
        for record in &mut records {
            let work = Work { bytes: record.bytes, flops: record.flops };
            let limits = self.part.limits.iter().find(|limits| limits.device == record.device);
            record.limit_seconds = limits.and_then(|l| l.seconds(&record.element, work));
        }
        if self.options.json {
            records.iter().try_for_each(|record| write_line(&record.to_json()))?;
        }
        surveys.iter().try_for_each(|survey| self.print(&survey.to_string()))?;
        self.break_even_tables.iter().try_for_each(|table| self.print(table))?;
        let lines: String = records[in_surveys..].iter().map(line).collect();
        self.print(&lines)?;
        self.part.records = records;
        Ok(())
    }

    fn print(&self, text: &str) -> Result<()> {
        if self.options.json || text.is_empty() { Ok(()) } else { write_line(&text) }
    }
}

/// Writes `line` to standard output. A closed output is not an error, because a reader such as `head` may
/// need only the first lines.
///
/// # Errors
/// Returns [`Error::Io`] for any other error of standard output.
fn write_line(line: &impl fmt::Display) -> Result<()> {
    match writeln!(io::stdout(), "{line}") {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Error::io("standard output", error))
        }
        _ => Ok(()),
    }
}

/// Formats the result of a case as a line.
fn line(record: &Record) -> String {
    let [low, high] = record.interval;
    let noise = 50.0 * (high - low) / record.seconds;
    format!(
        "{:<44} {:>10} ±{noise:<4.1}% {:>16} {:>8}\n",
        record.case,
        time_text(record.seconds),
        record.rate(),
        record.share(),
    )
}

/// Times all cases of the bench kit on `device` in `f32`, compares the times with those of one CPU
/// thread, times transfers of several sizes, and adds the results to the report in
/// [`report_folder`]. Measures in several passes, like a [`Bench`]. Returns the path of the page.
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
    let part = Part::of("device", &device.name());
    let mut bench = Bench::new(part, Options::new(Sampling::QUICK));
    let (host, mut host_surveys) = (CpuDevice::with_threads(1)?, Vec::new());
    for _ in bench.passes() {
        bench.measure_limits(device)?;
        host_surveys.push(Survey::measure::<f32>(&host, SizeRange::Full)?);
        bench.survey(device, SizeRange::Full)?;
        bench.transfers(device)?;
    }
    if let Some(host) = merge_surveys(&host_surveys) {
        let survey = bench.merged_survey(&AnyDevice::new(device))?;
        bench.add_break_even(&survey, &host);
    }
    bench.merge_and_print()?;
    bench.part.store(&report_folder(), false)
}
