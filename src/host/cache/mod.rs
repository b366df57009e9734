//! Caches and memory pages.

pub(crate) mod cache_line;
pub(crate) mod huge_pages;
pub(crate) mod nontemporal;
pub(crate) mod scratch;
