//! Memory helpers for kernels: cache lines, prefetch, streaming stores, pages, scratch buffers.
//!
//! From the bottom up:
//!
//! - `x86` wraps the prefetch, streaming-store and fence instructions of x86-64. On other targets
//!   its callers do nothing, or use ordinary stores.
//! - [`cache_line`] splits loops so that their vectors start at cache lines, and prefetches.
//! - [`huge_pages`] asks Linux for 2 MiB pages for large allocations (called by `memory`).
//! - [`scratch`] lets a thread reuse its earlier buffers (called by GEMM, convolution and others).
//! - [`nontemporal`] writes large results past the caches. This file uses all others but
//!   `huge_pages`.
//!
//! Nothing here depends on other folders of `host`. `copy_nontemporal` and `map_nontemporal` are
//! tested against ordinary copies.

pub(crate) mod cache_line;
pub(crate) mod huge_pages;
pub(crate) mod nontemporal;
pub(crate) mod scratch;
#[cfg(target_arch = "x86_64")]
pub(crate) mod x86;
