//! Times of all cases on one device, compared with the device's peak rates.

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

/// Times of one case.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// Kernel name.
    pub kernel: &'static str,
    /// Size, like [`Case::size`].
    pub size: usize,
    /// Work of one run.
    pub work: Work,
    /// Median time of one run with its operands on the device.
    pub time: Duration,
    /// Like `time`, but including transfers of operands and result.
    pub time_with_transfers: Duration,
}

impl Timing {
    /// Returns bytes per second.
    pub fn bandwidth(&self) -> f64 {
        self.work.bytes as f64 / self.time.as_secs_f64()
    }

    /// Returns floating-point operations per second.
    pub fn flops_per_second(&self) -> f64 {
        self.work.flops as f64 / self.time.as_secs_f64()
    }
}

/// Peak rates that a device reached.
#[derive(Clone, Copy, Debug, Default)]
pub struct Peaks {
    /// Bytes read and written per second, by `copy`.
    pub bandwidth: f64,
    /// Floating-point operations per second, by `gemm`.
    pub flops_per_second: f64,
}

/// Times of all cases of one device and element type.
///
/// The table gives each case's bandwidth as a percentage of that of a copy of about as many bytes,
/// and its FLOP/s as a percentage of the fastest GEMM. A case near 100 % of either is as fast as
/// the device allows.
#[derive(Clone, Debug)]
pub struct Survey {
    /// Name of the device, with its number of host threads.
    pub device: String,
    /// Name of the element type.
    pub element: &'static str,
    /// Times of the cases, ordered by kernel and size.
    pub timings: Vec<Timing>,
    /// Peak rates of the device.
    pub peaks: Peaks,
}

impl Survey {
    /// Times every case on `device`, for about 20 ms each.
    ///
    /// # Errors
    /// Errors from the kernels.
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

    /// Returns the bandwidth of the copy whose byte count is closest to that of `timing`.
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

/// Time for all samples of one case.
const BUDGET: Duration = Duration::from_millis(10);

/// Returns the median time of a run after a warm-up run. Samples are long compared to clock ticks.
fn median(mut run: impl FnMut() -> Result<()>) -> Result<Duration> {
    run()?;
    let once = timed(1, &mut run)?;
    let per_sample = BUDGET.as_nanos() / 9 / once.as_nanos().max(1);
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
