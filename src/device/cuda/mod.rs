//! NVIDIA GPUs through the CUDA driver (feature `cuda`).
//!
//! Decisions:
//! - The driver library is opened with the first device, so a program with this feature starts on
//!   any machine.
//! - A device is a context and a queue. Memory is allocated and freed in queue order, and no call
//!   waits for it. Another queue does not reuse memory that queued work still uses.
//! - The build compiles `kernels/*.cu` to PTX. The driver compiles a file's PTX for the GPU when
//!   one of its kernels is first launched.
//! - GEMM uses the crate's own kernels, or cuBLAS on request
//!   (`docs/decisions/0021-cublas-on-request.md`).
//! - `docs/decisions/0020-cuda-driver-at-run-time.md` explains the tests without a GPU; `docs/gpu`
//!   lists the code that has never run on a GPU.

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
