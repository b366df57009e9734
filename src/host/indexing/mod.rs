//! Kernels that move elements: strided copies, permutation of axes, gather, scatter and tiling.
//!
//! - [`permute`] merges axes, then copies runs or transposes blocks through a buffer.
//! - [`gather_scatter`] copies or repeats blocks and rows, and adds rows up in the backward pass.
//!   `blas::level1::copy` copies long rows, with non-temporal stores if they exceed the caches.
//!
//! All loops of this folder are portable.

pub(crate) mod gather_scatter;
pub(crate) mod permute;
