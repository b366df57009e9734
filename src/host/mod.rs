//! Host kernels: implementations of all kernel families on slices in host memory, and the threads
//! that run the kernels.
//!
//! A device that does not override a kernel falls back to the host kernel. Other crates call host
//! kernels through [`kernel::slices`](crate::kernel::slices), so that only this crate compiles the
//! kernels.
//!
//! - A kernel first checks the lengths of its operands, and returns an error if a length is wrong.
//! - A kernel computes in [`Element::Acc`](crate::Element::Acc) and rounds once to the element
//!   type.
//! - A kernel splits work among the threads of [`Workers`] if the work exceeds a threshold that was
//!   found by measurement. The split of a sum into tasks depends only on the size of the sum, so
//!   results are bit-identical for any number of threads.
//! - The compiler vectorizes the kernels' loops for several SIMD levels. Only `x86` modules contain
//!   x86-64 intrinsics. The file named after a kernel contains the kernel's portable loop, and
//!   decides when x86-64 code replaces the loop.
//!
//! ARCHITECTURE.md describes the folders of `host`. Each folder of `host` imports only from folders
//! that `host/mod.rs` declares earlier.
//!
//! `host/mod.rs` re-exports the kernels to the rest of the crate; folders of `host` do not use the
//! re-exports. Only `nn::col2im` and the folders with `allow(unsafe_code)` may contain `unsafe`
//! code.

#[allow(unsafe_code)] // prefetch, non-temporal stores, madvise
mod cache;
#[allow(unsafe_code)] // intrinsics, functions compiled for a SIMD level
mod simd;
#[allow(unsafe_code)] // lends a closure to other threads
mod threads;
#[allow(unsafe_code)] // intrinsics
mod math;
#[allow(unsafe_code)] // intrinsics
mod reduction;
mod elementwise;
#[allow(unsafe_code)] // intrinsics, a matrix whose tiles threads share
mod blas;
mod indexing;
mod random;
mod nn;
#[cfg(test)]
mod schedule_tests;
#[cfg(test)]
mod testing;

pub(crate) use blas::gemm::{gemm, gemm_batched};
pub(crate) use blas::gemv::gemv;
pub(crate) use blas::level1::{axpby, axpy, copy, scal};
pub(crate) use blas::sums::{amax, asum, check_strided, dot, dot_strided, sumsq};
pub(crate) use cache::{cache_line::CACHE_LINE, huge_pages::advise_huge_pages};
pub(crate) use elementwise::broadcast::{affine, affine_in_place, broadcast, broadcast_in_place};
pub(crate) use elementwise::convert::{convert, convert_integers};
pub(crate) use elementwise::map::{binary, binary_in_place, fill, unary, unary_in_place};
pub(crate) use indexing::gather_scatter::{
    copy_2d, gather, scatter_add, tile, tile_backward, to_indices,
};
#[cfg(feature = "cuda")] // used by device
pub(crate) use indexing::permute::Axes;
pub(crate) use indexing::permute::permute;
pub(crate) use nn::class_loss::{class_loss, class_loss_backward};
pub(crate) use nn::convolution::{
    convolve, convolve_backward_filters, convolve_backward_input, convolve_with_activation,
};
pub(crate) use nn::elementwise_loss::{elementwise_loss, elementwise_loss_backward};
pub(crate) use nn::lrn::{lrn, lrn_backward};
pub(crate) use nn::lstm::{lstm, lstm_backward};
pub(crate) use nn::pooling::{
    average_pool, average_pool_backward, max_pool, max_pool_backward, stochastic_pool,
};
pub(crate) use nn::softmax::{
    softmax, softmax_backward, softmax_backward_in_place, softmax_in_place,
};
pub(crate) use nn::softmax_loss::{
    accuracy, accuracy_by_class, softmax_loss, softmax_loss_backward,
};
pub(crate) use nn::solver_update::solver_update;
pub(crate) use nn::standardize::{
    standardize, standardize_backward, standardize_backward_in_place, standardize_in_place,
};
pub(crate) use nn::{col2im::col2im, im2col::im2col};
#[cfg(feature = "cuda")] // used by device
pub(crate) use random::bounds;
pub(crate) use random::{
    bernoulli, dropout, dropout_in_place, expect_bound, expect_interval, expect_keep,
    expect_normal, expect_probability, gaussian, random_integers, uniform,
};
pub(crate) use reduction::dot_to_axis::dot_to_axis;
pub(crate) use reduction::moments::moments;
pub(crate) use reduction::reduce::{arg_max, reduce, sum_to_axis};
pub(crate) use reduction::top_k::top_k;
#[cfg(feature = "report")] // used by bench_kit
pub(crate) use simd::fma_rate::multiply_adds;
#[cfg(feature = "net")] // used by data
pub(crate) use simd::vectorized;
pub use simd::{limit_simd, simd_instruction_set};
pub(crate) use threads::{RegionObserver, RegionWatch};
pub use threads::{Workers, default_threads};
