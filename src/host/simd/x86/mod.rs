//! x86-64 intrinsics for vector types and for 16-bit conversion.

pub(crate) mod half;
mod vector;
