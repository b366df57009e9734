//! The times of all cases on one device, against what the device itself can do.

use super::{Case, SizeRange, Work, cases};
use crate::{device::Device, element::Element, error::Result};
use std::{
    fmt,
    time::{Duration, Instant},
};

/// One case, timed.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// The kernel.
    pub kernel: &'static str,
    /// The size, as [`Case::size`].
    pub size: usize,
    /// What one run does.
    pub work: Work,
    /// Median time of one run with its operands on the device.
    pub time: Duration,
    /// As `time`, with operands that come from the host and a result that goes there.
    pub across: Duration,
}

impl Timing {
    /// Bytes a second.
    pub fn bandwidth(&self) -> f64 {
        self.work.bytes as f64 / self.time.as_secs_f64()
    }

    /// Floating-point operations a second.
    pub fn flops_per_second(&self) -> f64 {
        self.work.flops as f64 / self.time.as_secs_f64()
    }
}

/// The greatest rates that a device reached.
#[derive(Clone, Copy, Debug, Default)]
pub struct Peaks {
    /// Bytes a second, read and written, by `copy`.
    pub bandwidth: f64,
    /// Floating-point operations a second, by `gemm`.
    pub rate: f64,
}

/// All cases of one device and element type, timed.
///
/// Its table gives each case's rates as shares of what the same device reached: its bandwidth as a
/// share of that of a copy of about as many bytes, its operations as a share of the fastest
/// product's. What is near 100 % of either is as fast as it can be.
#[derive(Clone, Debug)]
pub struct Survey {
    /// Name of the device, with its number of host threads.
    pub device: String,
    /// Name of the element type.
    pub element: &'static str,
    /// The cases, by kernel and size.
    pub lines: Vec<Timing>,
    /// The peaks.
    pub peaks: Peaks,
}

impl Survey {
    /// Times every case on `device`: some 20 ms for each.
    ///
    /// # Errors
    /// Those of the kernels.
    pub fn measure<T: Element, D: Device>(device: &D, extent: SizeRange) -> Result<Self> {
        let cases = cases::<T, D>(device, extent)?;
        let lines: Vec<_> = cases.iter().map(line).collect::<Result<_>>()?;
        let greatest = |kernel: &str, rate: fn(&Timing) -> f64| {
            let of_kernel = lines.iter().filter(|line| line.kernel == kernel);
            of_kernel.map(rate).fold(0.0, f64::max)
        };
        let peaks = Peaks {
            bandwidth: greatest("copy", Timing::bandwidth),
            rate: greatest("gemm", Timing::flops_per_second),
        };
        let device = format!("{} ({} threads)", device.name(), device.host_workers().count());
        Ok(Self { device, element: T::DTYPE.name(), lines, peaks })
    }
}

impl Survey {
    /// Bandwidth of the copy of about as many bytes as `line` touches.
    fn copy_like(&self, line: &Timing) -> f64 {
        let copies = self.lines.iter().filter(|line| line.kernel == "copy");
        let nearest = copies.min_by_key(|copy| {
            let [more, less] =
                [copy.work.bytes.max(line.work.bytes), copy.work.bytes.min(line.work.bytes)];
            more / less.max(1)
        });
        nearest.map_or(f64::NAN, Timing::bandwidth)
    }
}

fn line<T: Element, D: Device>(case: &Case<T, D>) -> Result<Timing> {
    let (kernel, size, work) = (case.kernel(), case.size(), case.work());
    let across = median(|| case.run_with_transfers())?;
    let time = median(|| case.run())?;
    Ok(Timing { kernel, size, work, time, across })
}

/// Time for all samples of one case.
const BUDGET: Duration = Duration::from_millis(10);

/// Median time of a run: of samples long enough for the clock, after one run to warm up.
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
        let (copied, multiplied) = (peaks.bandwidth / 1e9, peaks.rate / 1e9);
        writeln!(f, "{device}, {element}: copy {copied:.1} GB/s, gemm {multiplied:.1} GFLOP/s")?;
        writeln!(
            f,
            "{:<15} {:>8} {:>11} {:>8} {:>8} {:>9} {:>8}",
            "kernel", "size", "time", "GB/s", "of copy", "GFLOP/s", "of gemm"
        )?;
        for line in &self.lines {
            let Timing { kernel, size, time, .. } = line;
            let (bandwidth, rate) = (line.bandwidth(), line.flops_per_second());
            writeln!(
                f,
                "{kernel:<15} {size:>8} {:>11} {:>8.2} {:>7.0}% {:>9.2} {:>7.0}%",
                format!("{time:.2?}"),
                bandwidth / 1e9,
                100.0 * bandwidth / self.copy_like(line),
                rate / 1e9,
                100.0 * rate / peaks.rate,
            )?;
        }
        Ok(())
    }
}
