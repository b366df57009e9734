//! NVIDIA GPUs, by CUDA's driver (the feature `cuda`).
//!
//! Decisions:
//! - The driver is opened when a device is: a program built with this feature starts anywhere.
//! - A device is a context and a queue. Memory is taken and given back in the order of queues, so
//!   that nothing waits for it, and what a queue still uses is not given to another.
//! - Kernels are compiled from `kernels/*.cu` to PTX when the crate is built, and by the driver
//!   for the GPU at hand when one of a file is first launched.
//! - Matrix products are the crate's own, or cuBLAS' where that is asked for
//!   (`docs/decisions/0021-cublas-on-request.md`).
//! - `docs/decisions/0020-cuda-driver-at-run-time.md` explains the tests without a GPU; `docs/gpu`
//!   lists what has never run on one.

mod buffer;
mod kernel_errors;
mod context;
mod cublas;
mod device;
mod driver;
mod error;
#[deny(unsafe_code)]
mod kernels;
mod launch;
mod memory;
mod module;
mod pinned_bytes;
mod pinned_pool;
mod memory_pool;
mod stream;

pub use super::GemmBackend;
pub use {
    buffer::CudaBuffer,
    device::{CudaBuilder, CudaDevice},
    error::{CudaFailure, PendingLaunch},
};
