//! Reductions: sums, extremes, moments and rankings along an axis.
//!
//! - [`tree`] reduces slices, rows and columns in a fixed order, with loops that the compiler
//!   vectorizes. With AVX-512, `x86::row_sums` replaces the loop over short rows of `f32` sums.
//! - [`channel_sums`] sums terms of two operands at each position of an axis, in `f64`.
//! - [`reduce`] (sum, mean, extremes, `arg_max`, `sum_to_axis`) calls `tree`, and [`dot_to_axis`]
//!   calls `channel_sums`. [`moments`] (mean and variance) and [`top_k`] call neither `tree` nor
//!   `channel_sums`.
//!
//! Softmax and pooling also call `tree`, and standardization calls `channel_sums`. The order of
//! additions depends on shapes only, so results are bit-identical for any number of threads and at
//! every SIMD level.

pub(crate) mod channel_sums;
pub(crate) mod dot_to_axis;
pub(crate) mod moments;
pub(crate) mod reduce;
pub(crate) mod top_k;
pub(crate) mod tree;
#[cfg(target_arch = "x86_64")]
mod x86;
