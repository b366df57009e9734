//! Reductions along an axis: sums, minima and maxima, moments, and the top-k elements.
//!
//! - [`tree`] reduces slices, rows and columns in a fixed order, with loops that the compiler
//!   vectorizes. With AVX-512, `x86::row_sums` replaces the loop that sums short rows of `f32`.
//! - [`channel_sums`] computes one sum in `f64` per position of an axis. Each term of the sum is a
//!   function of elements of two operands.
//! - [`reduce`] (sum, mean, maximum, minimum, `arg_max`, `sum_to_axis`) calls `tree`, and
//!   [`dot_to_axis`] calls `channel_sums`. [`moments`] (mean and variance) and [`top_k`] call
//!   neither `tree` nor `channel_sums`.
//!
//! The softmax and pooling kernels also call `tree`, and the standardization kernels call
//! `channel_sums`. The order of additions in a reduction depends on shapes only, so results are
//! bit-identical for any number of threads and at every SIMD level.

pub(crate) mod channel_sums;
pub(crate) mod dot_to_axis;
pub(crate) mod moments;
pub(crate) mod reduce;
pub(crate) mod top_k;
pub(crate) mod tree;
#[cfg(target_arch = "x86_64")]
mod x86;
