//! BLAS on the host: level 1, GEMV and GEMM on slices.
//!
//! The modules of `blas`, in an order in which each module imports only from modules above it:
//!
//! | module | contents |
//! |---|---|
//! | [`kernel`] | GEMM on one thread: packing, micro-kernel, macro-kernel, unpacked GEMM |
//! | [`x86`] | AVX-512 and AVX2 loops of BLAS level 1, and GEMM of 16-bit elements by AMX or `vdpbf16ps` |
//! | [`level1`] | `copy`, `scal`, `axpy`, `axpby` |
//! | [`sums`] | `dot`, `asum`, `sumsq`, `amax` |
//! | [`gemv_transposed`], [`gemv`] | matrix-vector products |
//! | [`gemm`] | choice of a GEMM kernel, and division of `C` among threads |
//!
//! Each BLAS operation has a portable implementation, which a fast path replaces if the processor
//! supports the fast path:
//!
//! | operation | portable implementation | fast path, if available | difference of results |
//! |---|---|---|---|
//! | level 1, `f32` | `level1::update_slice`, `sums::accumulate` | AVX-512 or AVX2 loops | none |
//! | 16-bit GEMV | loops of `gemv` | `gemv` loops compiled for AVX2 or AVX-512 | none |
//! | transposed GEMV of matrices that exceed L1 | loops of `gemv_transposed` | `gemv_transposed` with AVX-512, AVX2 or NEON vectors | none |
//! | other GEMV, GEMM | loops of `kernel::portable` | `kernel` with AVX-512, AVX2 or NEON vectors | none |
//! | packed GEMM on a processor without FMA | loops of `kernel::portable` | crate `matrixmultiply` | rounding |
//! | 16-bit GEMM | GEMM of widened operands in `f32` | AMX GEMM, for large shapes | rounding; subnormals are zero |
//! | `bf16` GEMM | GEMM of widened operands in `f32` | `vdpbf16ps` on AMD processors, for large shapes | subnormals are zero |
//!
//! On one machine, BLAS results are bit-identical for any number of threads and any alignment.

pub(crate) mod kernel;
#[cfg(target_arch = "x86_64")]
pub(crate) mod x86;
pub(crate) mod level1;
pub(crate) mod sums;
pub(crate) mod gemv_transposed;
pub(crate) mod gemv;
pub(crate) mod gemm;
