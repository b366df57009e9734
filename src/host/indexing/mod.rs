//! Kernels that move elements: strided copies, permutation of axes, gather, scatter and tiling.
//!
//! - [`permute`] merges axes, then copies runs or transposes blocks through a buffer.
//! - [`gather_scatter`] copies blocks and rows, by index or repeatedly, and sums in reverse. Long
//!   rows are copied by `blas::level1::copy`, past the caches if they exceed them.
//!
//! All loops are portable; the folder has no x86 code.

pub(crate) mod gather_scatter;
pub(crate) mod permute;
