//! Runs one conformance check on fixed and on random cases.

use super::{
    failure::{CaseFailure, Verdict},
    watchdog::Progress,
};
use crate::device::AnyDevice;
use proptest::{
    strategy::Strategy,
    test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner},
};
use std::{
    cell::{Cell, RefCell},
    fmt::Debug,
};

/// Largest number of attempts to shrink a random case that fails.
const MAX_SHRINKS: u32 = 256;

/// Interval, in kernel calls, at which a check repeats a call to compare the two results. The check
/// makes every fourth call twice, including the call for the fixed case with the longest vector.
const REPEAT_EVERY: u32 = 4;

/// Device under test, the seed and the number of random cases, and a count of kernel calls.
pub(super) struct CheckRunner<'d> {
    pub(super) device: &'d AnyDevice,
    /// Seed of the random cases of one check on one element type.
    pub(super) seed: u64,
    /// Number of random cases of one check on one element type.
    pub(super) cases: u32,
    /// Number of kernel calls that the check has made.
    pub(super) calls: Cell<u32>,
    /// Reason why the check, or a part of the check, was skipped.
    pub(super) skipped: RefCell<Option<String>>,
    /// Current step of the check, for the watchdog.
    pub(super) progress: &'d Progress,
}

impl CheckRunner<'_> {
    /// Starts a step of the check. If the device hangs, the check fails with the name of the step.
    pub(super) fn start_step(&self, name: impl Into<String>) {
        self.progress.start(name.into());
    }

    /// Marks the check, or a part of the check, as skipped.
    pub(super) fn skip(&self, reason: String) {
        self.skipped.replace(Some(reason));
    }

    /// Counts a kernel call, and returns how many times the check must make the call.
    pub(super) fn repetitions(&self) -> u32 {
        let call = self.calls.get();
        self.calls.set(call + 1);
        if call % REPEAT_EVERY == 1 { 2 } else { 1 }
    }

    /// Runs `test` on fixed cases, in order. Fixed cases cover corner cases that random cases might
    /// miss.
    pub(super) fn try_cases<C: Debug>(
        &self,
        cases: impl IntoIterator<Item = C>,
        test: impl Fn(&C) -> Verdict,
    ) -> Verdict {
        for case in cases {
            self.start_step(format!("case: {case:?}"));
            test(&case).map_err(|flaw| flaw.in_case("case", &case))?;
        }
        Ok(())
    }

    /// Runs `test` on random cases and shrinks the first case that fails. Equal seeds yield equal
    /// cases, and a run with fewer cases draws the first cases of a longer run.
    pub(super) fn try_random<S: Strategy>(
        &self,
        strategy: S,
        test: impl Fn(&S::Value) -> Verdict,
    ) -> Verdict {
        run(self, &strategy, &test)
    }
}

/// Implements [`CheckRunner::try_random`]; compiled once per type of case, not once per device.
fn run<S: Strategy>(
    runner: &CheckRunner<'_>,
    strategy: &S,
    test: &dyn Fn(&S::Value) -> Verdict,
) -> Verdict {
    let config = Config {
        cases: runner.cases,
        max_shrink_iters: MAX_SHRINKS,
        failure_persistence: None,
        ..Config::default()
    };
    let seed = [runner.seed.to_le_bytes(); 4].concat();
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
    let test = |case| {
        runner.start_step(format!("random case: {case:?}"));
        test(&case).map_err(|flaw| TestCaseError::fail(flaw.0))
    };
    TestRunner::new_with_rng(config, rng).run(strategy, test).map_err(|error| match error {
        TestError::Fail(reason, case) => {
            CaseFailure(reason.message().to_owned()).in_case("smallest case", &case)
        }
        TestError::Abort(reason) => CaseFailure(format!("no random cases: {reason}")),
    })
}
