//! Kernels on plain slices: what every family does where a device brings nothing of its own.
//!
//! Decisions:
//! - Operands are checked here, before any work; a length that does not fit is an error.
//! - Arithmetic is done in [`Element::Acc`](crate::Element::Acc) and rounded once to the element.
//! - Work is split over [`Workers`] above a size at which that was measured to pay, and always
//!   along lines that do not depend on the number of threads: results are the same bits for any.
//! - Loops are written for the compiler to vectorise and compiled for several vector widths.

mod broadcast;
mod channel;
mod class_loss;
mod convert;
mod convolution;
mod dot_onto;
mod fold;
mod functions;
mod fused;
mod gemm;
mod gemv;
#[cfg(target_arch = "x86_64")]
mod halves;
mod index;
mod level1;
mod lines;
mod loss;
mod lrn;
mod lstm;
mod map;
mod moments;
mod pages;
mod pair_loss;
mod pool;
mod random;
mod reduce;
mod scratch;
mod simd;
mod softmax;
mod standardize;
mod stream;
#[cfg(test)]
mod testing;
mod tiling;
mod top_k;
mod update;
mod widen;
mod window;
mod workers;

pub use broadcast::{affine, affine_in_place, broadcast, broadcast_in_place};
pub use class_loss::{class_loss, class_loss_backward};
pub use convert::{convert, convert_integers};
pub use convolution::{
    convolve, convolve_backward_filters, convolve_backward_input, convolve_with_activation,
};
pub use dot_onto::dot_to_axis;
pub use gemm::{gemm, gemm_batched};
pub use gemv::gemv;
#[cfg(feature = "cuda")] // used by device
pub(crate) use index::Axes;
pub use index::{copy_2d, gather, permute, scatter_add, tile, tile_backward, to_indices};
pub use level1::{amax, asum, axpby, axpy, copy, dot, dot_strided, scal, sumsq};
pub use loss::{accuracy, accuracy_by_class, softmax_loss, softmax_loss_backward};
pub use lrn::{lrn, lrn_backward};
pub use lstm::{lstm, lstm_backward};
pub use map::{binary, binary_in_place, fill, unary, unary_in_place};
pub use moments::moments;
pub(crate) use pages::advise_huge_pages;
pub use pair_loss::{elementwise_loss, elementwise_loss_backward};
pub use pool::{average_pool, average_pool_backward, max_pool, max_pool_backward, stochastic_pool};
pub use random::{bernoulli, dropout, dropout_in_place, gaussian, random_integers, uniform};
#[cfg(feature = "cuda")] // used by device
pub(crate) use random::{
    bounds, expect_bound, expect_interval, expect_keep, expect_normal, expect_probability,
};
pub use reduce::{arg_max, reduce, sum_to_axis};
pub use simd::simd_instruction_set;
#[cfg(feature = "net")] // used by data
pub(crate) use simd::vectorized;
pub use softmax::{softmax, softmax_backward, softmax_backward_in_place, softmax_in_place};
pub use standardize::{
    standardize, standardize_backward, standardize_backward_in_place, standardize_in_place,
};
pub use top_k::top_k;
pub use update::solver_update;
pub use window::{col2im, im2col};
pub use workers::Workers;
