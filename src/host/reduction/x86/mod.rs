//! x86-64 code that replaces portable loops of `reduction`.

pub(crate) mod row_sums;
