//! Launches of solver updates.

use crate::{
    device::CudaDevice,
    element::Element,
    error::Result,
    kernel::Update,
    memory::{View, ViewMut},
    op::{Regularization, SolverUpdate, UpdateRule},
};
use num_traits::Zero;

/// Returns the kernel symbol of an update rule, and the constants `keep`, `keep2` and `delta`;
/// unused constants are 0.
fn symbol_and_constants<T: Element>(rule: UpdateRule<T>) -> (&'static str, [T::Acc; 3]) {
    let zero = T::Acc::zero();
    match rule {
        UpdateRule::Sgd { momentum } => ("sgd", [momentum, zero, zero]),
        UpdateRule::Nesterov { momentum } => ("nesterov", [momentum, zero, zero]),
        UpdateRule::AdaGrad { delta } => ("ada_grad", [zero, zero, delta]),
        UpdateRule::RmsProp { decay, delta } => ("rms_prop", [decay, zero, delta]),
        UpdateRule::AdaDelta { momentum, delta } => ("ada_delta", [momentum, zero, delta]),
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
        let (symbol, [keep, keep2, delta]) = symbol_and_constants::<T>(op.rule);
        let launch = self.variant::<T>(op.rule.kernel_name(), symbol)?.size(n);
        let launch = launch.arg([op.rate, op.scale, op.decay, keep, keep2, delta]);
        let launch = launch.arg(u32::from(op.regularization == Regularization::L1));
        let launch = launch.read(dw.device()?).write(weights.device_mut()?);
        let mut history = history.iter_mut();
        let launch = launch.write_optional(masters.as_mut())?.write_optional(history.next())?;
        launch.write_optional(history.next())?.grid_1d(n)
    }
}
