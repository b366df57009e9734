//! Failures of conformance checks: the failure message of one case, and the report of a whole
//! check.

use crate::{
    element::DType,
    error::{Error, Result},
};
use std::fmt;

/// Result of one case of a check, with the failure message as the error.
pub(super) type Verdict<T = ()> = Result<T, CaseFailure>;

/// Message that explains why a case failed.
#[derive(Debug)]
pub(super) struct CaseFailure(pub(super) String);

impl CaseFailure {
    /// Appends a description of the failed case to the message.
    pub(super) fn in_case(self, kind: &str, case: &dyn fmt::Debug) -> Self {
        Self(format!("{}\n  {kind}: {case:?}", self.0))
    }
}

impl From<Error> for CaseFailure {
    fn from(error: Error) -> Self {
        Self(format!("returned an error: {error}"))
    }
}

/// Creates a [`CaseFailure`] from the arguments of `format!`.
macro_rules! flaw {
    ($($arg:tt)*) => { $crate::conformance::failure::CaseFailure(format!($($arg)*)) };
}
pub(super) use flaw;

/// Fails if a call with `invalid` operands succeeded instead of returning an error.
pub(super) fn expect_refused<R>(result: Result<R>, invalid: &str) -> Verdict {
    match result {
        Err(_) => Ok(()),
        Ok(_) => Err(flaw!("accepted {invalid}; expected an error")),
    }
}

/// Report of a check that a device did not pass.
///
/// ```
/// use cortado::{CpuDevice, conformance::{Failure, Kit}};
///
/// let kit = Kit::new().seed(3).cases(9);
/// let failure: Failure = kit.check(&CpuDevice::new(), "axpi").unwrap_err();
/// assert_eq!((failure.seed, failure.cases), (3, 9));
/// assert!(failure.to_string().contains("CORTADO_SEED=3 CORTADO_CASES=9")); // repeats the check
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Name of the check, as in [`NAMES`](super::NAMES).
    pub check: &'static str,
    /// Element type that was checked, or `None` for a check that does not depend on an element
    /// type.
    pub element: Option<DType>,
    /// Message that states the difference from the expected result and describes the failed case.
    /// The conformance kit shrinks a failed random case before reporting the case.
    pub message: String,
    /// Name of the device, as [`Memory::name`](crate::Memory::name) returns it.
    pub device: String,
    /// Seed from which the random cases of the check were drawn.
    pub seed: u64,
    /// Number of random cases of the check.
    pub cases: u32,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { check, message, device, seed, cases, .. } = self;
        match self.element {
            Some(element) => write!(f, "{check} of {} on `{device}`: ", element.name())?,
            None => write!(f, "{check} on `{device}`: ")?,
        }
        write!(
            f,
            "{message}\n  to repeat: run this test with CORTADO_SEED={seed} CORTADO_CASES={cases}, \
             or call Kit::new().seed({seed}).cases({cases}).check(&device, \"{check}\")"
        )
    }
}

impl std::error::Error for Failure {}
