//! Times of one benchmark case with cortado and with other libraries.

use super::Work;
use serde_json::{Value, json};

/// Times of one benchmark case with cortado and with other libraries on the same machine.
///
/// ```
/// use cortado::bench_kit::{PeerTimes, Work};
///
/// let times = PeerTimes {
///     kernel: "sgemm".into(), case: "512x512x512".into(), threads: 1,
///     work: Work { bytes: 0, flops: 268_435_456 }, seconds: 2e-3,
///     others: vec![("OpenBLAS".into(), 2.5e-3), ("MKL".into(), 1.5e-3)],
/// };
/// assert_eq!(times.best(), Some(("MKL", 1.5e-3)));
/// assert_eq!(times.ratio(), Some(0.75)); // cortado reaches 75 % of the rate of MKL
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct PeerTimes {
    /// Name of the kernel or group of kernels.
    pub kernel: String,
    /// Name of the case, unique among the cases with the same kernel and number of threads.
    pub case: String,
    /// Number of threads of each library.
    pub threads: usize,
    /// Work of a call.
    pub work: Work,
    /// Median time of a call of cortado, in seconds.
    pub seconds: f64,
    /// Names of other libraries, each with the median time of a call in seconds.
    pub others: Vec<(String, f64)>,
}

impl PeerTimes {
    /// Returns the name and the time of the fastest other library.
    pub fn best(&self) -> Option<(&str, f64)> {
        let best = self.others.iter().min_by(|a, b| a.1.total_cmp(&b.1));
        best.map(|(library, seconds)| (&**library, *seconds))
    }

    /// Returns cortado's rate divided by the rate of the fastest other library. The ratio is above 1
    /// if cortado is the fastest.
    pub fn ratio(&self) -> Option<f64> {
        self.best().map(|(_, seconds)| seconds / self.seconds)
    }

    pub(super) fn to_json(&self) -> Value {
        json!({
            "kernel": self.kernel, "case": self.case, "threads": self.threads,
            "bytes": self.work.bytes, "flops": self.work.flops, "seconds": self.seconds,
            "others": self.others,
        })
    }

    pub(super) fn from_json(value: &Value) -> Option<Self> {
        let text = |value: &Value| Some(value.as_str()?.to_owned());
        let time = |value: &Value| value.as_f64().filter(|seconds| *seconds > 0.0);
        let other = |other: &Value| Some((text(&other[0])?, time(&other[1])?));
        Some(Self {
            kernel: text(&value["kernel"])?,
            case: text(&value["case"])?,
            threads: value["threads"].as_u64()?.try_into().ok()?,
            work: Work { bytes: value["bytes"].as_u64()?, flops: value["flops"].as_u64()? },
            seconds: time(&value["seconds"])?,
            others: value["others"].as_array()?.iter().map(other).collect::<Option<_>>()?,
        })
    }
}
