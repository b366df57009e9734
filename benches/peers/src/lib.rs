//! Benchmark cases that cortado and other libraries run with the same operands, in one process.
//!
//! Environment variables name the libraries. If a library is missing, a message says so:
//!
//! - `CORTADO_PEER_OPENBLAS`: a library with `cblas_sgemm` or, like the Python package
//!   `scipy-openblas32`, `scipy_cblas_sgemm`.
//! - `CORTADO_PEER_MKL`: the library `libmkl_rt.so`, in the same folder as the libraries that it
//!   loads. Set `MKL_THREADING_LAYER=GNU` for more than one thread.
//!
//! The package contains the crates `gemm` and `matrixmultiply`. If no library has a kernel, its
//! peer is `copy`, which copies the same number of bytes as the kernel reads and writes.

mod cases;
mod elementwise;
mod images;
mod library;
mod matrices;
mod operand;
mod vectors;

pub use cases::{Case, Run, Work, cases};
pub use library::{Library, Peers};
