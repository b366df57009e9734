//! What went wrong, and how to see it again.

use crate::{
    element::DType,
    error::{Error, Result},
};
use std::fmt;

/// What one case of a check found: nothing, or a flaw.
pub(super) type Verdict<T = ()> = Result<T, CaseFailure>;

/// What is wrong with a case, in words.
#[derive(Debug)]
pub(super) struct CaseFailure(pub(super) String);

impl CaseFailure {
    /// Adds the case in which the flaw showed.
    pub(super) fn in_case(self, kind: &str, case: &dyn fmt::Debug) -> Self {
        Self(format!("{}\n  {kind}: {case:?}", self.0))
    }
}

impl From<Error> for CaseFailure {
    fn from(error: Error) -> Self {
        Self(format!("failed: {error}"))
    }
}

/// A flaw with what `format!` makes of the arguments.
macro_rules! flaw {
    ($($arg:tt)*) => { $crate::conformance::failure::CaseFailure(format!($($arg)*)) };
}
pub(super) use flaw;

/// A check that a device did not pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The check's name, as in [`NAMES`](super::NAMES).
    pub check: &'static str,
    /// The element type, if the check is about one.
    pub element: Option<DType>,
    /// What differed from what, and in which case; of random cases the smallest that fails.
    pub message: String,
    /// [`Memory::name`](crate::Memory::name) of the device.
    pub device: String,
    /// The seed of the cases.
    pub seed: u64,
    /// The number of random cases drawn at most.
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
            "{message}\n  to repeat: CORTADO_SEED={seed} CORTADO_CASES={cases} and this test, \
             or Kit::new().seed({seed}).cases({cases}).check(&device, \"{check}\")"
        )
    }
}

impl std::error::Error for Failure {}
