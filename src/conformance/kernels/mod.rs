//! Checks of kernels, family by family.

mod axes;
mod blas;
mod elementwise;
mod matrices;
mod random;
mod reductions;
mod vectors;

use super::check::Check;
use crate::device::Device;

/// Of all families, in their order.
pub(super) fn checks<D: Device>() -> Vec<Check<D>> {
    let families = [blas::checks(), elementwise::checks(), reductions::checks(), random::checks()];
    families.into_iter().flatten().collect()
}
