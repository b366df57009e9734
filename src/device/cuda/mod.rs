//! Device for NVIDIA GPUs, which calls the CUDA driver (feature `cuda`).
//!
//! Decisions:
//! - The crate loads the driver library when it opens the first CUDA device, so a program with the
//!   feature `cuda` also starts on machines without a driver.
//! - A CUDA device consists of a context and a queue. All devices on a GPU share one context, with
//!   one set of compiled kernels and one memory pool. The driver allocates and frees device memory
//!   in queue order, so the host does not wait. A queue never reuses memory that queued work of
//!   another queue still uses.
//! - The program contains the PTX of `kernels/*.cu`. The driver compiles the PTX of a source file
//!   for the GPU at the first launch of one of the file's kernels.
//! - By default, GEMM uses cuBLASLt on GPUs of compute capability 9.0 or later
//!   (`docs/decisions/0041-cublaslt-from-capability-9.md`) and the built-in kernels on other GPUs.
//!   On request, GEMM uses cuBLAS (`docs/decisions/0021-cublas-on-request.md`).
//! - On request, a queue launches several kernels as one CUDA graph
//!   (`docs/decisions/0039-graphs-of-deferred-launches.md`).
//! - `docs/decisions/0020-cuda-driver-at-run-time.md` explains how tests run without a GPU;
//!   `docs/gpu` lists the code that has never run on a GPU.

mod buffer;
mod kernel_errors;
mod context;
mod deferred;
mod device;
mod driver;
mod error;
mod gemm_library;
mod event;
#[deny(unsafe_code)]
mod kernels;
mod graph;
mod graph_cache;
mod kernel_launch;
mod launch;
mod launch_counts;
mod memory;
mod memory_budget;
mod module;
mod pinned_bytes;
mod pinned_pool;
mod memory_pool;
mod requirements;
mod spans;
mod stream;

pub use super::GemmBackend;
pub use {
    buffer::CudaBuffer,
    device::{CudaBuilder, CudaDevice},
    error::{CudaFailure, PendingLaunch},
    launch_counts::LaunchCounts,
};
