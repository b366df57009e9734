//! Record: the stored result of one benchmark case.

use serde_json::{Value, json};
use std::time::Duration;

/// Measured time of one benchmark case, with its work and the least time that the peak rates of the
/// device allow.
///
/// ```
/// use cortado::bench_kit::Record;
///
/// let record = Record {
///     case: "gemm/f32/64".into(), kernel: "gemm".into(), element: "f32".into(),
///     device: "cpu (1 thread)".into(), size: Some(64), bytes: 49_152, flops: 524_288,
///     seconds: 4e-6, interval: [3.9e-6, 4.2e-6], limit_seconds: Some(2e-6), fallback: false,
/// };
/// assert_eq!(record.percent_of_limit(), Some(50.0)); // twice as fast would be possible
/// assert_eq!(Record::from_json(&record.to_json()), Some(record));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Name of the case, which is unique among the cases of a benchmark program.
    pub case: String,
    /// Name of the kernel.
    pub kernel: String,
    /// Name of the element type; empty for a case without elements.
    pub element: String,
    /// Name of the device, with its number of threads.
    pub device: String,
    /// Problem size, if the kernel has cases of several sizes.
    pub size: Option<u64>,
    /// Number of bytes that a run reads and writes; 0 for a run that copies nothing.
    pub bytes: u64,
    /// Number of floating-point operations of a run.
    pub flops: u64,
    /// Median time of a run, in seconds; with several passes, that of the fastest pass.
    pub seconds: f64,
    /// 95 % confidence interval of the median time, in seconds; with several passes, the interval
    /// that [`Bench`](super::Bench) describes.
    pub interval: [f64; 2],
    /// Least time of a run at the measured peak rates of the device, in seconds, if the peak rates
    /// are known.
    pub limit_seconds: Option<f64>,
    /// Whether the kernel ran on the host because the device does not override it.
    pub fallback: bool,
}

impl Record {
    /// Returns the speed as a percentage of the speed at the limit: `100 · limit_seconds /
    /// seconds`, or `None` without a limit. A value above 100 results from noise, or from operands
    /// in a faster cache level.
    pub fn percent_of_limit(&self) -> Option<f64> {
        self.limit_seconds.filter(|limit| *limit > 0.0).map(|limit| 100.0 * limit / self.seconds)
    }

    /// Formats the rate: GFLOP/s for a case that computes more than it moves, GB/s for other cases,
    /// and `copies nothing` for a case that does neither.
    pub fn rate(&self) -> String {
        let giga = |work: u64| work as f64 / self.seconds / 1e9;
        match (self.flops, self.bytes) {
            (0, 0) => "copies nothing".into(),
            (flops, bytes) if flops > bytes => format!("{:.1} GFLOP/s", giga(flops)),
            (_, bytes) => format!("{:.1} GB/s", giga(bytes)),
        }
    }

    /// Formats the share of the limit: with a note above 100 %, as `on the host` for a fallback,
    /// and as a dash if the limit is unknown.
    pub fn share(&self) -> String {
        match self.percent_of_limit() {
            _ if self.fallback => "on the host".into(),
            None => "–".into(),
            Some(percent) if percent.round() > 100.0 => format!("{percent:.0} % (noise or cache)"),
            Some(percent) => format!("{percent:.0} %"),
        }
    }

    /// Returns the record as a JSON object.
    pub fn to_json(&self) -> Value {
        json!({
            "case": self.case, "kernel": self.kernel, "element": self.element,
            "device": self.device, "size": self.size, "bytes": self.bytes, "flops": self.flops,
            "seconds": self.seconds, "interval": self.interval,
            "limit_seconds": self.limit_seconds, "fallback": self.fallback,
        })
    }

    /// Reads a record from a JSON object. Returns `None` if a field other than `size` and
    /// `limit_seconds` is missing or has the wrong type, or if a time is not positive.
    pub fn from_json(value: &Value) -> Option<Self> {
        let text = |name: &str| Some(value[name].as_str()?.to_owned());
        let time = |value: &Value| value.as_f64().filter(|seconds| *seconds > 0.0);
        Some(Self {
            case: text("case")?,
            kernel: text("kernel")?,
            element: text("element")?,
            device: text("device")?,
            size: value["size"].as_u64(),
            bytes: value["bytes"].as_u64()?,
            flops: value["flops"].as_u64()?,
            seconds: time(&value["seconds"])?,
            interval: [time(&value["interval"][0])?, time(&value["interval"][1])?],
            limit_seconds: time(&value["limit_seconds"]),
            fallback: value["fallback"].as_bool()?,
        })
    }
}

/// Formats a time with its unit.
pub(super) fn time_text(seconds: f64) -> String {
    match Duration::try_from_secs_f64(seconds) {
        Ok(time) => format!("{time:.2?}"),
        // A file can contain a time of any magnitude.
        Err(_) => format!("{seconds:e}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_any_magnitude_have_a_text() {
        assert_eq!(time_text(0.0015), "1.50ms");
        assert_eq!(time_text(1e20), "1e20s");
        assert_eq!(time_text(f64::NAN), "NaNs");
    }

    #[test]
    fn rates_name_their_unit_and_nothing_copied_has_no_rate() {
        let mut record = Record {
            case: "c".into(),
            kernel: "k".into(),
            element: "f32".into(),
            device: "d".into(),
            size: None,
            bytes: 0,
            flops: 0,
            seconds: 1e-9,
            interval: [1e-9; 2],
            limit_seconds: None,
            fallback: false,
        };
        assert_eq!((record.rate(), record.share()), ("copies nothing".into(), "–".into()));
        record.bytes = 40;
        assert_eq!(record.rate(), "40.0 GB/s");
        record.flops = 41;
        record.limit_seconds = Some(1.2e-9);
        assert_eq!(record.rate(), "41.0 GFLOP/s");
        assert_eq!(record.share(), "120 % (noise or cache)");
        assert!(Record::from_json(&json!({ "case": "c" })).is_none());
    }
}
