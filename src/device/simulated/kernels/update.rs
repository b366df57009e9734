//! Solver steps.

use crate::{
    device::SimulatedDevice,
    element::Element,
    error::Result,
    host,
    kernel::Update,
    memory::{View, ViewMut},
    op::SolverUpdate,
};

impl Update for SimulatedDevice {
    fn solver_update<T: Element>(
        &self,
        op: &SolverUpdate<T>,
        dw: View<'_, T, Self>,
        weights: ViewMut<'_, T, Self>,
        masters: Option<ViewMut<'_, T::Acc, Self>>,
        history: &mut [ViewMut<'_, T::Acc, Self>],
    ) -> Result<()> {
        let lengths = history.iter().map(ViewMut::len);
        op.check(weights.len(), dw.len(), masters.as_ref().map(ViewMut::len), lengths)?;
        let mut launch = self.launch::<T>("solver_update")?;
        let (op, dw, weights) = (*op, launch.reads(dw)?, launch.updates(weights)?);
        let masters = masters.map(|masters| launch.updates(masters)).transpose()?;
        let history = history.iter_mut().map(|history| launch.updates(history.reborrow()));
        let history = history.collect::<Result<Vec<_>>>()?;
        launch.queue(move |workers| {
            let mut masters = masters.as_ref().map(|masters| masters.write());
            let mut guards: Vec<_> = history.iter().map(|history| history.write()).collect();
            let mut history: Vec<&mut [T::Acc]> = guards.iter_mut().map(|h| &mut **h).collect();
            let masters = masters.as_deref_mut();
            host::solver_update(
                workers,
                &op,
                &dw.read(),
                &mut weights.write(),
                masters,
                &mut history,
            )
        })
    }
}
