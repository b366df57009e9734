//! From which size a device pays.

use super::{Survey, Timing};
use std::{fmt, time::Duration};

/// Two devices beside each other: for each kernel, the least size from which on `device` is
/// faster than `host` at every size measured.
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
    /// With the operands on the device, and with operands from the host.
    from: [Option<usize>; 2],
    /// How many times as fast at the greatest size.
    gain: [f64; 2],
}

impl BreakEven {
    /// Compares the surveys of the same cases on two devices.
    pub fn between(device: &Survey, host: &Survey) -> Self {
        let mut kernels: Vec<_> = device.lines.iter().map(|line| line.kernel).collect();
        kernels.dedup();
        let rows = kernels.into_iter().filter_map(|kernel| Row::new(kernel, device, host));
        Self {
            device: device.device.clone(),
            host: host.device.clone(),
            element: device.element,
            rows: rows.collect(),
        }
    }

    /// Size from which `kernel` pays with its operands on the device; none if it never does, or
    /// was not timed.
    pub fn resident(&self, kernel: &str) -> Option<usize> {
        self.of(kernel)?.from[0]
    }

    /// As [`resident`](Self::resident), with operands that come from the host and a result that
    /// goes there.
    pub fn with_transfers(&self, kernel: &str) -> Option<usize> {
        self.of(kernel)?.from[1]
    }

    fn of(&self, kernel: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.kernel == kernel)
    }
}

impl Row {
    fn new(kernel: &'static str, device: &Survey, host: &Survey) -> Option<Self> {
        let of = |survey: &Survey| -> Vec<Timing> {
            survey.lines.iter().filter(|line| line.kernel == kernel).copied().collect()
        };
        let (ours, theirs) = (of(device), of(host));
        let pairs: Vec<_> =
            ours.into_iter().zip(theirs).filter(|(a, b)| a.size == b.size).collect();
        // The host's operands are at hand in either case.
        let times: [fn(&Timing) -> Duration; 2] = [|line| line.time, |line| line.across];
        let gain = |time: fn(&Timing) -> Duration, (a, b): &(Timing, Timing)| {
            b.time.as_secs_f64() / time(a).as_secs_f64()
        };
        let from = |time| {
            let paying = pairs.iter().rev().take_while(|pair| gain(time, pair) > 1.0);
            paying.last().map(|(a, _)| a.size)
        };
        let last = pairs.last()?;
        Some(Self { kernel, from: times.map(from), gain: times.map(|time| gain(time, last)) })
    }
}

impl fmt::Display for BreakEven {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { device, host, element, .. } = self;
        writeln!(f, "{device} against {host}, {element}: the size from which it is faster")?;
        writeln!(
            f,
            "{:<15} {:>12} {:>9} {:>12} {:>9}",
            "kernel", "on device", "gain", "from host", "gain"
        )?;
        let size = |size: Option<usize>| size.map_or("never".into(), |size| size.to_string());
        for Row { kernel, from, gain } in &self.rows {
            let [resident, across] = from.map(size);
            let [here, crossing] = gain;
            writeln!(f, "{kernel:<15} {resident:>12} {here:>8.2}x {across:>12} {crossing:>8.2}x")?;
        }
        writeln!(f, "gain: how many times as fast at the greatest size")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench_kit::{Peaks, Work};

    fn survey(name: &str, times: [[u64; 2]; 3]) -> Survey {
        let line = |(place, [time, across]): (usize, [u64; 2])| Timing {
            kernel: "copy",
            size: 10 << place,
            work: Work { bytes: 1, flops: 1 },
            time: Duration::from_nanos(time),
            across: Duration::from_nanos(across),
        };
        let lines = times.into_iter().enumerate().map(line).collect();
        Survey { device: name.into(), element: "f32", lines, peaks: Peaks::default() }
    }

    #[test]
    fn the_least_size_from_which_it_always_pays() {
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
