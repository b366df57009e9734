//! What the driver reports, with what it leaves out.

use super::driver::{describe, raw_code};
use crate::error::{Error, Result};
use cust::{error::CudaError, sys::CUresult};
use std::{fmt, panic::Location};

/// A failure that the driver reported.
#[derive(Debug)]
pub struct CudaFailure {
    /// The driver's function that reported it.
    pub call: &'static str,
    /// The driver's code, unabridged.
    pub code: u32,
    name: String,
    text: String,
    /// Work that may have caused it, if it is not the call's own fault: the oldest first.
    pub launches: Vec<PendingLaunch>,
}

/// A launch that was queued and not waited for yet.
#[derive(Clone, Debug)]
pub struct PendingLaunch {
    /// The kernel's symbol.
    pub kernel: &'static str,
    /// What called the kernel.
    pub site: &'static Location<'static>,
}

impl CudaFailure {
    fn new(call: &'static str, code: u32) -> Self {
        let code = match (code, raw_code()) {
            (999, raw @ 1..) => raw,
            _ => code,
        };
        let (name, text) = describe(code);
        Self { call, code, name, text, launches: Vec::new() }
    }

    /// Whether a kernel that ran earlier may be the cause.
    fn is_of_queued_work(&self) -> bool {
        matches!(self.code, 214 | 220 | 226 | 700 | 702 | 710 | 714..=719 | 999)
    }

    /// Adds what was queued, if that may be the cause.
    pub(super) fn after(mut self, launches: impl FnOnce() -> Vec<PendingLaunch>) -> Self {
        if self.is_of_queued_work() {
            self.launches = launches();
        }
        self
    }

    pub(super) fn is_out_of_memory(&self) -> bool {
        self.code == CUresult::CUDA_ERROR_OUT_OF_MEMORY as u32
    }

    /// As an error of the device called `name`.
    pub(super) fn on(self, name: &str) -> Error {
        Error::device(name, self)
    }
}

impl fmt::Display for CudaFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { call, code, name, text, launches } = self;
        write!(f, "{call}: {name} ({code}): {text}")?;
        match &launches[..] {
            [] => {}
            [one] => write!(f, "; in {one}")?,
            [.., last] => {
                write!(f, "; in one of {} launches, the last of them {last}", launches.len())?;
                for launch in launches.iter().rev().skip(1) {
                    write!(f, ", before it {launch}")?;
                }
                write!(f, " (CORTADO_CUDA_SYNC=1 tells which)")?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for PendingLaunch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} called at {}", self.kernel, self.site)
    }
}

impl std::error::Error for CudaFailure {}

/// What the driver's function `call` said.
pub(super) fn check_driver(call: &'static str, result: CUresult) -> Result<(), CudaFailure> {
    match result {
        CUresult::CUDA_SUCCESS => Ok(()),
        code => Err(CudaFailure::new(call, code as u32)),
    }
}

/// What `cust` said of the driver's function `call`.
pub(super) fn from_cust(call: &'static str) -> impl FnOnce(CudaError) -> CudaFailure {
    move |error| CudaFailure::new(call, error as u32)
}
