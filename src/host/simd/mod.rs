//! SIMD support for kernels: instruction sets, vector types, fused multiply-add and conversion of
//! 16-bit elements.
//!
//! - [`fma`] computes `a·b + c` with the FMA instruction, or emulates the instruction.
//! - `fma_rate` (feature `report`) measures the peak rate of multiply-adds.
//! - [`limit`] is the limit that a user sets on instruction sets.
//! - [`level`] detects the processor's SIMD level once. [`vectorized`] compiles a closure for every
//!   SIMD level, and runs the version for the highest level that the processor supports. Most
//!   kernels are plain loops in closures that are passed to [`vectorized`].
//! - [`accumulator`] converts slices of 16-bit elements to `f32` and back. On AVX-512, `x86::half`
//!   replaces the loops of `accumulator`.
//! - [`vector`] defines the SIMD vector trait, and implements this trait portably for an array.
//!   `x86::vector` implements the SIMD vector trait for AVX-512 and AVX2 registers, and
//!   `aarch64::vector` for NEON registers.
//! - [`lanes`] transposes planes to vectors with one element of each of sixteen planes, and back.
//! - [`dispatch`] runs the kernels that are generic over the SIMD vector trait, which are GEMM,
//!   packing, col2im and the functions of [`lanes`].
//!
//! Results are bit-identical at all SIMD levels, except for matrix products at the level
//! `WithoutFma`. Kernels run at `WithoutFma` if the processor lacks FMA and the user does not limit
//! cortado to portable code.

#[cfg(target_arch = "aarch64")]
mod aarch64;
pub(crate) mod accumulator;
pub(crate) mod dispatch;
pub(crate) mod fma;
#[cfg(feature = "report")]
pub(crate) mod fma_rate;
pub(crate) mod lanes;
pub(crate) mod level;
pub(crate) mod limit;
pub(crate) mod vector;
#[cfg(target_arch = "x86_64")]
pub(crate) mod x86;

#[cfg(target_arch = "x86_64")]
pub(crate) use level::has_avx512;
pub use level::simd_instruction_set;
pub(crate) use level::{vectorized, vectorized_memory_bound};
pub use limit::limit_simd;
