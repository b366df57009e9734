//! Fallbacks: the defaults of all kernel methods, which run the [host kernel](slices) on the host
//! side of the views.
//!
//! Each fallback function takes the device and then the arguments of the kernel method of the same
//! name. An override that supports only some element types calls the fallback function for all
//! other element types:
//!
//! ```text
//! match (x.downcast::<f32>(), y.downcast::<f32>()) { … , _ => fallback::copy(self, x, y) }
//! ```
//!
//! A fallback commits an overwritten output only after the host kernel has succeeded, so an operand
//! of the wrong length leaves the output unchanged.

pub use super::{
    blas::fallback::*, conv::fallback::*, elementwise::fallback::*, indexing::fallback::*,
    losses::fallback::*, normalize::fallback::*, pooling::fallback::*, random::fallback::*,
    reductions::fallback::*,
};
use super::{declare::enter_fallback, slices};
use crate::{
    element::Element,
    error::Result,
    memory::{Memory, View, ViewMut},
    op::{Convolution, SolverUpdate, Unary},
};

/// Runs [`Conv::convolve_with_activation`](crate::kernel::Conv::convolve_with_activation) on the
/// host, for devices whose `convolve` and `unary` both run on the host. Ledgers record a fallback
/// of `convolve_with_activation` under the kernel name `convolve`.
#[track_caller]
pub fn convolve_with_activation<T: Element, D: Memory>(
    device: &D,
    op: &Convolution,
    x: View<'_, T, D>,
    filters: View<'_, T, D>,
    bias: Option<View<'_, T, D>>,
    function: Unary<T::Acc>,
    mut y: ViewMut<'_, T, D>,
) -> Result<()> {
    let _kernel = enter_fallback(device, "convolve", T::DTYPE.name())?;
    let (x, filters, bias) = (x.host()?, filters.host()?, bias.map(View::host).transpose()?);
    y.host_overwrite(|y| {
        slices::convolve_with_activation(device.host_workers(), op, x, filters, bias, function, y)
    })
}

/// Runs [`Update::solver_update`](crate::kernel::Update::solver_update) on the host.
#[track_caller]
pub fn solver_update<T: Element, D: Memory>(
    device: &D,
    op: &SolverUpdate<T>,
    dw: View<'_, T, D>,
    mut weights: ViewMut<'_, T, D>,
    mut masters: Option<ViewMut<'_, T::Acc, D>>,
    history: &mut [ViewMut<'_, T::Acc, D>],
) -> Result<()> {
    let _kernel = enter_fallback(device, op.rule.kernel_name(), T::DTYPE.name())?;
    let (dw, weights) = (dw.host()?, weights.host_mut()?);
    let masters = masters.as_mut().map(ViewMut::host_mut).transpose()?;
    let mut history = history.iter_mut().map(ViewMut::host_mut).collect::<Result<Vec<_>>>()?;
    slices::solver_update(device.host_workers(), op, dw, weights, masters, &mut history)
}
