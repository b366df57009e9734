//! The kernel families: operands checked and queued at the call, the host's kernels at the wait.

mod blas;
mod elementwise;
mod indexing;
mod losses;
mod normalize;
mod pooling;
mod random;
mod reductions;
mod update;
mod conv;
