//! Break-even sizes: for each kernel, the problem size from which one device is faster than
//! another.

use super::{Survey, Timing};
use std::{fmt, time::Duration};

/// Comparison of the kernel timings of two devices. A kernel's break-even size is the smallest
/// measured size from which `device` is always faster than `host`.
///
/// The device counts as faster at a size if the time on the host exceeds the time on the device by
/// more than the noise. The noise, relative to the time on the device, is the sum of the relative
/// widths of the intervals of both times, and at least 5 %. The times with
/// transfers have no interval of their own, so their noise is that of the times without transfers.
///
/// A kernel that falls back to the host at every size has no break-even size and no speedup,
/// because both times are times of the host. A kernel that was timed at fewer than three sizes has
/// no break-even size, for example in a survey with [`SizeRange::Smoke`](super::SizeRange::Smoke).
///
/// ```
/// use cortado::bench_kit::{BreakEven, Peaks, Survey, Timing, Work};
/// use std::time::Duration;
///
/// let survey = |name: &str, times: [u64; 3]| { // usually from `Survey::measure`
///     let timings = [64, 128, 256].into_iter().zip(times).map(|(size, micros)| {
///         let (work, time) = (Work { bytes: 1, flops: 1 }, Duration::from_micros(micros));
///         let (kernel, time_with_transfers) = ("gemm", 2 * time);
///         let interval = [time, time];
///         Timing { kernel, size, work, time, interval, time_with_transfers, fallback: false }
///     });
///     let (device, timings) = (name.into(), timings.collect());
///     Survey { device, element: "f32", timings, peaks: Peaks::default() }
/// };
/// let table = BreakEven::between(&survey("gpu", [9, 9, 9]), &survey("cpu", [4, 16, 64]));
/// assert_eq!((table.resident("gemm"), table.with_transfers("gemm")), (Some(128), Some(256)));
/// ```
#[derive(Clone, Debug)]
pub struct BreakEven {
    device: String,
    host: String,
    element: &'static str,
    rows: Vec<Row>,
}

/// Smallest number of timed sizes from which a kernel's break-even size can be determined. With
/// fewer sizes, the break-even size would be one of the ends of the measured range.
const MIN_SIZES: usize = 3;

#[derive(Clone, Debug)]
struct Row {
    kernel: &'static str,
    comparison: Comparison,
}

#[derive(Clone, Debug)]
enum Comparison {
    /// The device's kernel falls back to the host at every size.
    Fallback,
    /// The device's kernel is native at one size or more. The first value of each array excludes
    /// transfers, and the second value includes transfers.
    Times {
        /// Whether the kernel was timed at [`MIN_SIZES`] sizes or more.
        has_enough_sizes: bool,
        break_even: [Option<usize>; 2],
        /// Speedups (time on the host / time on the device) at the largest size at which the
        /// device's kernel is native.
        speedup: [f64; 2],
    },
}

impl BreakEven {
    /// Compares the timings of two surveys that ran the same cases on two devices.
    pub fn between(device: &Survey, host: &Survey) -> Self {
        let mut kernels: Vec<_> = device.timings.iter().map(|timing| timing.kernel).collect();
        kernels.dedup();
        let rows = kernels.into_iter().filter_map(|kernel| Row::new(kernel, device, host));
        Self {
            device: device.device.clone(),
            host: host.device.clone(),
            element: device.element,
            rows: rows.collect(),
        }
    }

    /// Returns the size from which `kernel` is faster on the device than on the host, if the
    /// operands are already on the device. Returns `None` if the device is never faster, the kernel
    /// falls back to the host, or the kernel was timed at fewer than three sizes.
    pub fn resident(&self, kernel: &str) -> Option<usize> {
        self.break_even(kernel, 0)
    }

    /// Like [`resident`](Self::resident), but the device's times include transfers of the operands
    /// and the result.
    pub fn with_transfers(&self, kernel: &str) -> Option<usize> {
        self.break_even(kernel, 1)
    }

    /// Returns the names of the compared kernels.
    pub fn kernels(&self) -> impl Iterator<Item = &'static str> {
        self.rows.iter().map(|row| row.kernel)
    }

    fn break_even(&self, kernel: &str, times: usize) -> Option<usize> {
        let row = self.rows.iter().find(|row| row.kernel == kernel)?;
        match row.comparison {
            Comparison::Times { break_even, .. } => break_even[times],
            Comparison::Fallback => None,
        }
    }
}

impl Row {
    fn new(kernel: &'static str, device: &Survey, host: &Survey) -> Option<Self> {
        let timings = |survey: &Survey| -> Vec<Timing> {
            survey.timings.iter().filter(|timing| timing.kernel == kernel).copied().collect()
        };
        let pairs: Vec<_> = timings(device)
            .into_iter()
            .zip(timings(host))
            .filter(|(device, host)| device.size == host.size)
            .collect();
        pairs.last()?;
        let Some(last) = pairs.iter().rev().find(|(device, _)| !device.fallback) else {
            return Some(Self { kernel, comparison: Comparison::Fallback });
        };
        // The host's time is the same with and without transfers, because the host needs no
        // transfers.
        let times: [fn(&Timing) -> Duration; 2] =
            [|timing| timing.time, |timing| timing.time_with_transfers];
        let speedup = |time: fn(&Timing) -> Duration, (device, host): &(Timing, Timing)| {
            host.time.as_secs_f64() / time(device).as_secs_f64()
        };
        let has_enough_sizes = pairs.len() >= MIN_SIZES;
        let break_even = |time| {
            let is_faster = |pair: &&(Timing, Timing)| {
                !pair.0.fallback && speedup(time, pair) > 1.0 + noise(pair)
            };
            let faster_pairs = pairs.iter().rev().take_while(is_faster);
            faster_pairs.last().map(|(device, _)| device.size).filter(|_| has_enough_sizes)
        };
        let comparison = Comparison::Times {
            has_enough_sizes,
            break_even: times.map(break_even),
            speedup: times.map(|time| speedup(time, last)),
        };
        Some(Self { kernel, comparison })
    }
}

/// Lower bound of the noise: a smaller relative difference of two times always counts as noise.
/// Between the surveys of two devices, the clock rate of a shared machine can change by several
/// percent.
const MIN_NOISE: f64 = 0.05;

/// Returns the noise: the relative difference between the times on a device and on the host up to
/// which the device does not count as faster.
fn noise((device, host): &(Timing, Timing)) -> f64 {
    let width = |timing: &Timing| {
        let [low, high] = timing.interval.map(|time| time.as_secs_f64());
        (high - low) / timing.time.as_secs_f64()
    };
    (width(device) + width(host)).max(MIN_NOISE)
}

impl fmt::Display for BreakEven {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { device, host, element, .. } = self;
        writeln!(
            f,
            "{device} compared with {host}, {element}: smallest size from which {device} is faster"
        )?;
        writeln!(
            f,
            "{:<15} {:>12} {:>9} {:>14} {:>9}",
            "kernel", "on device", "speedup", "with transfers", "speedup"
        )?;
        let [mut has_fallback, mut has_few_sizes] = [false; 2];
        for Row { kernel, comparison } in &self.rows {
            let Comparison::Times { has_enough_sizes, break_even, speedup } = comparison else {
                has_fallback = true;
                writeln!(
                    f,
                    "{kernel:<15} {:>12} {:>9} {:>14} {:>9}",
                    "on the host", "–", "–", "–"
                )?;
                continue;
            };
            has_few_sizes |= !has_enough_sizes;
            let size = |size: &Option<usize>| match size {
                Some(size) => size.to_string(),
                None if *has_enough_sizes => "never".into(),
                None => "–".into(),
            };
            let [resident, transferred] = break_even.each_ref().map(size);
            let [resident_speedup, transferred_speedup] = speedup;
            writeln!(
                f,
                "{kernel:<15} {resident:>12} {resident_speedup:>8.2}x \
                 {transferred:>14} {transferred_speedup:>8.2}x"
            )?;
        }
        writeln!(f, "speedup: time on {host} / time on {device}, at the largest size")?;
        if has_few_sizes {
            writeln!(f, "–: a break-even size needs timings at {MIN_SIZES} sizes or more")?;
        }
        if has_fallback {
            writeln!(f, "on the host: {device} does not run this kernel, so it gains nothing")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench_kit::{Peaks, Work};

    fn survey<const N: usize>(name: &str, times: [[u64; 2]; N]) -> Survey {
        let timing = |(i, [time, time_with_transfers]): (usize, [u64; 2])| Timing {
            kernel: "copy",
            size: 10 << i,
            work: Work { bytes: 1, flops: 1 },
            time: Duration::from_nanos(time),
            interval: [Duration::from_nanos(time); 2],
            time_with_transfers: Duration::from_nanos(time_with_transfers),
            fallback: false,
        };
        let timings = times.into_iter().enumerate().map(timing).collect();
        Survey { device: name.into(), element: "f32", timings, peaks: Peaks::default() }
    }

    #[test]
    fn break_even_is_the_smallest_size_from_which_the_device_is_always_faster() {
        let host = survey("host", [[10, 10], [20, 20], [40, 40]]);
        let device = survey("device", [[9, 99], [21, 99], [20, 40]]);
        let table = BreakEven::between(&device, &host);
        assert_eq!((table.resident("copy"), table.with_transfers("copy")), (Some(40), None));
        assert_eq!(table.resident("gemm"), None);
        let text = table.to_string();
        assert!(text.contains("2.00x") && text.contains("never"), "{text}");
        let table = BreakEven::between(&survey("fast", [[1, 1], [1, 1], [1, 1]]), &host);
        assert_eq!((table.resident("copy"), table.with_transfers("copy")), (Some(10), Some(10)));
    }

    #[test]
    fn a_difference_within_the_noise_is_no_gain() {
        let host = survey("host", [[1000, 1000], [2000, 2000], [4000, 4000]]);
        // The device is 1 % faster at the first size, and twice as fast at the other sizes.
        let mut device = survey("device", [[990, 990], [1000, 1000], [2000, 2000]]);
        assert_eq!(BreakEven::between(&device, &host).resident("copy"), Some(20));
        // At the second size, the time on the host exceeds the time on the device by 100 %. An
        // interval with a width of 60 % is narrower than this difference; an interval with a width
        // of 105 % is wider.
        device.timings[1].interval = [900, 1500].map(Duration::from_nanos);
        assert_eq!(BreakEven::between(&device, &host).resident("copy"), Some(20));
        device.timings[1].interval = [950, 2000].map(Duration::from_nanos);
        assert_eq!(BreakEven::between(&device, &host).resident("copy"), Some(40));
    }

    #[test]
    fn fewer_than_three_sizes_have_no_break_even_size() {
        let host = survey("host", [[10, 10], [20, 20]]);
        let table = BreakEven::between(&survey("fast", [[1, 1], [2, 2]]), &host);
        assert_eq!((table.resident("copy"), table.with_transfers("copy")), (None, None));
        let text = table.to_string();
        assert!(text.contains("10.00x") && !text.contains("never"), "{text}");
        assert!(text.contains("–: a break-even size needs timings at 3 sizes or more"), "{text}");
    }

    #[test]
    fn a_kernel_that_falls_back_claims_no_gain() {
        let host = survey("host", [[10, 10], [20, 20], [40, 40]]);
        let mut device = survey("device", [[1, 1], [1, 1], [1, 1]]);
        device.timings[2].fallback = true;
        let table = BreakEven::between(&device, &host);
        assert_eq!((table.resident("copy"), table.with_transfers("copy")), (None, None));
        assert!(table.to_string().contains("20.00x"), "{table}");
        device.timings.iter_mut().for_each(|timing| timing.fallback = true);
        let text = BreakEven::between(&device, &host).to_string();
        assert!(text.contains("copy             on the host") && !text.contains("00x"), "{text}");
        assert!(text.contains("on the host: device does not run this kernel"), "{text}");
    }
}
