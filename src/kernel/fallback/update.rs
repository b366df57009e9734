//! Solver steps.

use super::enter;
use crate::{
    element::Element,
    error::Result,
    host,
    memory::{Memory, View, ViewMut},
    op::Sgd,
};

/// [`Update::sgd`](crate::kernel::Update::sgd) on the host.
#[track_caller]
pub fn sgd<T: Element, D: Memory>(
    device: &D,
    op: &Sgd<T>,
    dw: View<'_, T, D>,
    mut weights: ViewMut<'_, T, D>,
    mut history: ViewMut<'_, T, D>,
) -> Result<()> {
    let _kernel = enter(device, "sgd", T::DTYPE.name())?;
    let (dw, weights) = (dw.host()?, weights.host_mut()?);
    host::sgd(device.workers(), op, dw, weights, history.host_mut()?)
}
