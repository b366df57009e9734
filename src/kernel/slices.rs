//! Kernels of all families on slices in host memory, without a device.
//!
//! Each function takes the [`Workers`] and then the arguments of the kernel method of the same
//! name. A function that works in place, such as `unary_in_place`, omits the input operand. Each
//! function selects the code for its element type, which this crate has already compiled.
//!
//! ```
//! use cortado::{host::Workers, kernel::slices, op::Gemm};
//!
//! let (a, b, mut c) = ([1.0f32, 2.0], [3.0, 4.0], [0.0]);
//! slices::gemm(Workers::global(), &Gemm::new(1, 1, 2), &a, &b, &mut c)?;
//! assert_eq!(c, [11.0]);
//! # Ok::<(), cortado::Error>(())
//! ```

pub use super::{
    blas::slices::*, conv::slices::*, elementwise::slices::*, indexing::slices::*,
    losses::slices::*, normalize::slices::*, pooling::slices::*, random::slices::*,
    reductions::slices::*,
};
use crate::{
    element::Element,
    error::Result,
    host::{self, Workers},
    op::{Convolution, SolverUpdate, Unary},
};

/// `y ← function(x ∗ filters + bias)`; see
/// [`Conv::convolve_with_activation`](crate::kernel::Conv::convolve_with_activation).
///
/// # Errors
/// Returns any error from the descriptor's `check`.
pub fn convolve_with_activation<T: Element>(
    workers: &Workers,
    op: &Convolution,
    x: &[T],
    filters: &[T],
    bias: Option<&[T]>,
    function: Unary<T::Acc>,
    y: &mut [T],
) -> Result<()> {
    let convolve = host_function_for_element!(
        convolve_with_activation(
            &Convolution,
            &[T],
            &[T],
            Option<&[T]>,
            Unary<T::Acc>,
            &mut [T],
        ) -> Result<()>
    );
    convolve(workers, op, x, filters, bias, function, y)
}

/// Updates the weights by one step of a solver; see
/// [`Update::solver_update`](crate::kernel::Update::solver_update).
///
/// # Errors
/// Returns any error from [`SolverUpdate::check`].
pub fn solver_update<T: Element>(
    workers: &Workers,
    op: &SolverUpdate<T>,
    dw: &[T],
    weights: &mut [T],
    masters: Option<&mut [T::Acc]>,
    history: &mut [&mut [T::Acc]],
) -> Result<()> {
    let update = host_function_for_element!(
        solver_update(
            &SolverUpdate<T>,
            &[T],
            &mut [T],
            Option<&mut [T::Acc]>,
            &mut [&mut [T::Acc]],
        ) -> Result<()>
    );
    update(workers, op, dw, weights, masters, history)
}
