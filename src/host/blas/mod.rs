//! BLAS.

pub(crate) mod gemm;
pub(crate) mod gemv;
pub(crate) mod gemv_transposed;
pub(crate) mod kernel;
pub(crate) mod level1;
#[cfg(target_arch = "x86_64")]
pub(crate) mod x86;
