//! Memory helpers for kernels: cache-line alignment, prefetch, non-temporal stores, huge pages and
//! scratch buffers.
//!
//! - `x86` wraps the prefetch, non-temporal store and fence instructions of x86-64. On targets
//!   other than x86-64, kernels do not prefetch, and use ordinary stores.
//! - [`cache_line`] splits loops so that vector accesses start at cache-line boundaries, and
//!   prefetches operands.
//! - [`residence`] decides from the sizes of the caches whether operands are prefetched in software,
//!   processed in vectors of 128 bits or in two places in turn, and stored past the caches.
//! - [`huge_pages`] asks Linux to back large allocations with huge pages of 2 MiB.
//! - [`scratch`] caches the scratch buffers of each thread for later kernels, such as GEMMs and
//!   convolutions.
//! - [`nontemporal`] writes large results with stores that bypass the caches.
//!
//! The folder `cache` does not depend on other folders of `host`.

pub(crate) mod cache_line;
pub(crate) mod huge_pages;
pub(crate) mod residence;
pub(crate) mod nontemporal;
pub(crate) mod scratch;
#[cfg(target_arch = "x86_64")]
pub(crate) mod x86;
