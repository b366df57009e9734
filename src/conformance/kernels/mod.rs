//! Checks of kernels, family by family.

mod axis_cases;
mod blas;
mod harness;
mod class_losses;
mod elementwise;
mod indexing;
mod convert_integers;
mod losses;
mod lstm;
mod matrices;
mod normalize;
mod pair_losses;
mod pooling;
mod random;
mod reductions;
mod update;
mod vector_cases;
mod conv;

use super::check::Check;
use crate::device::Device;

/// Of all families, in their order.
pub(super) fn checks<D: Device>() -> Vec<Check<D>> {
    let families = [
        blas::checks(),
        elementwise::checks(),
        convert_integers::checks(),
        lstm::checks(),
        reductions::checks(),
        random::checks(),
        conv::checks(),
        pooling::checks(),
        normalize::checks(),
        losses::checks(),
        class_losses::checks(),
        pair_losses::checks(),
        indexing::checks(),
        update::checks(),
    ];
    families.into_iter().flatten().collect()
}
