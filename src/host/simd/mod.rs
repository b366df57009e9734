//! SIMD: instruction sets, vector types, fused multiply-add and 16-bit conversion.
//!
//! From the bottom up:
//!
//! - [`fma`] computes `a·b + c` with the FMA instruction, or emulates it.
//! - [`level`] detects the processor once. [`vectorized`] compiles a closure for every level and
//!   runs the highest: most kernels are plain loops in such a closure, which the compiler vectorises.
//! - [`accumulator`] converts slices of 16-bit elements to `f32` and back; `x86::half` replaces its
//!   loops on AVX-512.
//! - [`vector`] defines the vector trait, and implements it portably by an array; `x86::vector`
//!   implements it by AVX-512 and AVX2 registers.
//! - [`dispatch`] runs kernels that are generic over the vector trait: GEMM, packing and col2im.
//!
//! Results are bit-identical at all levels, except those of matrix products by kernels that use the
//! vector trait: their order of additions and use of FMA depend on the vector type.

pub(crate) mod accumulator;
pub(crate) mod dispatch;
pub(crate) mod fma;
pub(crate) mod level;
pub(crate) mod vector;
#[cfg(target_arch = "x86_64")]
pub(crate) mod x86;

#[cfg(target_arch = "x86_64")]
pub(crate) use level::has_avx512;
pub use level::simd_instruction_set;
pub(crate) use level::{vectorized, vectorized_fma};
