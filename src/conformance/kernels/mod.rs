//! Conformance checks of kernels, by kernel family.

mod cases;
mod harness;
mod large;
mod refusals;
mod prelude;
mod copied_bits;
mod blas;
mod matrices;
mod elementwise;
mod lstm;
mod reductions;
mod random;
mod conv;
mod pooling;
mod normalize;
mod losses;
mod pair_losses;
mod indexing;
mod update;

use super::check::Check;

/// Returns the checks of all kernels, ordered by kernel family.
pub(super) fn checks() -> Vec<Check> {
    let families = [
        blas::checks(),
        matrices::checks(),
        elementwise::checks(),
        lstm::checks(),
        reductions::checks(),
        random::checks(),
        conv::checks(),
        pooling::checks(),
        normalize::checks(),
        losses::checks(),
        pair_losses::checks(),
        indexing::checks(),
        update::checks(),
    ];
    families.into_iter().flatten().collect()
}
