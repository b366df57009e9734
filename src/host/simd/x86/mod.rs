//! SIMD vector types and conversion of 16-bit elements with x86-64 intrinsics.

pub(crate) mod half;
mod vector;
