//! x86-64 fast paths of `reduction`.

pub(crate) mod row_sums;
