//! Kernel families: traits whose methods are the kernels of a device.
//!
//! Each family is a trait that extends [`Memory`](crate::Memory). Every kernel method has a default
//! implementation, which runs the [host kernel](slices) on the host side of the views. Only the
//! default implementation of `convolve_with_activation` runs two kernels of the device, `convolve`
//! and `unary`. Because memory is kept coherent, the default implementations are correct on every
//! device. A default implementation downloads only operands whose host side is stale, and transfers
//! nothing in unified memory. A backend overrides the kernels that it computes itself. An override
//! can match on [`Element::DTYPE`](crate::Element::DTYPE) to support only some element types.
//!
//! Rules for every kernel method and its overrides:
//! - error messages name an operand as the method's signature does, such as `a`, `x` or `dy`;
//! - an override calls the descriptor's `check` with the operands' lengths before it starts any
//!   work on the device, as the host kernels do;
//! - an input operand that may alias the output operand has the type [`Src`](crate::Src);
//! - a kernel does not read an operand that it overwrites, so a NaN in the operand does not
//!   propagate to the result.

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

/// The traits of all kernel families. Code that calls kernels of a concrete device type, such as
/// [`CpuDevice`](crate::CpuDevice), must import the traits of the kernel families.
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
///
/// ```
/// assert!(cortado::kernel::names().any(|name| name == "gemm"));
/// ```
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
