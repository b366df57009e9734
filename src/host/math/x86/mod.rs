//! x86-64 code that replaces portable loops of `math`.

pub(crate) mod sqrt_div;
