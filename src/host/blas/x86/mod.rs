//! x86-64 code paths that replace portable BLAS loops at run time.
//!
//! - [`level1`] replaces the level 1 loops for `f32` if the processor has AVX-512 or AVX2. Results
//!   are bit-identical to the results of the portable loops. `row` defines the registers of both
//!   SIMD levels, with their loads and stores.
//! - [`amx`] computes large GEMMs of 16-bit elements without widening, if the processor has AMX and
//!   Linux permits its use. [`amx_pack`] packs operands into tiles, whose shapes [`amx_tile`]
//!   defines. AMX adds the products in a different order from the portable GEMM, and treats
//!   subnormal `bf16` as zero.

mod row;
pub(crate) mod level1;
#[cfg(target_os = "linux")]
pub(crate) mod amx_tile;
#[cfg(target_os = "linux")]
pub(crate) mod amx_pack;
#[cfg(target_os = "linux")]
pub(crate) mod amx;
