//! Kernels that move elements: strided copies, permutation of axes, gather, scatter and tiling.
//!
//! - [`permute`] merges axes, and then copies contiguous elements, or transposes blocks through a
//!   buffer.
//! - [`gather_scatter`] copies or repeats blocks and rows, and sums the gradients of copied rows in
//!   the backward pass. Long rows are copied by `blas::level1::copy`, with non-temporal stores for
//!   rows that exceed the caches.
//!
//! All loops in the modules of `indexing` are portable.

pub(crate) mod gather_scatter;
pub(crate) mod permute;
