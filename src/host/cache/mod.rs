//! Memory helpers for kernels: cache lines, prefetch, non-temporal stores, pages, scratch buffers.
//!
//! - `x86` wraps the prefetch, non-temporal store and fence instructions of x86-64. On other
//!   targets, its callers do not prefetch and use ordinary stores.
//! - [`cache_line`] splits loops so that their vectors start at cache lines, and prefetches.
//! - [`huge_pages`] asks Linux for 2 MiB pages for large allocations of `memory`.
//! - [`scratch`] lets a thread reuse its earlier buffers, for GEMM, convolution and other kernels.
//! - [`nontemporal`] writes large results past the caches.
//!
//! This folder does not depend on other folders of `host`.

pub(crate) mod cache_line;
pub(crate) mod huge_pages;
pub(crate) mod nontemporal;
pub(crate) mod scratch;
#[cfg(target_arch = "x86_64")]
pub(crate) mod x86;
