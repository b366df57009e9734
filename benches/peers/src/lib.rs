//! The same work done by cortado and by others, in one process.
//!
//! Peers are found through the environment; who is not found is left out, by name:
//!
//! - `CORTADO_PEER_OPENBLAS`: a library with `cblas_sgemm` or, as in the Python package
//!   `scipy-openblas32`, `scipy_cblas_sgemm`;
//! - `CORTADO_PEER_MKL`: `libmkl_rt.so`, with its companions beside it. Set
//!   `MKL_THREADING_LAYER=GNU` for more threads than one.
//!
//! The crates `gemm` and `matrixmultiply` are compiled in. Where nobody offers a kernel, `copy` is
//! the peer: moving as many bytes, which is what the memory allows.

mod cases;
mod library;
mod maps;
mod operand;
mod products;
mod vectors;
mod windows;

pub use cases::{Case, Run, Work, cases};
pub use library::{Library, Peers};
