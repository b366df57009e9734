//! Kernels that move elements: strided copies, permutation of axes, gather, scatter and tiling.
//!
//! - [`permute`] merges axes, then copies runs or transposes blocks through a buffer.
//! - [`gather_scatter`] copies blocks and rows, by index or repeatedly, and sums them in the
//!   reverse direction. Long rows are copied by `blas::level1::copy`, with non-temporal stores if
//!   they exceed the caches.
//!
//! All loops are portable; the folder has no x86 code.

pub(crate) mod gather_scatter;
pub(crate) mod permute;
