//! Replacement for the crate `find_cuda_helper`, for programs without the CUDA toolkit.
//!
//! The build scripts of `cust` and `cust_raw` call `include_cuda`. The original function stops the
//! build if it finds no CUDA toolkit, and otherwise links the program to `libcuda`. cortado defines
//! the driver functions that `cust` calls, and loads `libcuda` when a program opens a GPU, so a
//! program with cortado needs neither the toolkit nor the linker option.

/// Does nothing; the original function looks for the CUDA toolkit.
pub fn include_cuda() {}
