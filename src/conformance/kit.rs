//! Conformance kit: runs all checks on a device and reports the results.

#[cfg(feature = "net")]
use super::nets;
use super::{
    check::{Check, CheckResult, DTYPES, End, Outcome, Passed, Settings},
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
use std::{str::FromStr, time::Duration};

/// Default number of random cases of a check on one element type.
const CASES: u32 = 24;

/// Default time after which a step of a check counts as hung. A step of the slowest check takes
/// about a second in a debug build.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Returns all conformance checks, in the order of [`NAMES`](super::NAMES).
fn all_checks() -> Vec<Check> {
    let mut checks = memory::checks();
    checks.extend(kernels::checks());
    #[cfg(feature = "net")]
    checks.extend(nets::checks());
    checks
}

/// Conformance kit with a seed, a number of random cases and a timeout. Kits with equal seeds and
/// equal numbers of cases run the same cases on every device.
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
pub struct Kit(Settings);

impl Default for Kit {
    fn default() -> Self {
        Self::new()
    }
}

impl Kit {
    /// Creates a kit with a fixed seed and so few random cases that a run takes seconds. The
    /// environment variables `CORTADO_SEED`, `CORTADO_CASES` and `CORTADO_TIMEOUT` override the
    /// seed, the number of cases and the timeout, which is in seconds.
    pub fn new() -> Self {
        let timeout = Duration::from_secs(from_env("CORTADO_TIMEOUT", TIMEOUT.as_secs()));
        let (seed, cases) = (from_env("CORTADO_SEED", 1), from_env("CORTADO_CASES", CASES));
        Self(Settings { seed, cases, timeout })
    }

    /// Sets the seed of the random cases.
    #[must_use]
    pub fn seed(self, seed: u64) -> Self {
        Self(Settings { seed, ..self.0 })
    }

    /// Sets the number of random cases per check and element type. The random cases run in addition
    /// to the fixed cases.
    #[must_use]
    pub fn cases(self, cases: u32) -> Self {
        Self(Settings { cases, ..self.0 })
    }

    /// Sets the time after which one case or step of a check counts as hung; the default is two
    /// minutes. A check runs on its own thread. If the check hangs, for example because two queues
    /// wait for each other, the kit reports a failure, but the thread keeps running.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        Self(Settings { timeout, ..self.0 })
    }

    /// Runs every check on a device, and continues after failures. If a check hangs, skips the
    /// checks after it, because the device may be blocked.
    pub fn run(&self, device: &impl Device) -> Report {
        self.run_on(&AnyDevice::new(device))
    }

    fn run_on(&self, device: &AnyDevice) -> Report {
        let mut findings = Vec::new();
        let mut hanging_check = None;
        for check in all_checks() {
            for &element in &check.elements {
                let outcome = match hanging_check {
                    Some(name) => Outcome::Skipped(format!("the check `{name}` hangs")),
                    None => match check.run(device, element, self.0) {
                        End::Passed(passed) => outcome(&check, passed),
                        End::Failed(failure) => Outcome::Failed(failure),
                        End::Hangs(failure) => {
                            hanging_check = Some(check.name);
                            Outcome::Failed(failure)
                        }
                    },
                };
                let (check, kernel) = (check.name, check.kernel);
                findings.push(CheckResult { check, kernel, element, outcome });
            }
        }
        Report { device: device.name(), results: findings }
    }

    /// Runs the check called `name` on all element types.
    ///
    /// # Errors
    /// Returns the first failure, or a failure with the check `unknown` if no check is called
    /// `name`.
    pub fn check(&self, device: &impl Device, name: &str) -> Result<(), Failure> {
        self.check_on(&AnyDevice::new(device), name).map(drop)
    }

    /// Runs the check called `name` on all element types, and returns the reason if the kit skipped
    /// the check or a part of it.
    pub(super) fn check_on(
        &self,
        device: &AnyDevice,
        name: &str,
    ) -> Result<Option<String>, Failure> {
        let checks = all_checks();
        let Some(check) = checks.iter().find(|check| check.name == name) else {
            return Err(Failure {
                check: "unknown",
                element: None,
                message: format!("no check is called `{name}`"),
                device: device.name(),
                seed: self.0.seed,
                cases: self.0.cases,
            });
        };
        let mut skip_reason = None;
        for &element in &check.elements {
            skip_reason = skip_reason.or(self.try_check(check, device, element)?.skipped);
        }
        Ok(skip_reason)
    }

    /// Runs all checks, one element type after another, and returns the first failure.
    pub fn first_failure(&self, device: &impl Device) -> Option<Failure> {
        self.first_failure_on(&AnyDevice::new(device))
    }

    fn first_failure_on(&self, device: &AnyDevice) -> Option<Failure> {
        let checks = all_checks();
        let elements = [None].into_iter().chain(DTYPES.map(Some));
        let mut cells =
            elements.flat_map(|element| checks.iter().map(move |check| (check, element)));
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
        match check.run(device, element, self.0) {
            End::Passed(passed) => Ok(passed),
            End::Failed(failure) | End::Hangs(failure) => Err(failure),
        }
    }
}

/// Returns the outcome of a check that passed.
fn outcome(check: &Check, Passed { ledger, skipped }: Passed) -> Outcome {
    let names = [Some(check.name), check.kernel];
    let fell_back = |entry: &Entry| {
        entry.kind == EventKind::Fallback && entry.kernel.is_some() && names.contains(&entry.kernel)
    };
    match skipped {
        Some(reason) => Outcome::Skipped(reason),
        None if ledger.entries().iter().any(fell_back) => Outcome::Fallback,
        None => Outcome::Native,
    }
}

/// Returns a number from an environment variable, or `default` if the variable is not set to a
/// number.
fn from_env<N: FromStr>(variable: &str, default: N) -> N {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}
