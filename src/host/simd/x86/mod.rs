//! x86-64 intrinsics behind the portable files of `simd`.

pub(crate) mod half;
mod vector;
