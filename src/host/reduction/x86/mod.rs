//! Fast code paths of `reduction` for x86-64.

pub(crate) mod row_sums;
