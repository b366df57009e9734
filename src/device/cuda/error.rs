//! Errors of the CUDA driver, with the kernel launches that may have caused the errors.

use super::driver::{describe, raw_code};
use crate::error::{Error, Result};
use cust::{error::CudaError, sys::CUresult};
use std::{fmt, panic::Location};

/// An error that the driver returned.
///
/// ```no_run
/// use cortado::{Error, Memory, device::{CudaDevice, cuda::CudaFailure}};
///
/// let gpu = CudaDevice::new(0)?;
/// if let Err(Error::Device { source, .. }) = gpu.synchronize()
///     && let Some(failure) = source.downcast_ref::<CudaFailure>()
/// {
///     eprintln!("{} returned error {}", failure.call, failure.code);
/// }
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct CudaFailure {
    /// Driver function that returned the error.
    pub call: &'static str,
    /// The driver's error code.
    pub code: u32,
    name: String,
    text: String,
    /// Kernel launches that may have caused the error, oldest first; empty if the call itself
    /// caused the error.
    pub launches: Vec<PendingLaunch>,
}

/// A kernel launch whose queue has not been synchronized since the launch.
///
/// ```
/// use cortado::device::cuda::CudaFailure;
///
/// /// Returns the kernels that may have caused a failure.
/// fn suspects(failure: &CudaFailure) -> Vec<&'static str> {
///     failure.launches.iter().map(|launch| launch.kernel).collect()
/// }
/// ```
#[derive(Clone, Debug)]
pub struct PendingLaunch {
    /// Symbol of the kernel.
    pub kernel: &'static str,
    /// Call site of the kernel launch.
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

    /// Returns whether an earlier kernel launch may have caused the error.
    fn may_come_from_queued_work(&self) -> bool {
        self.is_permanent() || self.code == 999
    }

    /// Returns whether all later calls of the driver on this GPU fail, until the process ends.
    pub(super) fn is_permanent(&self) -> bool {
        matches!(self.code, 214 | 220 | 226 | 700 | 702 | 710 | 714..=719)
    }

    /// Adds the pending kernel launches to the error, if one of these launches may have caused it.
    pub(super) fn with_launches(mut self, launches: impl FnOnce() -> Vec<PendingLaunch>) -> Self {
        if self.may_come_from_queued_work() {
            self.launches = launches();
        }
        self
    }

    pub(super) fn is_out_of_memory(&self) -> bool {
        self.code == CUresult::CUDA_ERROR_OUT_OF_MEMORY as u32
    }

    /// Converts this failure to an error of the device called `name`.
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
            [one] => write!(f, "; the cause is in {one}")?,
            [.., last] => {
                write!(
                    f,
                    "; the cause is in one of {} kernel launches; the last is {last}",
                    launches.len()
                )?;
                for launch in launches.iter().rev().skip(1) {
                    write!(f, ", preceded by {launch}")?;
                }
                write!(f, " (set CORTADO_CUDA_SYNC=1 to find the failing launch)")?;
            }
        }
        if self.is_permanent() {
            write!(f, "; the GPU is unusable until the process ends; restart the program")?;
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

/// Converts the result code of the driver function `call` to a `Result`.
pub(super) fn check_driver(call: &'static str, result: CUresult) -> Result<(), CudaFailure> {
    match result {
        CUresult::CUDA_SUCCESS => Ok(()),
        code => Err(CudaFailure::new(call, code as u32)),
    }
}

/// Returns a function that converts an error of `cust` to a [`CudaFailure`] of the driver function
/// `call`.
pub(super) fn from_cust(call: &'static str) -> impl FnOnce(CudaError) -> CudaFailure {
    move |error| CudaFailure::new(call, error as u32)
}
