//! Survey: times of all benchmark cases on one device, compared with the device's peak rates.

use super::{Case, SizeRange, Work, cases};
use crate::{
    device::{AnyDevice, Device},
    element::Element,
    error::Result,
    kernel::traits::*,
};
use std::{
    fmt,
    time::{Duration, Instant},
};

/// Median times of one benchmark case.
///
/// ```
/// use cortado::bench_kit::{Timing, Work};
/// use std::time::Duration;
///
/// let (work, time) = (Work { bytes: 4_000, flops: 1_000 }, Duration::from_micros(2));
/// let timing = Timing { kernel: "axpy", size: 500, work, time, time_with_transfers: time };
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
    /// Median time of one run of the kernel, including transfers of the operands and the result.
    pub time_with_transfers: Duration,
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

/// Highest rates that a device reached in a survey: bandwidth of `copy` and FLOP/s of `gemm`.
///
/// ```
/// use cortado::bench_kit::{Peaks, Work};
///
/// let peaks = Peaks { bandwidth: 100e9, flops_per_second: 1e12 };
/// let work = Work { bytes: 1 << 20, flops: 1 << 22 };
/// let seconds_in_memory = work.bytes as f64 / peaks.bandwidth;
/// let seconds_of_arithmetic = work.flops as f64 / peaks.flops_per_second;
/// assert!(seconds_in_memory > seconds_of_arithmetic); // bandwidth limits this kernel
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
/// The printed table gives the bandwidth of a case as a percentage of the bandwidth of a copy of
/// similar size. The printed table also gives the FLOP/s of a case as a percentage of the FLOP/s of
/// the fastest GEMM. A case near 100 % of the copy bandwidth or of the GEMM rate runs as fast as
/// the device allows.
///
/// ```no_run
/// use cortado::{CpuDevice, bench_kit::{SizeRange, Survey}};
///
/// let survey = Survey::measure::<f32>(&CpuDevice::new(), SizeRange::Full)?;
/// let slowest = survey.timings.iter().max_by_key(|timing| timing.time).unwrap();
/// println!("{} of size {} takes {:?}", slowest.kernel, slowest.size, slowest.time);
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Survey {
    /// Name of the device and its number of host threads.
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
        let device = &AnyDevice::new(device);
        let cases = cases::<T>(device, sizes)?;
        let lines: Vec<_> = cases.iter().map(time_case).collect::<Result<_>>()?;
        let peak = |kernel: &str, rate: fn(&Timing) -> f64| {
            let timings = lines.iter().filter(|timing| timing.kernel == kernel);
            timings.map(rate).fold(0.0, f64::max)
        };
        let peaks = Peaks {
            bandwidth: peak("copy", Timing::bandwidth),
            flops_per_second: peak("gemm", Timing::flops_per_second),
        };
        let device = format!("{} ({} threads)", device.name(), device.host_workers().count());
        Ok(Self { device, element: T::DTYPE.name(), timings: lines, peaks })
    }

    /// Returns the bandwidth of the copy whose byte count is closest to the byte count of `timing`.
    fn copy_bandwidth(&self, timing: &Timing) -> f64 {
        let copies = self.timings.iter().filter(|timing| timing.kernel == "copy");
        let nearest = copies.min_by_key(|copy| {
            let [more, less] =
                [copy.work.bytes.max(timing.work.bytes), copy.work.bytes.min(timing.work.bytes)];
            more / less.max(1)
        });
        nearest.map_or(f64::NAN, Timing::bandwidth)
    }
}

fn time_case<T: Element>(case: &Case<T>) -> Result<Timing> {
    let (kernel, size, work) = (case.kernel(), case.size(), case.work());
    let across = median(|| case.run_with_transfers())?;
    let time = median(|| case.run())?;
    Ok(Timing { kernel, size, work, time, time_with_transfers: across })
}

/// Total duration of the samples from which one median time is computed.
const SAMPLING_TIME: Duration = Duration::from_millis(10);

/// Returns the median time of one call of `run`, after a warm-up call. One sample times several
/// runs together, because a single run can be shorter than the resolution of the clock.
fn median(mut run: impl FnMut() -> Result<()>) -> Result<Duration> {
    run()?;
    let once = timed(1, &mut run)?;
    let per_sample = SAMPLING_TIME.as_nanos() / 9 / once.as_nanos().max(1);
    let repeats = per_sample.clamp(1, 10_000) as u32;
    let mut samples = [Duration::ZERO; 9];
    for sample in &mut samples {
        *sample = timed(repeats, &mut run)? / repeats;
    }
    samples.sort_unstable();
    Ok(samples[samples.len() / 2].max(Duration::from_nanos(1)))
}

fn timed(repeats: u32, run: &mut impl FnMut() -> Result<()>) -> Result<Duration> {
    let start = Instant::now();
    (0..repeats).try_for_each(|_| run())?;
    Ok(start.elapsed())
}

impl fmt::Display for Survey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { device, element, peaks, .. } = self;
        let (gb, gflop) = (peaks.bandwidth / 1e9, peaks.flops_per_second / 1e9);
        writeln!(f, "{device}, {element}: copy {gb:.1} GB/s, gemm {gflop:.1} GFLOP/s")?;
        writeln!(
            f,
            "{:<15} {:>8} {:>11} {:>8} {:>8} {:>9} {:>8}",
            "kernel", "size", "time", "GB/s", "of copy", "GFLOP/s", "of gemm"
        )?;
        for timing in &self.timings {
            let Timing { kernel, size, time, .. } = timing;
            let (bandwidth, rate) = (timing.bandwidth(), timing.flops_per_second());
            writeln!(
                f,
                "{kernel:<15} {size:>8} {:>11} {:>8.2} {:>7.0}% {:>9.2} {:>7.0}%",
                format!("{time:.2?}"),
                bandwidth / 1e9,
                100.0 * bandwidth / self.copy_bandwidth(timing),
                rate / 1e9,
                100.0 * rate / peaks.flops_per_second,
            )?;
        }
        Ok(())
    }
}
