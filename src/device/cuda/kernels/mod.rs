//! How each kernel of the families is launched.

mod blas;
mod convolution;
mod elementwise;
mod reduce_launch;
mod gemm;
mod gemv;
mod indexing;
mod losses;
mod lstm;
mod normalize;
mod pooling;
mod random;
mod reductions;
mod split_reduction;
mod update;
mod window_axis;
mod im2col;
