//! Solver steps.

use crate::{
    device::CudaDevice,
    element::Element,
    error::Result,
    kernel::Update,
    memory::{View, ViewMut},
    op::{Descent, Regularization, Rule},
};
use num_traits::Zero;

/// A rule's symbol and its constants: two shares that are kept, and delta.
fn rule<T: Element>(rule: Rule<T>) -> (&'static str, [T::Acc; 3]) {
    let none = T::Acc::zero();
    match rule {
        Rule::Sgd { momentum } => ("sgd", [momentum, none, none]),
        Rule::Nesterov { momentum } => ("nesterov", [momentum, none, none]),
        Rule::AdaGrad { delta } => ("ada_grad", [none, none, delta]),
        Rule::RmsProp { decay, delta } => ("rms_prop", [decay, none, delta]),
        Rule::AdaDelta { momentum, delta } => ("ada_delta", [momentum, none, delta]),
        Rule::Adam { beta1, beta2, delta } => ("adam", [beta1, beta2, delta]),
    }
}

impl Update for CudaDevice {
    fn descend<T: Element>(
        &self,
        op: &Descent<T>,
        dw: View<'_, T, Self>,
        mut weights: ViewMut<'_, T, Self>,
        mut masters: Option<ViewMut<'_, T::Acc, Self>>,
        history: &mut [ViewMut<'_, T::Acc, Self>],
    ) -> Result<()> {
        let n = weights.len();
        let lengths = history.iter().map(ViewMut::len);
        op.check(n, dw.len(), masters.as_ref().map(ViewMut::len), lengths)?;
        let (symbol, [keep, keep2, delta]) = rule::<T>(op.rule);
        let launch = self.variant::<T>("descend", symbol)?.size(n);
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
        launch.each(n)
    }
}
