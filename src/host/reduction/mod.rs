//! Reductions.

pub(crate) mod channel_sums;
pub(crate) mod dot_to_axis;
pub(crate) mod moments;
pub(crate) mod reduce;
pub(crate) mod top_k;
pub(crate) mod tree;
#[cfg(target_arch = "x86_64")]
pub(crate) mod x86;
