//! Running the checks.

use super::{
    CheckResult, Failure, Outcome, Report,
    check::{Check, DTYPES},
    checks,
};
use crate::{
    device::Device,
    element::DType,
    memory::ledger::{Entry, EventKind, Ledger},
};
use std::str::FromStr;

/// Random cases of each check on each element type.
const CASES: u32 = 24;

/// How the checks are run: the same kit gives the same cases, on any device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kit {
    pub(super) seed: u64,
    pub(super) cases: u32,
}

impl Default for Kit {
    fn default() -> Self {
        Self::new()
    }
}

impl Kit {
    /// A fixed seed and a number of cases that takes seconds, unless the environment's
    /// `CORTADO_SEED` and `CORTADO_CASES` give others.
    pub fn new() -> Self {
        Self { seed: number("CORTADO_SEED", 1), cases: number("CORTADO_CASES", CASES) }
    }

    /// Draws other cases.
    #[must_use]
    pub fn seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// Draws more or fewer random cases for each check and element type; the fixed ones stay.
    #[must_use]
    pub fn cases(self, cases: u32) -> Self {
        Self { cases, ..self }
    }

    /// Runs every check; goes on past failures.
    pub fn run<D: Device>(&self, device: &D) -> Report {
        let checks = checks::<D>();
        let findings = checks.iter().flat_map(|check| self.findings(check, device));
        Report { device: device.name(), findings: findings.collect() }
    }

    /// Runs one check on all element types.
    ///
    /// # Errors
    /// The first failure; one that says so if there is no check of this name.
    pub fn check<D: Device>(&self, device: &D, name: &str) -> Result<(), Failure> {
        let checks = checks::<D>();
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
        check.elements.iter().try_for_each(|&element| check.run(self, device, element))
    }

    /// Runs checks up to the first that fails: each on one element type before any on the next.
    pub fn first_failure<D: Device>(&self, device: &D) -> Option<Failure> {
        let checks = checks::<D>();
        let rounds = [None].into_iter().chain(DTYPES.map(Some));
        let mut cells = rounds.flat_map(|element| checks.iter().map(move |check| (check, element)));
        cells.find_map(|(check, element)| {
            let applies = check.elements.contains(&element);
            applies.then(|| check.run(self, device, element).err()).flatten()
        })
    }

    fn findings<D: Device>(&self, check: &Check<D>, device: &D) -> Vec<CheckResult> {
        let finding = |&element| CheckResult {
            check: check.name,
            kernel: check.kernel,
            element,
            outcome: self.outcome(check, device, element),
        };
        check.elements.iter().map(finding).collect()
    }

    fn outcome<D: Device>(&self, check: &Check<D>, device: &D, element: Option<DType>) -> Outcome {
        let ledger = Ledger::new();
        let open = ledger.open();
        let result = check.run(self, device, element);
        drop(open);
        let fell_back =
            |entry: &Entry| entry.kind == EventKind::Fallback && entry.kernel == check.kernel;
        match result {
            Err(failure) => Outcome::Failed(failure),
            Ok(()) if ledger.entries().iter().any(fell_back) => Outcome::Fallback,
            Ok(()) => Outcome::Native,
        }
    }
}

/// A number from the environment.
fn number<N: FromStr>(variable: &str, default: N) -> N {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}
