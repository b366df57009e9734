//! Checks of kernels, family by family.

mod blas;
mod vectors;

use super::check::Check;
use crate::device::Device;

/// Of all families, in their order.
pub(super) fn checks<D: Device>() -> Vec<Check<D>> {
    let families = [blas::checks()];
    families.into_iter().flatten().collect()
}
