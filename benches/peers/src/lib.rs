//! Benchmark cases that cortado and other libraries run with the same operands in one process.
//!
//! The benchmark prints a message for each missing library. The following environment variables
//! give the paths of the BLAS libraries:
//!
//! - `CORTADO_PEER_OPENBLAS`: a library that exports `cblas_sgemm` or, as the library in the Python
//!   package `scipy-openblas32` does, `scipy_cblas_sgemm`.
//! - `CORTADO_PEER_MKL`: the library `libmkl_rt.so`, in the same folder as the other MKL libraries.
//!   To run MKL on more than one thread, set the environment variable `MKL_THREADING_LAYER=GNU`.
//!
//! The crates `gemm` and `matrixmultiply` are dependencies of this package. If no other library
//! implements a kernel, the benchmark compares cortado's kernel with `copy` on the same number of
//! bytes.

mod case;
mod elementwise;
mod images;
mod library;
mod matrices;
mod operand;
mod vectors;

pub use case::{Case, Run, Work};
pub use library::{Library, Peers};

/// Returns all benchmark cases.
pub fn cases() -> Vec<Case> {
    let mut list = Vec::new();
    matrices::add(&mut list);
    vectors::add(&mut list);
    elementwise::add(&mut list);
    images::add(&mut list);
    list
}
