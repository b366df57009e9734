//! Kernels on plain slices: what every family does where a device brings nothing of its own.
//!
//! Decisions:
//! - Operands are checked here, before any work; a length that does not fit is an error.
//! - Arithmetic is done in [`Element::Acc`](crate::Element::Acc) and rounded once to the element.
//! - Work is split over [`Workers`] above a size at which that was measured to pay, and always
//!   along lines that do not depend on the number of threads: results are the same bits for any.
//! - Loops are written for the compiler to vectorise and compiled for several vector widths.

mod cache;
mod simd;
mod threads;
mod math;
mod reduction;
mod elementwise;
mod blas;
mod indexing;
mod random;
mod nn;
#[cfg(test)]
mod testing;

pub use blas::gemm::{gemm, gemm_batched};
pub use blas::gemv::gemv;
pub use blas::level1::{amax, asum, axpby, axpy, copy, dot, dot_strided, scal, sumsq};
pub(crate) use cache::huge_pages::advise_huge_pages;
pub use elementwise::broadcast::{affine, affine_in_place, broadcast, broadcast_in_place};
pub use elementwise::convert::{convert, convert_integers};
pub use elementwise::map::{binary, binary_in_place, fill, unary, unary_in_place};
#[cfg(feature = "cuda")] // used by device
pub(crate) use indexing::gather_scatter::Axes;
pub use indexing::gather_scatter::{
    copy_2d, gather, permute, scatter_add, tile, tile_backward, to_indices,
};
pub use nn::class_loss::{class_loss, class_loss_backward};
pub use nn::convolution::{
    convolve, convolve_backward_filters, convolve_backward_input, convolve_with_activation,
};
pub use nn::elementwise_loss::{elementwise_loss, elementwise_loss_backward};
pub use nn::lrn::{lrn, lrn_backward};
pub use nn::lstm::{lstm, lstm_backward};
pub use nn::pooling::{
    average_pool, average_pool_backward, max_pool, max_pool_backward, stochastic_pool,
};
pub use nn::softmax::{softmax, softmax_backward, softmax_backward_in_place, softmax_in_place};
pub use nn::softmax_loss::{accuracy, accuracy_by_class, softmax_loss, softmax_loss_backward};
pub use nn::solver_update::solver_update;
pub use nn::standardize::{
    standardize, standardize_backward, standardize_backward_in_place, standardize_in_place,
};
pub use nn::{col2im::col2im, im2col::im2col};
pub use random::{bernoulli, dropout, dropout_in_place, gaussian, random_integers, uniform};
#[cfg(feature = "cuda")] // used by device
pub(crate) use random::{
    bounds, expect_bound, expect_interval, expect_keep, expect_normal, expect_probability,
};
pub use reduction::dot_to_axis::dot_to_axis;
pub use reduction::moments::moments;
pub use reduction::reduce::{arg_max, reduce, sum_to_axis};
pub use reduction::top_k::top_k;
pub use simd::simd_instruction_set;
#[cfg(feature = "net")] // used by data
pub(crate) use simd::vectorized;
pub use threads::Workers;
