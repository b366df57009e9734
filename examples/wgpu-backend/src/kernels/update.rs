//! Solver updates.

use super::float;
use crate::{
    device::WgpuDevice,
    kernel::{EACH, Kernel},
};
use cortado::{
    Element, Result, View, ViewMut,
    kernel::{Update, fallback},
    op::{Regularization, SolverUpdate, UpdateRule},
};

const SGD: Kernel = Kernel {
    name: "sgd",
    reads: &["dw"],
    writes: &["weights", "history"],
    scalars: &["l1", "rate: f32", "momentum: f32", "decay: f32", "scale: f32"],
    body: &[include_str!("../shaders/sgd.wgsl"), EACH],
};

impl Update for WgpuDevice {
    fn solver_update<T: Element>(
        &self,
        op: &SolverUpdate<T>,
        dw: View<'_, T, Self>,
        mut weights: ViewMut<'_, T, Self>,
        masters: Option<ViewMut<'_, T::Acc, Self>>,
        history: &mut [ViewMut<'_, T::Acc, Self>],
    ) -> Result<()> {
        // SGD is the only update rule with a shader.
        let UpdateRule::Sgd { momentum } = op.rule else {
            return fallback::solver_update(self, op, dw, weights, masters, history);
        };
        let Some(_scope) = self.native::<T>("solver_update").filter(|_| masters.is_none()) else {
            return fallback::solver_update(self, op, dw, weights, masters, history);
        };
        op.check(weights.len(), dw.len(), None, history.iter().map(ViewMut::len))?;
        let launch = SGD.on(self).read(dw.device()?).write(weights.device_mut()?);
        launch
            .write(history[0].device_mut()?)
            .sizes([usize::from(op.regularization == Regularization::L1)])
            .floats([op.rate, momentum, op.decay, op.scale].map(float))
            .each(dw.len())
    }
}
