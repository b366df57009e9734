//! Conformance kit: runs all checks on a device and reports the results.

#[cfg(feature = "net")]
use super::nets;
use super::{
    check::{Check, CheckResult, DTYPES, Outcome, Passed},
    failure::Failure,
    kernels, memory,
    report::Report,
};
use crate::{
    device::{AnyDevice, Device},
    element::DType,
    memory::{
        Memory,
        ledger::{Entry, EventKind},
    },
};
use std::str::FromStr;

/// Default number of random cases of a check on one element type.
const CASES: u32 = 24;

/// Returns all conformance checks, in the order of [`NAMES`](super::NAMES).
fn all_checks() -> Vec<Check> {
    let mut checks = memory::checks();
    checks.extend(kernels::checks());
    #[cfg(feature = "net")]
    checks.extend(nets::checks());
    checks
}

/// Conformance kit with a seed and a number of random cases. Kits with equal seeds and equal
/// numbers of cases run the same cases on every device.
///
/// ```
/// use cortado::{CpuDevice, conformance::Kit};
///
/// let kit = Kit::new().seed(3).cases(2);
/// kit.check(&CpuDevice::new(), "axpy").unwrap();
/// let failure = kit.check(&CpuDevice::new(), "axpi").unwrap_err();
/// assert_eq!(failure.message, "no check is called `axpi`");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kit {
    seed: u64,
    cases: u32,
}

impl Default for Kit {
    fn default() -> Self {
        Self::new()
    }
}

impl Kit {
    /// Creates a kit with a fixed seed and so few random cases that a run takes seconds. The
    /// environment variables `CORTADO_SEED` and `CORTADO_CASES` override the seed and the number of
    /// cases.
    pub fn new() -> Self {
        Self { seed: from_env("CORTADO_SEED", 1), cases: from_env("CORTADO_CASES", CASES) }
    }

    /// Sets the seed of the random cases.
    #[must_use]
    pub fn seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// Sets the number of random cases per check and element type, which run in addition to the
    /// fixed cases.
    #[must_use]
    pub fn cases(self, cases: u32) -> Self {
        Self { cases, ..self }
    }

    /// Runs every check on a device, and continues after failures.
    pub fn run(&self, device: &impl Device) -> Report {
        self.run_on(&AnyDevice::new(device))
    }

    fn run_on(&self, device: &AnyDevice) -> Report {
        let mut findings = Vec::new();
        for check in all_checks() {
            findings.extend(check.elements.iter().map(|&element| CheckResult {
                check: check.name,
                kernel: check.kernel,
                element,
                outcome: self.outcome(&check, device, element),
            }));
        }
        Report { device: device.name(), results: findings }
    }

    /// Runs the check called `name` on all element types.
    ///
    /// # Errors
    /// Returns the first failure, or a failure with the check `unknown` if no check is called
    /// `name`.
    pub fn check(&self, device: &impl Device, name: &str) -> Result<(), Failure> {
        self.check_on(&AnyDevice::new(device), name)
    }

    fn check_on(&self, device: &AnyDevice, name: &str) -> Result<(), Failure> {
        let checks = all_checks();
        let Some(check) = checks.iter().find(|check| check.name == name) else {
            return Err(Failure {
                check: "unknown",
                element: None,
                message: format!("no check is called `{name}`"),
                device: device.name(),
                seed: self.seed,
                cases: self.cases,
            });
        };
        check
            .elements
            .iter()
            .try_for_each(|&element| self.try_check(check, device, element).map(drop))
    }

    /// Runs all checks, one element type after another, and returns the first failure.
    pub fn first_failure(&self, device: &impl Device) -> Option<Failure> {
        self.first_failure_on(&AnyDevice::new(device))
    }

    fn first_failure_on(&self, device: &AnyDevice) -> Option<Failure> {
        let checks = all_checks();
        let rounds = [None].into_iter().chain(DTYPES.map(Some));
        let mut cells = rounds.flat_map(|element| checks.iter().map(move |check| (check, element)));
        cells.find_map(|(check, element)| {
            let applies = check.elements.contains(&element);
            applies.then(|| self.try_check(check, device, element).err()).flatten()
        })
    }

    fn try_check(
        &self,
        check: &Check,
        device: &AnyDevice,
        element: Option<DType>,
    ) -> Result<Passed, Failure> {
        check.run(device, element, self.seed, self.cases)
    }

    fn outcome(&self, check: &Check, device: &AnyDevice, element: Option<DType>) -> Outcome {
        let names = [Some(check.name), check.kernel];
        let fell_back = |entry: &Entry| {
            entry.kind == EventKind::Fallback
                && entry.kernel.is_some()
                && names.contains(&entry.kernel)
        };
        match self.try_check(check, device, element) {
            Err(failure) => Outcome::Failed(failure),
            Ok(Passed { skipped: Some(reason), .. }) => Outcome::Skipped(reason),
            Ok(Passed { ledger, .. }) if ledger.entries().iter().any(fell_back) => {
                Outcome::Fallback
            }
            Ok(_) => Outcome::Native,
        }
    }
}

/// Returns a number from an environment variable, or `default` if the variable is not set.
fn from_env<N: FromStr>(variable: &str, default: N) -> N {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}
