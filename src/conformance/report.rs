//! Report of all conformance checks on one device.

use super::{
    check::{CheckResult, Outcome},
    coverage::Coverage,
    failure::Failure,
};

/// Results of all conformance checks on a device.
///
/// ```no_run
/// use cortado::{CpuDevice, conformance::Kit};
///
/// let report = Kit::new().run(&CpuDevice::new());
/// assert!(report.passed(), "{:?}", report.failures().next());
/// println!("{}", report.coverage());
/// ```
#[derive(Clone, Debug)]
pub struct Report {
    /// Name of the device, as [`Memory::name`](crate::Memory::name) returns it.
    pub device: String,
    /// Results by check and element type, in the order of [`NAMES`](super::NAMES).
    pub results: Vec<CheckResult>,
}

impl Report {
    /// Returns whether every check passed.
    pub fn passed(&self) -> bool {
        self.failures().next().is_none()
    }

    /// Returns the failures of all checks.
    pub fn failures(&self) -> impl Iterator<Item = &Failure> {
        self.results.iter().filter_map(|finding| match &finding.outcome {
            Outcome::Failed(failure) => Some(failure),
            Outcome::Native | Outcome::Fallback | Outcome::Skipped(_) => None,
        })
    }

    /// Returns the coverage table, which lists native kernels and fallbacks.
    pub fn coverage(&self) -> Coverage<'_> {
        Coverage::new(&self.device, &self.results)
    }
}
