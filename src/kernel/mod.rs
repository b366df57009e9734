//! Kernel families: what a device computes.
//!
//! Each family is a trait over [`Memory`](crate::Memory) whose methods all have a default: run
//! the [`host`](crate::host) kernel on the host side of the views (one, `convolve_with_activation`, is
//! made of two others). Coherence makes that correct on
//! every device, copy-free on devices that share the host's memory, and lazy on discrete ones. A
//! backend overrides what it does better, method by method and, matching on
//! [`Element::DTYPE`](crate::Element::DTYPE), type by type.
//!
//! For every method:
//! - operands are named `a b c`, `x y`, `dx dy` as in the signature, and errors use these names;
//! - an override calls the description's `check` with the operands' lengths before it launches
//!   anything, as the host kernels do;
//! - an operand that may be the output itself is a [`Src`](crate::Src);
//! - what is said to be overwritten is not read first, so NaN there does not spread.

mod blas;
mod elementwise;
pub mod fallback;
mod indexing;
mod losses;
mod normalize;
mod pooling;
mod random;
mod reductions;
mod update;
mod conv;

pub use blas::Blas;
pub use elementwise::Elementwise;
pub use indexing::Indexing;
pub use losses::Losses;
pub use normalize::Normalize;
pub use pooling::Pooling;
pub use random::Random;
pub use reductions::Reductions;
pub use update::Update;
pub use conv::Conv;
