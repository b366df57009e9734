//! The report of a run of all checks.

use super::{
    check::{CheckResult, Outcome},
    coverage::Coverage,
    failure::Failure,
};

/// The results of all checks on a device.
#[derive(Clone, Debug)]
pub struct Report {
    /// [`Memory::name`](crate::Memory::name) of the device.
    pub device: String,
    /// One result per check and element type, in the order of [`NAMES`](super::NAMES).
    pub results: Vec<CheckResult>,
}

impl Report {
    /// Returns whether every check passed.
    pub fn passed(&self) -> bool {
        self.failures().next().is_none()
    }

    /// Returns the failures.
    pub fn failures(&self) -> impl Iterator<Item = &Failure> {
        self.results.iter().filter_map(|finding| match &finding.outcome {
            Outcome::Failed(failure) => Some(failure),
            Outcome::Native | Outcome::Fallback => None,
        })
    }

    /// Returns the table of native kernels.
    pub fn coverage(&self) -> Coverage<'_> {
        Coverage::new(&self.device, &self.results)
    }
}
