//! SIMD vector types, conversion of 16-bit elements, and non-temporal stores of vectors with x86-64
//! intrinsics.

pub(crate) mod half;
pub(crate) mod nontemporal;
mod vector;
