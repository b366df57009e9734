//! Neural networks.

pub(crate) mod class_loss;
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
