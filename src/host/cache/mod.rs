//! Memory below the kernels: cache lines, prefetch, streaming stores, pages and scratch buffers.
//!
//! From the bottom up:
//!
//! - `x86` wraps the prefetch, streaming-store and fence instructions of x86-64. On other targets
//!   its callers do nothing, or store the usual way.
//! - [`cache_line`] splits loops so that their vectors start at cache lines, and prefetches.
//! - [`huge_pages`] asks Linux for 2 MiB pages behind large allocations (called by `memory`).
//! - [`scratch`] lends a thread the buffers it used before (called by GEMM, convolution and others).
//! - [`nontemporal`] writes large results past the caches; it combines all but `huge_pages`.
//!
//! Nothing here depends on other folders of `host`. `copy_nontemporal` and `map_nontemporal` are
//! tested against ordinary copies.

pub(crate) mod cache_line;
pub(crate) mod huge_pages;
pub(crate) mod nontemporal;
pub(crate) mod scratch;
#[cfg(target_arch = "x86_64")]
pub(crate) mod x86;
