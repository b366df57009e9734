//! Kernel descriptors, which hold the shapes, scalars and scalar functions of kernel calls.
//!
//! Host kernels, device kernels and conformance checks share the kernel descriptors. The method
//! `check` of a descriptor compares the lengths of operands with the descriptor's shapes. The
//! errors of `check` use the operand names in the kernel's signature. A backend calls `check`
//! before it launches a kernel.

mod axis;
mod binary;
mod convolution;
mod elementary;
mod gemm;
mod index;
mod loss;
mod lrn;
mod lstm;
mod pool;
mod random;
mod reduce;
mod scalar;
mod standardize;
mod unary;
mod update;
mod window;

pub use axis::Axis;
pub use binary::Binary;
pub(crate) use binary::{BinaryFunction, BinaryVisitor};
pub use convolution::Convolution;
pub(crate) use elementary::ElementaryFunctions;
pub use gemm::{Gemm, GemmBatch, Gemv, Transpose};
pub use index::{Copy2d, Permute, RowIndexing, Tile};
pub(crate) use loss::at_least;
pub use loss::{
    Accuracy, ClassLoss, ClassLossKind, ElementwiseLoss, ElementwiseLossKind, LossNormalization,
    SoftmaxLoss,
};
pub use lrn::{Lrn, LrnRegion};
pub use lstm::Lstm;
pub use pool::{Pool2d, PoolRounding};
pub use random::{Philox, RngKey};
pub use reduce::{Reduce, TopK};
pub use standardize::{EpsilonPlacement, Standardize};
pub use unary::Unary;
pub(crate) use unary::{UnaryFunction, UnaryVisitor, sigmoid};
pub use update::{Regularization, SolverUpdate, UpdateRule, adam_correction};
pub use window::{SpatialAxis, Window};
