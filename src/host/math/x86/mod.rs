//! x86-64 fast paths of `math`.

pub(crate) mod sqrt_div;
