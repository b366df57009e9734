//! Solver steps.

use crate::{
    device::CudaDevice,
    element::Element,
    error::Result,
    kernel::Update,
    memory::{View, ViewMut},
    op::{Regularization, SolverUpdate, UpdateRule},
};
use num_traits::Zero;

/// A rule's symbol and its constants: two shares that are kept, and delta.
fn rule<T: Element>(rule: UpdateRule<T>) -> (&'static str, [T::Acc; 3]) {
    let none = T::Acc::zero();
    match rule {
        UpdateRule::Sgd { momentum } => ("sgd", [momentum, none, none]),
        UpdateRule::Nesterov { momentum } => ("nesterov", [momentum, none, none]),
        UpdateRule::AdaGrad { delta } => ("ada_grad", [none, none, delta]),
        UpdateRule::RmsProp { decay, delta } => ("rms_prop", [decay, none, delta]),
        UpdateRule::AdaDelta { momentum, delta } => ("ada_delta", [momentum, none, delta]),
        UpdateRule::Adam { beta1, beta2, delta } => ("adam", [beta1, beta2, delta]),
    }
}

impl Update for CudaDevice {
    fn solver_update<T: Element>(
        &self,
        op: &SolverUpdate<T>,
        dw: View<'_, T, Self>,
        mut weights: ViewMut<'_, T, Self>,
        mut masters: Option<ViewMut<'_, T::Acc, Self>>,
        history: &mut [ViewMut<'_, T::Acc, Self>],
    ) -> Result<()> {
        let n = weights.len();
        let lengths = history.iter().map(ViewMut::len);
        op.check(n, dw.len(), masters.as_ref().map(ViewMut::len), lengths)?;
        let (symbol, [keep, keep2, delta]) = rule::<T>(op.rule);
        let launch = self.variant::<T>("solver_update", symbol)?.size(n);
        let launch = launch.arg([op.rate, op.scale, op.decay, keep, keep2, delta]);
        let launch = launch.arg(u32::from(op.regularization == Regularization::L1));
        let launch = launch.read(dw.device()?).write(weights.device_mut()?);
        let launch = match &mut masters {
            Some(masters) => launch.write(masters.device_mut()?),
            None => launch.none(),
        };
        let mut kept = history.iter_mut();
        let mut launch = launch;
        for _ in 0..2 {
            launch = match kept.next() {
                Some(kept) => launch.write(kept.device_mut()?),
                None => launch.none(),
            };
        }
        launch.grid_1d(n)
    }
}
