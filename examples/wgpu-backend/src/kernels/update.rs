//! Solver steps.

use super::float;
use crate::{
    device::WgpuDevice,
    kernel::{EACH, Kernel},
};
use cortado::{
    Element, Result, View, ViewMut,
    error::expect_len,
    kernel::{Update, fallback},
    op::{Regularization, Sgd},
};

const SGD: Kernel = Kernel {
    name: "sgd",
    reads: &["dw"],
    writes: &["weights", "history"],
    scalars: &["l1", "rate: f32", "momentum: f32", "decay: f32", "scale: f32"],
    body: &[include_str!("../shaders/sgd.wgsl"), EACH],
};

impl Update for WgpuDevice {
    fn sgd<T: Element>(
        &self,
        op: &Sgd<T>,
        dw: View<'_, T, Self>,
        mut weights: ViewMut<'_, T, Self>,
        mut history: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let Some(_running) = self.native::<T>("sgd") else {
            return fallback::sgd(self, op, dw, weights, history);
        };
        expect_len("sgd", "dw", weights.len(), dw.len())?;
        expect_len("sgd", "history", weights.len(), history.len())?;
        let launch = SGD.on(self).read(dw.device()?).write(weights.device_mut()?);
        launch
            .write(history.device_mut()?)
            .sizes([usize::from(op.regularization == Regularization::L1)])
            .floats([op.rate, op.momentum, op.decay, op.scale].map(float))
            .each(dw.len())
    }
}
