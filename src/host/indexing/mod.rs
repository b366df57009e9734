//! Indexing.

pub(crate) mod gather_scatter;
pub(crate) mod permute;
