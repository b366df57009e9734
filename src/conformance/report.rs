//! What a run of the kit found.

use super::{Coverage, Failure};
use crate::element::DType;

/// What every check found on every element type that it is about.
#[derive(Clone, Debug)]
pub struct Report {
    /// [`Memory::name`](crate::Memory::name) of the device.
    pub device: String,
    /// In the order of [`NAMES`](super::NAMES).
    pub findings: Vec<CheckResult>,
}

/// What a check found on one element type.
#[derive(Clone, Debug)]
pub struct CheckResult {
    /// The check.
    pub check: &'static str,
    /// The kernel that it is about, if it is about one.
    pub kernel: Option<&'static str>,
    /// The element type, if it is about one.
    pub element: Option<DType>,
    /// How it came out.
    pub outcome: Outcome,
}

/// How a check came out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Passed; and if it is about a kernel, the device never left that to the host.
    Native,
    /// Passed, and in some case the host computed for the device.
    Fallback,
    /// Not passed.
    Failed(Failure),
}

impl Report {
    /// Whether nothing failed.
    pub fn passed(&self) -> bool {
        self.failures().next().is_none()
    }

    /// What failed.
    pub fn failures(&self) -> impl Iterator<Item = &Failure> {
        self.findings.iter().filter_map(|finding| match &finding.outcome {
            Outcome::Failed(failure) => Some(failure),
            Outcome::Native | Outcome::Fallback => None,
        })
    }

    /// Which kernels the device computes itself.
    pub fn coverage(&self) -> Coverage<'_> {
        Coverage::new(self)
    }
}
