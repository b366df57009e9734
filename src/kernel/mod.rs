//! Kernel families: the traits that say what a device computes.
//!
//! Each family is a trait over [`Memory`](crate::Memory) whose methods all have a default, which
//! runs the [host kernel](slices) on the host side of the views. Only the default of
//! `convolve_with_activation` runs two other kernels instead. The coherence of memory makes the
//! defaults correct on every device. They copy nothing on devices that share the host's memory. On
//! other devices they copy only operands whose host side is stale. A backend overrides the kernels
//! that it computes itself, method by method and, matching on
//! [`Element::DTYPE`](crate::Element::DTYPE), type by type.
//!
//! For every method:
//! - operands are named `a b c`, `x y`, `dx dy` as in the signature, and errors use these names;
//! - an override calls the descriptor's `check` with the operands' lengths before it launches
//!   anything, as the host kernels do;
//! - an operand that may be the output itself is a [`Src`](crate::Src);
//! - an operand that is overwritten is not read first, so a NaN in it does not spread.

#[macro_use]
pub(crate) mod declare;
pub(crate) mod blas;
pub(crate) mod conv;
pub(crate) mod elementwise;
pub mod fallback;
pub(crate) mod indexing;
pub(crate) mod losses;
pub(crate) mod normalize;
pub(crate) mod pooling;
pub(crate) mod random;
pub(crate) mod reductions;
pub mod slices;
mod update;

pub use blas::Blas;
pub use conv::Conv;
pub use elementwise::Elementwise;
pub use indexing::Indexing;
pub use losses::Losses;
pub use normalize::Normalize;
pub use pooling::Pooling;
pub use random::Random;
pub use reductions::Reductions;
pub use update::Update;

/// The traits of devices. Rust calls their methods on a concrete type, such as
/// [`CpuDevice`](crate::CpuDevice), only where the traits are in scope.
///
/// ```
/// use cortado::{Blob, CpuDevice, kernel::traits::*};
///
/// let device = CpuDevice::new();
/// let x = Blob::<f32, _>::from_vec(&device, &[2], vec![3.0, 4.0])?;
/// assert_eq!(device.sumsq(x.data()?.view())?, 25.0);
/// # Ok::<(), cortado::Error>(())
/// ```
pub mod traits {
    pub use super::{
        Blas, Conv, Elementwise, Indexing, Losses, Normalize, Pooling, Random, Reductions, Update,
    };
    pub use crate::memory::Memory;
}

/// Returns the names of all kernels, as ledgers record them.
pub fn names() -> impl Iterator<Item = &'static str> {
    let families = [
        blas::NAMES,
        elementwise::NAMES,
        reductions::NAMES,
        random::NAMES,
        conv::NAMES,
        pooling::NAMES,
        normalize::NAMES,
        losses::NAMES,
        indexing::NAMES,
        update::NAMES,
    ];
    families.into_iter().flatten().copied()
}
