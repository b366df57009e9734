//! Kernels of all families on slices in host memory, without a device.
//!
//! Each function takes the [`Workers`] and then the arguments of the kernel method with the
//! function's name. A function that works in place, such as `unary_in_place`, omits the input
//! operand. Each function selects the code for its element type, which this crate has already
//! compiled.
//!
//! ```
//! use cortado::{host::Workers, kernel::slices, op::Gemm};
//!
//! let (a, b, mut c) = ([1.0f32, 2.0], [3.0, 4.0], [0.0]);
//! slices::gemm(Workers::global(), &Gemm::new(1, 1, 2), &a, &b, &mut c)?;
//! assert_eq!(c, [11.0]);
//! # Ok::<(), cortado::Error>(())
//! ```

use super::{blas, conv, elementwise, indexing, losses, normalize, pooling, random, reductions};
pub use super::{
    blas::slices::*, conv::slices::*, elementwise::slices::*, indexing::slices::*,
    losses::slices::*, normalize::slices::*, pooling::slices::*, random::slices::*,
    reductions::slices::*,
};
use crate::{
    element::{Element, bf16, f16, for_element_type},
    error::Result,
    host::{self, HostFunctions, Workers},
    op::{Convolution, SolverUpdate, Unary},
};
use std::any::Any;

/// The host functions of all kernel families for one element type.
pub(crate) trait HostKernels<T: Element>:
    blas::slices::HostKernels<T>
    + conv::slices::HostKernels<T>
    + elementwise::slices::HostKernels<T>
    + indexing::slices::HostKernels<T>
    + losses::slices::HostKernels<T>
    + normalize::slices::HostKernels<T>
    + pooling::slices::HostKernels<T>
    + random::slices::HostKernels<T>
    + reductions::slices::HostKernels<T>
    + Sync
{
    #[allow(clippy::too_many_arguments)]
    fn convolve_with_activation(
        &self,
        workers: &Workers,
        op: &Convolution,
        x: &[T],
        filters: &[T],
        bias: Option<&[T]>,
        function: Unary<T::Acc>,
        y: &mut [T],
    ) -> Result<()>;

    fn solver_update(
        &self,
        workers: &Workers,
        op: &SolverUpdate<T>,
        dw: &[T],
        weights: &mut [T],
        masters: Option<&mut [T::Acc]>,
        history: &mut [&mut [T::Acc]],
    ) -> Result<()>;
}

impl<T: Element> HostKernels<T> for HostFunctions {
    fn convolve_with_activation(
        &self,
        workers: &Workers,
        op: &Convolution,
        x: &[T],
        filters: &[T],
        bias: Option<&[T]>,
        function: Unary<T::Acc>,
        y: &mut [T],
    ) -> Result<()> {
        host::convolve_with_activation(workers, op, x, filters, bias, function, y)
    }

    fn solver_update(
        &self,
        workers: &Workers,
        op: &SolverUpdate<T>,
        dw: &[T],
        weights: &mut [T],
        masters: Option<&mut [T::Acc]>,
        history: &mut [&mut [T::Acc]],
    ) -> Result<()> {
        host::solver_update(workers, op, dw, weights, masters, history)
    }
}

pub(crate) fn host_kernels<T: Element>() -> &'static dyn HostKernels<T> {
    type Table<T> = &'static dyn HostKernels<T>;
    static F16: Table<f16> = &HostFunctions;
    static BF16: Table<bf16> = &HostFunctions;
    static F32: Table<f32> = &HostFunctions;
    static F64: Table<f64> = &HostFunctions;
    let tables: [&dyn Any; 4] = [&F16, &BF16, &F32, &F64];
    *for_element_type::<T, Table<T>>(tables)
}

/// `y ← function(x ∗ filters + bias)`; see
/// [`Conv::convolve_with_activation`](crate::kernel::Conv::convolve_with_activation).
///
/// # Errors
/// Returns the errors of the descriptor's `check`.
pub fn convolve_with_activation<T: Element>(
    workers: &Workers,
    op: &Convolution,
    x: &[T],
    filters: &[T],
    bias: Option<&[T]>,
    function: Unary<T::Acc>,
    y: &mut [T],
) -> Result<()> {
    host_kernels::<T>().convolve_with_activation(workers, op, x, filters, bias, function, y)
}

/// Updates the weights by one step of a solver; see
/// [`Update::solver_update`](crate::kernel::Update::solver_update).
///
/// # Errors
/// Returns the errors of [`SolverUpdate::check`].
pub fn solver_update<T: Element>(
    workers: &Workers,
    op: &SolverUpdate<T>,
    dw: &[T],
    weights: &mut [T],
    masters: Option<&mut [T::Acc]>,
    history: &mut [&mut [T::Acc]],
) -> Result<()> {
    host_kernels::<T>().solver_update(workers, op, dw, weights, masters, history)
}
