//! x86-64 code paths that replace portable BLAS loops at run time.
//!
//! - [`level1`] replaces the level 1 loops for `f32` if the processor has AVX-512 or AVX2. Results
//!   are bit-identical to the results of the portable loops. `row` defines the registers of both
//!   SIMD levels, with their loads and stores.
//! - [`bf16_unit`] computes large GEMMs of 16-bit elements without widening, if the processor has
//!   an instruction that multiplies `bf16`: [`amx`] or [`vdpbf16ps`]. [`bf16_pack`] packs operands
//!   into tiles, whose shapes [`bf16_tile`] defines. Both units treat subnormal `bf16` as zero. AMX
//!   adds the products in a different order from the portable GEMM.

mod row;
pub(crate) mod level1;
pub(crate) mod bf16_tile;
pub(crate) mod bf16_pack;
#[cfg(target_os = "linux")]
pub(crate) mod amx;
pub(crate) mod vdpbf16ps;
pub(crate) mod bf16_unit;
