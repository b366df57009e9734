//! Fast code paths of `math` for x86-64.

pub(crate) mod sqrt_div;
