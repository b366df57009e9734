//! The list of all checks.

#[cfg(feature = "net")]
use super::nets;
use super::{check::Check, kernels, memory};
use crate::device::Device;

/// Returns all checks, in the order of [`NAMES`](super::NAMES).
pub(super) fn all_checks<D: Device>() -> Vec<Check<D>> {
    let mut checks = memory::checks();
    checks.extend(kernels::checks());
    #[cfg(feature = "net")]
    checks.extend(nets::checks());
    checks
}
