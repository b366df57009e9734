//! Mutants with bugs in losses and solver updates.

use crate::{
    bug::Bug,
    device::Mutant,
    sizes::{BITS_16, BITS_20, stop, wrap},
};
use cortado::{
    Element, Result, View, ViewMut,
    kernel::{Losses, Update, fallback},
    op::{
        Accuracy, Axis, ClassLoss, ClassLossKind, ElementwiseLoss, LossNormalization,
        Regularization, SoftmaxLoss, SolverUpdate, UpdateRule,
    },
};
use num_traits::Float;

/// Returns `ignore`, the label that a kernel ignores, if it is not a class, else `None`. Kernels
/// return an error for a label that is neither ignored nor a class.
fn without_classes(ignore: Option<i64>, axis: &Axis) -> Option<i64> {
    ignore.filter(|&label| label < 0 || label >= axis.extent as i64)
}

/// Limits an axis to its first 2¹⁶ rows, for kernels that skip the rows after them.
fn first_rows(axis: Axis) -> Axis {
    Axis { outer: axis.outer.min(BITS_16), ..axis }
}

/// Replaces a loss of NaN by the softmax loss of the probability 0.
fn hide_nan<T: Element>(mut loss: ViewMut<'_, T, Mutant>) -> Result<()> {
    let loss = loss.host_mut()?;
    if loss[0].to_f64().is_nan() {
        loss[0] = T::from_f64(87.3);
    }
    Ok(())
}

impl Losses for Mutant {
    fn softmax_loss<T: Element>(
        &self,
        op: &SoftmaxLoss,
        p: View<'_, T, Self>,
        label: View<'_, T, Self>,
        loss: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let mut op = *op;
        match (self.bug, op.normalization) {
            (Bug::LossCountsIgnored, _) => op.ignore = without_classes(op.ignore, &op.axis),
            (Bug::LossDividesByAll, LossNormalization::Valid) => {
                op.normalization = LossNormalization::Full;
            }
            _ => {}
        }
        if self.is(Bug::LossStops) && op.axis.outer > BITS_16 {
            op.axis = first_rows(op.axis);
            let (p, label) = (p.slice(0..op.axis.count())?, label.slice(0..op.axis.outer)?);
            return fallback::softmax_loss(self, &op, p, label, loss);
        }
        let mut loss = loss;
        fallback::softmax_loss(self, &op, p, label, loss.reborrow())?;
        if self.is(Bug::LossHidesNan) { hide_nan(loss) } else { Ok(()) }
    }

    fn softmax_loss_backward<T: Element>(
        &self,
        op: &SoftmaxLoss,
        p: View<'_, T, Self>,
        label: View<'_, T, Self>,
        scale: View<'_, T, Self>,
        dx: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        if self.is(Bug::LossGradientStops) && op.axis.outer > BITS_16 {
            let (mut dx, old) = (dx, vec![T::default(); op.axis.count()]);
            fallback::softmax_loss_backward(self, op, p, label, scale, dx.reborrow())?;
            stop(dx.host_mut()?, &old, BITS_16 * op.axis.extent * op.axis.inner);
            return Ok(());
        }
        let one = self.scratch(&[T::from_f64(1.0)])?;
        let ignores_scale = self.is(Bug::LossIgnoresScale) && scale.len() == 1;
        let scale = if ignores_scale { View::new(&one, 1)? } else { scale };
        fallback::softmax_loss_backward(self, op, p, label, scale, dx)
    }

    fn accuracy<T: Element>(
        &self,
        op: &Accuracy,
        scores: View<'_, T, Self>,
        label: View<'_, T, Self>,
        y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let mut op = *op;
        if self.is(Bug::AccuracyCountsIgnored) {
            op.ignore = without_classes(op.ignore, &op.axis);
        }
        if self.is(Bug::AccuracyStops) && op.axis.outer > BITS_16 {
            op.axis = first_rows(op.axis);
            let label = label.slice(0..op.axis.outer)?;
            return fallback::accuracy(self, &op, scores.slice(0..op.axis.count())?, label, y);
        }
        fallback::accuracy(self, &op, scores, label, y)
    }

    fn accuracy_by_class<T: Element>(
        &self,
        op: &Accuracy,
        scores: View<'_, T, Self>,
        label: View<'_, T, Self>,
        y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let mut op = *op;
        if self.is(Bug::ByClassCountsIgnored) {
            op.ignore = without_classes(op.ignore, &op.axis);
        }
        if self.is(Bug::ByClassStops) && op.axis.outer > BITS_16 {
            op.axis = first_rows(op.axis);
            let (count, rows) = (op.axis.count(), op.axis.outer);
            let (scores, label) = (scores.slice(0..count)?, label.slice(0..rows)?);
            return fallback::accuracy_by_class(self, &op, scores, label, y);
        }
        fallback::accuracy_by_class(self, &op, scores, label, y)
    }

    fn class_loss<T: Element>(
        &self,
        op: &ClassLoss,
        x: View<'_, T, Self>,
        label: View<'_, T, Self>,
        matrix: Option<View<'_, T, Self>>,
        loss: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let is_valid = matrix.is_some_and(|matrix| matrix.len() == op.axis.extent.pow(2));
        let is_log = matches!(op.kind, ClassLossKind::Log | ClassLossKind::LogWithSoftmaxGradient);
        let ignores_matrix = self.is(Bug::MatrixIgnored) && is_valid && is_log;
        if self.is(Bug::ClassLossStops) && op.axis.outer > BITS_16 {
            let op = ClassLoss { axis: first_rows(op.axis), ..*op };
            let (x, label) = (x.slice(0..op.axis.count())?, label.slice(0..op.axis.outer)?);
            return fallback::class_loss(self, &op, x, label, matrix, loss);
        }
        let mut loss = loss;
        fallback::class_loss(
            self,
            op,
            x,
            label,
            matrix.filter(|_| !ignores_matrix),
            loss.reborrow(),
        )?;
        if self.is(Bug::ClassLossHidesNan) { hide_nan(loss) } else { Ok(()) }
    }

    fn class_loss_backward<T: Element>(
        &self,
        op: &ClassLoss,
        x: View<'_, T, Self>,
        label: View<'_, T, Self>,
        matrix: Option<View<'_, T, Self>>,
        scale: View<'_, T, Self>,
        mut dx: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let wrong_kind = match op.kind {
            ClassLossKind::Log if self.is(Bug::GradientOfScores) => {
                ClassLossKind::LogWithSoftmaxGradient
            }
            wrong_kind => wrong_kind,
        };
        fallback::class_loss_backward(
            self,
            &ClassLoss { kind: wrong_kind, ..*op },
            x,
            label,
            matrix,
            scale,
            dx.reborrow(),
        )?;
        if self.is(Bug::ClassGradientWraps) {
            wrap(dx.host_mut()?, BITS_16 * op.axis.extent * op.axis.inner);
        }
        Ok(())
    }

    fn elementwise_loss<T: Element>(
        &self,
        op: &ElementwiseLoss<T::Acc>,
        x: View<'_, T, Self>,
        t: View<'_, T, Self>,
        loss: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        if self.is(Bug::TargetsStop) && x.len() > BITS_20 {
            let op = ElementwiseLoss { batch: BITS_20, item_len: 1, ..*op };
            let (x, t) = (x.slice(0..BITS_20)?, t.slice(0..BITS_20)?);
            return fallback::elementwise_loss(self, &op, x, t, loss);
        }
        if self.is(Bug::LossOfItself) && std::ptr::eq(x.host()?, t.host()?) {
            return fallback::fill(self, T::from_f64(1.0), loss);
        }
        let ignore = op.ignore.filter(|_| !self.is(Bug::TargetsCountIgnored));
        let mut loss = loss;
        fallback::elementwise_loss(
            self,
            &ElementwiseLoss { ignore, ..*op },
            x,
            t,
            loss.reborrow(),
        )?;
        if self.is(Bug::ElementwiseLossHidesNan) { hide_nan(loss) } else { Ok(()) }
    }

    fn elementwise_loss_backward<T: Element>(
        &self,
        op: &ElementwiseLoss<T::Acc>,
        x: View<'_, T, Self>,
        t: View<'_, T, Self>,
        scale: View<'_, T, Self>,
        mut dx: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let normalization = match op.normalization {
            LossNormalization::Valid if self.is(Bug::TargetsDivideByAll) => LossNormalization::Full,
            normalization => normalization,
        };
        let op = ElementwiseLoss { normalization, ..*op };
        fallback::elementwise_loss_backward(self, &op, x, t, scale, dx.reborrow())?;
        if self.is(Bug::TargetsWrap) {
            wrap(dx.host_mut()?, BITS_20);
        }
        Ok(())
    }
}

impl Update for Mutant {
    fn solver_update<T: Element>(
        &self,
        op: &SolverUpdate<T>,
        dw: View<'_, T, Self>,
        mut weights: ViewMut<'_, T, Self>,
        mut masters: Option<ViewMut<'_, T::Acc, Self>>,
        history: &mut [ViewMut<'_, T::Acc, Self>],
    ) -> Result<()> {
        let mut op = *op;
        if self.is(Bug::MastersAnyLength) {
            masters = masters.filter(|masters| masters.len() == weights.len());
        }
        op.check(
            weights.len(),
            dw.len(),
            masters.as_ref().map(ViewMut::len),
            history.iter().map(ViewMut::len),
        )?;
        match (self.bug, &mut op.rule) {
            (Bug::SgdRateAfterMomentum, UpdateRule::Sgd { momentum }) => {
                *momentum = *momentum * op.rate
            }
            (Bug::L1IsL2, _) => op.regularization = Regularization::L2,
            (Bug::MastersIgnored, _) => masters = None,
            (Bug::MastersOverrideWeights, _) => {
                if let Some(masters) = &mut masters {
                    let rounded_weights =
                        masters.host_mut()?.iter().map(|&master| T::from_acc(master));
                    weights.host_mut()?.iter_mut().zip(rounded_weights).for_each(|(w, m)| *w = m);
                }
            }
            (Bug::NesterovIsSgd, &mut UpdateRule::Nesterov { momentum }) => {
                op.rule = UpdateRule::Sgd { momentum };
            }
            (Bug::AdaGradDropsDelta, UpdateRule::AdaGrad { delta }) => *delta = T::acc(0.0),
            (Bug::RmsPropSums, &mut UpdateRule::RmsProp { delta, .. }) => {
                op.rule = UpdateRule::AdaGrad { delta };
            }
            (Bug::AdaDeltaSwaps, UpdateRule::AdaDelta { .. }) => history.reverse(),
            (Bug::AdamSwapsBetas, UpdateRule::Adam { beta1, beta2, .. }) => {
                std::mem::swap(beta1, beta2)
            }
            _ => {}
        }
        let old = weights.as_view().host()?.to_vec();
        fallback::solver_update(self, &op, dw, weights.reborrow(), masters, history)?;
        match self.bug {
            Bug::UpdateStops => stop(weights.host_mut()?, &old, BITS_20),
            Bug::UpdateSkipsNan => {
                let pairs = weights.host_mut()?.iter_mut().zip(old);
                pairs.filter(|(w, _)| w.to_acc().is_nan()).for_each(|(w, old)| *w = old);
            }
            _ => {}
        }
        Ok(())
    }
}
