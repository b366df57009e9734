//! Which kernels of the families are the GPU's own, and how each is launched.

#![deny(unsafe_code)]

mod blas;
mod convolution;
mod elementwise;
mod fold;
mod gemm;
mod gemv;
mod reductions;
mod split;
mod windows;

use super::CudaDevice;

crate::families!(
    CudaDevice: Random, Pooling, Normalize, Losses, Indexing, Update
);
