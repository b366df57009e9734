//! Survey: times of all benchmark cases on one device, and their rates as percentages of the
//! device's peak rates.

#[cfg(feature = "report")]
use super::Record;
use super::{Case, Sampling, SizeRange, Work, cases_where};
use crate::{
    device::{AnyDevice, Device},
    element::Element,
    error::Result,
    kernel::traits::*,
    memory::ledger::{EventKind, Ledger},
};
use std::{fmt, time::Duration};

/// Median times of one benchmark case.
///
/// ```
/// use cortado::bench_kit::{Timing, Work};
/// use std::time::Duration;
///
/// let (work, time) = (Work { bytes: 4_000, flops: 1_000 }, Duration::from_micros(2));
/// let (kernel, size, fallback) = ("axpy", 500, false);
/// let (time_with_transfers, interval) = (time, [time, time]);
/// let timing = Timing { kernel, size, work, time, interval, time_with_transfers, fallback };
/// assert_eq!((timing.bandwidth() / 1e9).round(), 2.0); // GB/s
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// Name of the kernel.
    pub kernel: &'static str,
    /// Problem size, as [`Case::size`] returns it.
    pub size: usize,
    /// Numbers of bytes and of floating-point operations of one run of the kernel.
    pub work: Work,
    /// Median time of one run of the kernel, with the operands on the device.
    pub time: Duration,
    /// Interval of `time`: the 95 % confidence interval of one pass or, in a report of several
    /// passes, the interval that `Bench` describes.
    pub interval: [Duration; 2],
    /// Median time of one run of the kernel, including transfers of the operands and the result.
    pub time_with_transfers: Duration,
    /// Whether the kernel fell back to the host, so that the times are those of the host.
    pub fallback: bool,
}

impl Timing {
    /// Returns the bytes that the kernel reads and writes per second.
    pub fn bandwidth(&self) -> f64 {
        self.work.bytes as f64 / self.time.as_secs_f64()
    }

    /// Returns the floating-point operations that the kernel performs per second.
    pub fn flops_per_second(&self) -> f64 {
        self.work.flops as f64 / self.time.as_secs_f64()
    }
}

/// Highest rates that the native kernels of a device reached in a survey. The rate of `copy` or
/// `gemm` is 0 if that kernel fell back to the host at every size.
///
/// ```
/// use cortado::bench_kit::{Peaks, Work};
///
/// let peaks = Peaks { bandwidth: 100e9, flops_per_second: 1e12 };
/// let work = Work { bytes: 1 << 20, flops: 1 << 22 };
/// let memory_seconds = work.bytes as f64 / peaks.bandwidth;
/// let arithmetic_seconds = work.flops as f64 / peaks.flops_per_second;
/// assert!(memory_seconds > arithmetic_seconds); // bandwidth limits this kernel
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Peaks {
    /// Highest number of bytes that `copy` read and wrote per second.
    pub bandwidth: f64,
    /// Highest number of floating-point operations that `gemm` performed per second.
    pub flops_per_second: f64,
}

/// Times of all benchmark cases on one device, for one element type.
///
/// The printed table gives the bandwidth of a case as a percentage of the bandwidth of the device's
/// `copy` of similar size. The printed table also gives the FLOP/s of a case as a percentage of the
/// FLOP/s of the device's fastest GEMM. A case near 100 % of the copy bandwidth or of the GEMM rate
/// runs as fast as the device allows. A note marks each percentage above 100, and each kernel that
/// fell back to the host. A kernel that fell back to the host has no percentages, and its rate is
/// not the reference for the percentages of other kernels.
///
/// ```no_run
/// use cortado::{CpuDevice, bench_kit::{SizeRange, Survey}};
///
/// let survey = Survey::measure::<f32>(&CpuDevice::new(), SizeRange::Full)?;
/// let slowest_case = survey.timings.iter().max_by_key(|timing| timing.time).unwrap();
/// println!("{} of size {} takes {:?}", slowest_case.kernel, slowest_case.size, slowest_case.time);
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Survey {
    /// Name of the device, and number of its host threads.
    pub device: String,
    /// Name of the element type.
    pub element: &'static str,
    /// Times of the benchmark cases, ordered by kernel and size.
    pub timings: Vec<Timing>,
    /// Highest rates of `copy` and `gemm` in this survey.
    pub peaks: Peaks,
}

impl Survey {
    /// Times every benchmark case on `device`, for about 20 ms per case.
    ///
    /// # Errors
    /// Returns an error if a kernel or a transfer fails.
    pub fn measure<T: Element>(device: &impl Device, sizes: SizeRange) -> Result<Self> {
        Self::measure_where::<T>(device, sizes, Sampling::QUICK, |_| true)
    }

    /// Times the benchmark cases of the kernels that `selects` accepts by name.
    ///
    /// # Errors
    /// Returns an error if a kernel or a transfer fails.
    pub fn measure_where<T: Element>(
        device: &impl Device,
        sizes: SizeRange,
        sampling: Sampling,
        selects: impl Fn(&str) -> bool,
    ) -> Result<Self> {
        let device = &AnyDevice::new(device);
        let cases = cases_where::<T>(device, sizes, &selects)?;
        let time = |case| time_case(case, sampling);
        let timings: Vec<_> = cases.iter().map(time).collect::<Result<_>>()?;
        let peaks = Peaks::of(&timings);
        let device = device_label(device);
        Ok(Self { device, element: T::DTYPE.name(), timings, peaks })
    }

    /// Returns a record of each case, whose `limit_seconds` is `None`.
    #[cfg(feature = "report")]
    pub(super) fn records(&self) -> Vec<Record> {
        let record = |timing: &Timing| Record {
            case: format!("{}/{}/{}/{}", timing.kernel, self.element, self.device, timing.size)
                .replace(' ', "_"),
            kernel: timing.kernel.into(),
            element: self.element.into(),
            device: self.device.clone(),
            size: Some(timing.size as u64),
            bytes: timing.work.bytes,
            flops: timing.work.flops,
            seconds: timing.time.as_secs_f64(),
            interval: timing.interval.map(|time| time.as_secs_f64()),
            limit_seconds: None,
            fallback: timing.fallback,
        };
        self.timings.iter().map(record).collect()
    }

    /// Returns a kernel's bandwidth as a share of the device's copy bandwidth, and the kernel's
    /// FLOP/s as a share of the device's GEMM rate. A share is `None` if the kernel, or the kernel
    /// that it is compared with, fell back to the host.
    fn shares(&self, timing: &Timing) -> [Option<f64>; 2] {
        let share = |rate: f64, peak: f64| (!timing.fallback && peak > 0.0).then_some(rate / peak);
        let of_copy = share(timing.bandwidth(), self.copy_bandwidth(timing));
        [of_copy, share(timing.flops_per_second(), self.peaks.flops_per_second)]
    }

    /// Returns the bandwidth of the native `copy` whose byte count is closest to that of `timing`,
    /// or 0 if the device has no native `copy`.
    fn copy_bandwidth(&self, timing: &Timing) -> f64 {
        let copy_timings = native(&self.timings, "copy");
        let copy_of_nearest_size = copy_timings.min_by_key(|copy| {
            let [more, less] =
                [copy.work.bytes.max(timing.work.bytes), copy.work.bytes.min(timing.work.bytes)];
            more / less.max(1)
        });
        copy_of_nearest_size.map_or(0.0, Timing::bandwidth)
    }
}

impl Peaks {
    /// Returns the peak rates of the native kernels among `timings`.
    pub(super) fn of(timings: &[Timing]) -> Self {
        let peak = |kernel, rate: fn(&Timing) -> f64| {
            native(timings, kernel).map(rate).fold(0.0, f64::max)
        };
        Self {
            bandwidth: peak("copy", Timing::bandwidth),
            flops_per_second: peak("gemm", Timing::flops_per_second),
        }
    }
}

/// Returns the timings of `kernel` at the sizes at which `kernel` did not fall back to the host.
fn native<'a>(timings: &'a [Timing], kernel: &str) -> impl Iterator<Item = &'a Timing> {
    timings.iter().filter(move |timing| timing.kernel == kernel && !timing.fallback)
}

fn time_case<T: Element>(case: &Case<T>, sampling: Sampling) -> Result<Timing> {
    let (kernel, size, work) = (case.kernel(), case.size(), case.work());
    let fallback = falls_back(case)?;
    let time_with_transfers = sampling.sample(|| case.run_with_transfers())?.median();
    let samples = sampling.sample(|| case.run())?;
    let (time, interval) = (samples.median(), samples.interval());
    Ok(Timing { kernel, size, work, time, interval, time_with_transfers, fallback })
}

/// Returns the name of a device with its number of host threads.
pub(super) fn device_label(device: &AnyDevice) -> String {
    let threads = device.host_workers().count();
    format!("{} ({threads} {})", device.name(), if threads == 1 { "thread" } else { "threads" })
}

/// Runs the case once, and returns whether a kernel fell back to the host.
fn falls_back<T: Element>(case: &Case<T>) -> Result<bool> {
    let ledger = Ledger::new();
    let guard = ledger.open();
    let run = case.run();
    drop(guard);
    run.map(|()| ledger.total(EventKind::Fallback).count > 0)
}

impl fmt::Display for Survey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { device, element, peaks, .. } = self;
        let rate = |rate: f64, unit: &str| match rate {
            0.0 => "on the host".into(),
            rate => format!("{:.1} {unit}", rate / 1e9),
        };
        let (copy, gemm) = (rate(peaks.bandwidth, "GB/s"), rate(peaks.flops_per_second, "GFLOP/s"));
        writeln!(f, "{device}, {element}: copy {copy}, gemm {gemm}")?;
        writeln!(
            f,
            "{:<15} {:>8} {:>11} {:>8} {:>8} {:>9} {:>8}  note",
            "kernel", "size", "time", "GB/s", "of copy", "GFLOP/s", "of gemm"
        )?;
        let percent =
            |share: Option<f64>| share.map_or("–".into(), |s| format!("{:.0}%", 100.0 * s));
        let [mut has_fallback, mut has_excess] = [false; 2];
        for timing in &self.timings {
            let Timing { kernel, size, time, fallback, .. } = timing;
            let shares = self.shares(timing);
            // Round the share as the table does: a share of 100.4 % is printed as 100 %, without a
            // note.
            let is_excess = shares.iter().flatten().any(|share| (100.0 * share).round() > 100.0);
            has_fallback |= fallback;
            has_excess |= is_excess;
            let note = match (fallback, is_excess) {
                (true, _) => "  on the host",
                (_, true) => "  above 100%",
                _ => "",
            };
            let [of_copy, of_gemm] = shares.map(percent);
            writeln!(
                f,
                "{kernel:<15} {size:>8} {:>11} {:>8.2} {of_copy:>8} {:>9.2} {of_gemm:>8}{note}",
                format!("{time:.2?}"),
                timing.bandwidth() / 1e9,
                timing.flops_per_second() / 1e9,
            )?;
        }
        if has_fallback {
            writeln!(
                f,
                "on the host: {device} does not run this kernel, so the rates are the host's"
            )?;
        }
        if has_excess {
            writeln!(
                f,
                "above 100%: the operands came from a faster cache level than those of the copy or \
                 GEMM, another program ran during the copy or GEMM, or most of the time is the \
                 fixed cost of a call"
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timing(kernel: &'static str, bytes: u64, flops: u64, fallback: bool) -> Timing {
        let (time, work) = (Duration::from_micros(1), Work { bytes, flops });
        let interval = [time, time];
        Timing { kernel, size: 1, work, time, interval, time_with_transfers: time, fallback }
    }

    fn survey(timings: Vec<Timing>) -> Survey {
        let peaks = Peaks::of(&timings);
        Survey { device: "gpu".into(), element: "f32", timings, peaks }
    }

    fn line(survey: &Survey, kernel: &str) -> String {
        let text = survey.to_string();
        text.lines().find(|line| line.starts_with(kernel)).unwrap().to_owned()
    }

    #[test]
    fn a_kernel_that_falls_back_has_a_note_and_no_share() {
        let survey = survey(vec![
            timing("copy", 1000, 0, false),
            timing("gemm", 100, 4000, false),
            timing("softmax", 1000, 2000, true),
        ]);
        assert!(
            line(&survey, "softmax").ends_with("–      2.00        –  on the host"),
            "{survey}"
        );
        assert!(
            survey.to_string().contains("on the host: gpu does not run this kernel"),
            "{survey}"
        );
        assert!(!line(&survey, "gemm").contains("host"), "{survey}");
    }

    #[test]
    fn a_fallback_is_no_peak_of_the_device() {
        let survey = survey(vec![
            timing("axpy", 1000, 10, false),
            timing("copy", 1000, 0, true),
            timing("gemm", 100, 4000, true),
        ]);
        assert_eq!((survey.peaks.bandwidth, survey.peaks.flops_per_second), (0.0, 0.0));
        assert!(survey.to_string().starts_with("gpu, f32: copy on the host, gemm on the host\n"));
        assert_eq!(survey.shares(&survey.timings[0]), [None, None]);
    }

    #[test]
    fn a_share_above_100_percent_has_a_note() {
        let survey = survey(vec![
            timing("copy", 1000, 0, false),
            timing("fill", 1200, 0, false),
            timing("scal", 1004, 0, false),
        ]);
        assert!(
            line(&survey, "fill").contains("120%") && line(&survey, "fill").ends_with("above 100%")
        );
        assert!(line(&survey, "scal").contains("100%") && !line(&survey, "scal").contains("above"));
        assert!(survey.to_string().contains("above 100%: the operands came from"), "{survey}");
    }
}
