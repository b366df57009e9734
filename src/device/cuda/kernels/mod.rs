//! Which kernels of the families are the GPU's own, and how each is launched.

#![deny(unsafe_code)]

mod blas;
mod elementwise;

use super::CudaDevice;

crate::families!(
    CudaDevice: Reductions, Random, Windows, Pooling, Normalize, Losses, Indexing, Update
);
