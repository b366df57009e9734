//! What every method of every family does by default: run the [`host`](crate::host) kernel on the
//! host side of the views.
//!
//! A function here has the method's name and its arguments, the device first. An override that
//! handles some element types calls it for the others:
//!
//! ```text
//! match (x.cast::<f32>(), y.cast::<f32>()) { … , _ => fallback::copy(self, x, y) }
//! ```
//!
//! Outputs that are overwritten are committed only once the host kernel has succeeded: a wrong
//! length leaves them as they were.

mod blas;
mod elementwise;
mod indexing;
mod losses;
mod normalize;
mod pooling;
mod random;
mod reductions;
mod update;
mod conv;

pub use blas::{
    amax, asum, axpby, axpy, copy, dot, dot_strided, gemm, gemm_batched, gemv, scal, sumsq,
};
pub use elementwise::{
    affine, binary, broadcast, convert, convert_integers, fill, lstm, lstm_backward, unary,
};
pub use indexing::{copy_2d, gather, permute, scatter_add, tile, tile_backward, to_indices};
pub use losses::{
    accuracy, accuracy_by_class, class_loss, class_loss_backward, elementwise_loss,
    elementwise_loss_backward, softmax_loss, softmax_loss_backward,
};
pub use normalize::{
    lrn, lrn_backward, moments, softmax, softmax_backward, standardize, standardize_backward,
};
pub use pooling::{
    average_pool, average_pool_backward, max_pool, max_pool_backward, stochastic_pool,
};
pub use random::{bernoulli, dropout, gaussian, integer, uniform};
pub use reductions::{arg_max, dot_to_axis, reduce, sum_to_axis, top_k};
pub use update::solver_update;
pub use conv::{
    col2im, convolve, convolve_backward_filters, convolve_backward_input, convolve_with_activation,
    im2col,
};

use crate::{
    error::Result,
    memory::{KernelCall, Memory, ledger::KernelScope},
};

/// Tells `device` that one of its kernels falls back, and opens the kernel's account.
#[track_caller]
fn enter<D: Memory>(device: &D, name: &'static str, element: &'static str) -> Result<KernelScope> {
    let kernel = KernelCall::new(name, element);
    device.on_fallback(&kernel)?;
    Ok(kernel.enter())
}
