//! Break-even sizes: for each kernel, the problem size from which one device is faster than
//! another.

use super::{Survey, Timing};
use std::{fmt, time::Duration};

/// Comparison of the kernel timings of two devices. A kernel's break-even size is the smallest
/// measured size from which `device` is always faster than `host`.
///
/// ```
/// use cortado::bench_kit::{BreakEven, Peaks, Survey, Timing, Work};
/// use std::time::Duration;
///
/// let survey = |name: &str, times: [u64; 2]| { // usually from `Survey::measure`
///     let timings = [(64, times[0]), (128, times[1])].map(|(size, micros)| {
///         let (work, time) = (Work { bytes: 1, flops: 1 }, Duration::from_micros(micros));
///         Timing { kernel: "gemm", size, work, time, time_with_transfers: 2 * time }
///     });
///     let (device, timings) = (name.into(), timings.to_vec());
///     Survey { device, element: "f32", timings, peaks: Peaks::default() }
/// };
/// let table = BreakEven::between(&survey("gpu", [9, 9]), &survey("cpu", [4, 16]));
/// assert_eq!((table.resident("gemm"), table.with_transfers("gemm")), (Some(128), None));
/// ```
#[derive(Clone, Debug)]
pub struct BreakEven {
    device: String,
    host: String,
    element: &'static str,
    rows: Vec<Row>,
}

#[derive(Clone, Debug)]
struct Row {
    kernel: &'static str,
    /// Break-even sizes of the kernel: without transfers (with operands on the device), and with
    /// transfers.
    break_even: [Option<usize>; 2],
    /// Speedups of the kernel at the largest size (time on the host / time on the device), without
    /// and with transfers.
    speedup: [f64; 2],
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
    /// operands are already on the device. Returns `None` if the device is never faster or the
    /// kernel was not timed.
    pub fn resident(&self, kernel: &str) -> Option<usize> {
        self.row(kernel)?.break_even[0]
    }

    /// Like [`resident`](Self::resident), but the device's times include transfers of the operands
    /// and the result.
    pub fn with_transfers(&self, kernel: &str) -> Option<usize> {
        self.row(kernel)?.break_even[1]
    }

    fn row(&self, kernel: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.kernel == kernel)
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
        // The host's time is the same with and without transfers, because the host needs no
        // transfers.
        let times: [fn(&Timing) -> Duration; 2] =
            [|timing| timing.time, |timing| timing.time_with_transfers];
        let speedup = |time: fn(&Timing) -> Duration, (device, host): &(Timing, Timing)| {
            host.time.as_secs_f64() / time(device).as_secs_f64()
        };
        let break_even = |time| {
            let faster = pairs.iter().rev().take_while(|pair| speedup(time, pair) > 1.0);
            faster.last().map(|(device, _)| device.size)
        };
        let last = pairs.last()?;
        let speedups = times.map(|time| speedup(time, last));
        Some(Self { kernel, break_even: times.map(break_even), speedup: speedups })
    }
}

impl fmt::Display for BreakEven {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { device, host, element, .. } = self;
        writeln!(
            f,
            "{device} compared with {host}, {element}: smallest size at which {device} is faster"
        )?;
        writeln!(
            f,
            "{:<15} {:>12} {:>9} {:>14} {:>9}",
            "kernel", "on device", "speedup", "with transfers", "speedup"
        )?;
        let size = |size: Option<usize>| size.map_or("never".into(), |size| size.to_string());
        for Row { kernel, break_even, speedup } in &self.rows {
            let [resident, transferred] = break_even.map(size);
            let [resident_speedup, transferred_speedup] = speedup;
            writeln!(
                f,
                "{kernel:<15} {resident:>12} {resident_speedup:>8.2}x \
                 {transferred:>14} {transferred_speedup:>8.2}x"
            )?;
        }
        writeln!(f, "speedup: time on {host} / time on {device}, at the largest size")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench_kit::{Peaks, Work};

    fn survey(name: &str, times: [[u64; 2]; 3]) -> Survey {
        let timing = |(i, [time, across]): (usize, [u64; 2])| Timing {
            kernel: "copy",
            size: 10 << i,
            work: Work { bytes: 1, flops: 1 },
            time: Duration::from_nanos(time),
            time_with_transfers: Duration::from_nanos(across),
        };
        let lines = times.into_iter().enumerate().map(timing).collect();
        Survey { device: name.into(), element: "f32", timings: lines, peaks: Peaks::default() }
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
}
