//! How each kernel of the families is launched.

#![deny(unsafe_code)]

mod blas;
mod convolution;
mod elementwise;
mod fold;
mod gemm;
mod gemv;
mod indexing;
mod losses;
mod lstm;
mod normalize;
mod pooling;
mod random;
mod reductions;
mod split;
mod update;
mod windows;
