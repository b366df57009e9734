//! x86-64 intrinsics used by the portable files of `simd`.

pub(crate) mod half;
mod vector;
