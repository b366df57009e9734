//! The kernel families: operands checked and queued at the call, the host's kernels at the wait.

mod blas;
mod elementwise;
mod index;
mod loss;
mod normalize;
mod pooling;
mod random;
mod reduce;
mod update;
mod windows;
