//! Kernel families: traits whose methods are the kernels of a device.
//!
//! Each family is a trait that extends [`Memory`](crate::Memory). Every kernel method has a default
//! implementation, which runs the [host kernel](slices) on the host side of the views. Only the
//! default implementations of `convolve_with_activation` and `gemm_with_bias` run kernels of the
//! device, such as `convolve` and `unary`. Because memory is kept coherent, the default implementations are correct on every
//! device. A default implementation downloads only operands whose host side is stale, and transfers
//! nothing in unified memory. A backend overrides the kernels that the backend implements itself.
//! An override can match on [`Element::DTYPE`](crate::Element::DTYPE) to support only some element
//! types.
//!
//! # The contract of every kernel
//!
//! The following rules hold for every kernel method and every override. The documentation of a
//! method adds only what is specific to the kernel. The chapter [The contract of a
//! device](crate::guide::contract) names the checks that test each rule.
//!
//! ## Calls and errors
//!
//! - **Refused calls.** An override calls the descriptor's `check` with the operands' lengths, as
//!   the host kernels do. The override calls `check` before it launches anything and before it
//!   requests an output for writing. A call with a wrong length, an invalid descriptor or an
//!   invalid scalar returns an error. A refused call changes no operand, and the device keeps
//!   working.
//! - **Names.** An error message names an operand as the method's signature does, such as `a`, `x`
//!   or `dy`.
//! - **Failed allocations and transfers.** If an allocation or a transfer of a call fails, all
//!   operands keep their values. A kernel with several outputs first reserves every output with
//!   [`ViewMut::reserve_device`](crate::ViewMut::reserve_device).
//! - **Invalid elements.** Only the device can see an invalid label, index or mask in an operand.
//!   Either the call itself or the next call that waits for the queue returns the error, as
//!   [`Memory`](crate::Memory) describes. After an error about an invalid element, the outputs are
//!   unspecified, but the kernel writes nothing outside its outputs.
//!
//! ## Operands
//!
//! - **Inputs and outputs.** A kernel changes no input and no element outside the view of an
//!   output. If a kernel overwrites an output, the kernel writes every element of the output and
//!   reads none, so a NaN in the output does not reach the result. With β = 0, a kernel overwrites
//!   its output.
//! - **Empty operands.** Operands without elements are valid. A kernel whose outputs are empty
//!   succeeds. A sum without terms is 0. The exceptions are reductions whose result is undefined
//!   without elements: the maximum, the minimum, `arg_max` and `moments`.
//! - **Lengths.** The documentation of a kernel method states the lengths of its operands. In
//!   formulas for lengths, `op` and `axis` are arguments of the method.
//! - **Offsets and sizes.** A view may start at any element of its memory. A kernel must support
//!   operands of more than 2²⁰ elements, and of more than 65,535 rows or planes.
//! - **Overlapping operands.** Two inputs may be the same view or overlap. An output never overlaps
//!   another operand. An input that may be the output itself has the type [`Src`](crate::Src).
//!
//! ## Results
//!
//! - **Rounding.** A kernel computes in the accumulator type `T::Acc`, and rounds each result once
//!   to `T`, to nearest, ties to even. A single addition, subtraction or multiplication is
//!   correctly rounded to `T::Acc`. A sum of `n` terms `tᵢ` may have an error of up to `(n +
//!   4)·ε(T::Acc)·Σ|tᵢ| + ε(T)·|Σtᵢ|` plus the smallest positive number of `T`, where `ε` is the
//!   distance from 1 to the next larger number. Elementary functions may have the errors that
//!   OpenCL allows, such as 3 units in the last place of `T::Acc` for `exp` and 16 for `pow`.
//! - **Exact sums.** If all terms and all their partial sums are integers that `T::Acc` represents,
//!   a sum has no error before its last rounding. The rule of exact sums does not apply to means,
//!   quotients and elementary functions.
//! - **NaN and infinities.** A kernel computes with NaN and infinities as IEEE arithmetic does,
//!   unless the method says otherwise. A NaN or an infinity reaches every result that depends on
//!   it, and no other. 0·NaN and 0·∞ are NaN, even if the 0 is a scalar such as α. The sign and the
//!   payload of a computed NaN are unspecified.
//! - **Zeros.** −0 and +0 compare as equal. The sign of a computed zero is unspecified, except for
//!   `Abs` and `Neg`.
//! - **Subnormal numbers.** A device may treat subnormal `f32`, `f64` and `bf16` numbers as zero,
//!   in operands and in results. A device must not treat subnormal `f16` numbers as zero, because
//!   they are normal numbers of the accumulator type `f32`.
//! - **Kernels that only move elements** (`copy`, `fill`, `copy_2d`, `gather`, `permute`, `tile`,
//!   `im2col`) copy each element bit for bit, even a NaN, −0 or a subnormal number.
//! - **Determinism.** The same call with the same operands on the same device gives the same bits,
//!   for any number of threads. A sum adds its terms in an order that depends only on the sizes of
//!   the operands. Results of two devices may differ within the rounding errors; only the kernels
//!   of [`Random`] and `stochastic_pool` give the same result on every device.

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

/// Returns the names of all kernel methods. If a method computes one of several functions, ledgers
/// and the coverage table of the conformance kit append the name of the function to the name of the
/// method, as in `unary_exp`.
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
