//! Solver steps.

use super::enter;
use crate::{
    element::Element,
    error::Result,
    host,
    memory::{Memory, View, ViewMut},
    op::SolverUpdate,
};

/// [`Update::solver_update`](crate::kernel::Update::solver_update) on the host.
#[track_caller]
pub fn solver_update<T: Element, D: Memory>(
    device: &D,
    op: &SolverUpdate<T>,
    dw: View<'_, T, D>,
    mut weights: ViewMut<'_, T, D>,
    mut masters: Option<ViewMut<'_, T::Acc, D>>,
    history: &mut [ViewMut<'_, T::Acc, D>],
) -> Result<()> {
    let _kernel = enter(device, "solver_update", T::DTYPE.name())?;
    let (dw, weights) = (dw.host()?, weights.host_mut()?);
    let masters = masters.as_mut().map(ViewMut::host_mut).transpose()?;
    let mut history = history.iter_mut().map(ViewMut::host_mut).collect::<Result<Vec<_>>>()?;
    host::solver_update(device.host_workers(), op, dw, weights, masters, &mut history)
}
