//! Oracles: the expected results of kernels, computed by plain loops in `f64` that follow the
//! formulas in [`op`](crate::op).

mod axis;
pub(super) mod indexing;
pub(super) mod losses;
pub(super) mod lstm;
pub(super) mod elementwise;
pub(super) mod normalize;
pub(super) mod pooling;
pub(super) mod gemm;
pub(super) mod random;
pub(super) mod reductions;
pub(super) mod update;
pub(super) mod conv;
