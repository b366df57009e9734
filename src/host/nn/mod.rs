//! Neural-network kernels on slices in host memory.
//!
//! Each public function checks its operands against a descriptor of [`crate::op`].
//!
//! Convolution and im2col:
//! - `tap_range` computes the positions at which a tap lies inside the image. `im2col` copies the
//!   elements that a tap reads, one run of an image row at a time. `col2im` adds the elements of an
//!   im2col matrix to the image. If the stride along the last axis is 1, `col2im` adds in SIMD
//!   registers, otherwise in a portable loop over taps.
//! - `convolution` computes convolutions as GEMMs, without storing the im2col matrix. Depthwise
//!   convolutions do not use GEMM.
//!
//! Windows on planes:
//! - `polyphase` reorders a plane so that the elements that one tap reads in neighbouring windows
//!   are contiguous. The polyphase layout lets the modules `convolution::depthwise` and `pooling`
//!   process many windows at once.
//! - `pooling` processes one window at a time if a plane has few windows, or windows larger than
//!   the plane.
//! - `lrn` sums squared elements over windows that span channels, or a square within a plane.
//!
//! The modules of `nn` that this list does not name make one or two passes over the operands, in
//! loops that the compiler vectorizes for each SIMD level.

pub(crate) mod class_loss;
#[allow(unsafe_code)] // SIMD vectors by raw pointers
pub(crate) mod col2im;
pub(crate) mod convolution;
pub(crate) mod elementwise_loss;
pub(crate) mod im2col;
pub(crate) mod lrn;
pub(crate) mod lstm;
pub(crate) mod polyphase;
pub(crate) mod pooling;
pub(crate) mod softmax;
pub(crate) mod softmax_loss;
pub(crate) mod solver_update;
pub(crate) mod standardize;
pub(crate) mod tap_range;
#[cfg(test)]
mod testing;
