//! Solver steps.

use crate::{
    device::MirrorDevice,
    element::Element,
    error::{Result, expect_len},
    host,
    kernel::Update,
    memory::{View, ViewMut},
    op::Sgd,
};

impl Update for MirrorDevice {
    fn sgd<T: Element>(
        &self,
        op: &Sgd<T>,
        dw: View<'_, T, Self>,
        weights: ViewMut<'_, T, Self>,
        history: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        expect_len("sgd", "dw", weights.len(), dw.len())?;
        expect_len("sgd", "history", weights.len(), history.len())?;
        let mut launch = self.launch::<T>("sgd")?;
        let (op, dw) = (*op, launch.reads(dw)?);
        let (weights, history) = (launch.updates(weights)?, launch.updates(history)?);
        launch.queue(move |workers| {
            host::sgd(workers, &op, &dw.read(), &mut weights.write(), &mut history.write())
        })
    }
}
