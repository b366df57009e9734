//! GEMM kernels.

pub(crate) mod dot_kernel;
pub(crate) mod indirect_packing;
pub(crate) mod macro_kernel;
pub(crate) mod micro_kernel;
pub(crate) mod packing;
pub(crate) mod unpacked;
