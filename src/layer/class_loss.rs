//! Losses of scores, or of probabilities, against labels.

use super::{Arity, Layer, LayerContext, PropagateDown, loss_common};
use crate::{
    blob::Blob,
    device::Device,
    element::Element,
    error::Result,
    op::{ClassLoss, ClassLossKind, LossNormalization},
    proto::{LayerParameter, hinge_loss_parameter::Norm},
};

/// A loss over N items, each of which has one label; its form alone tells it from others. Bottoms
/// are scores and labels.
pub struct ClassLossLayer {
    kind: &'static str,
    form: ClassLossKind,
}

impl ClassLossLayer {
    /// `HingeLoss`: `loss = Σ max(0, 1 ± x)ᵖ / N`, minus for the class of the label, plus for the
    /// others; p is 1 or, if `norm: L2`, 2.
    ///
    /// # Errors
    /// None; fallible as all makers are.
    #[doc(alias = "HingeLossLayer")]
    pub fn hinge<D: Device>(param: &LayerParameter, _: &LayerContext<'_, D>) -> Result<Self> {
        let form = match param.hinge_loss_param.unwrap_or_default().norm() {
            Norm::L1 => ClassLossKind::Hinge,
            Norm::L2 => ClassLossKind::SquaredHinge,
        };
        Ok(Self { kind: "HingeLoss", form })
    }

    /// `MultinomialLogisticLoss`: `loss = −Σ ln max(p[label], 1e-20) / N` of probabilities, such as a
    /// softmax gives.
    ///
    /// # Errors
    /// None; fallible as all makers are.
    #[doc(alias = "MultinomialLogisticLossLayer")]
    pub fn multinomial_logistic<D: Device>(
        _: &LayerParameter,
        _: &LayerContext<'_, D>,
    ) -> Result<Self> {
        Ok(Self { kind: "MultinomialLogisticLoss", form: ClassLossKind::Log })
    }

    fn op<T: Element, D: Device>(&self, scores: &Blob<T, D>) -> Result<ClassLoss> {
        let axis = loss_common::per_item_axis(scores.shape())?;
        let normalization = LossNormalization::BatchSize;
        Ok(ClassLoss { axis, form: self.form, ignore: None, normalization })
    }
}

impl<T: Element, D: Device> Layer<T, D> for ClassLossLayer {
    fn kind(&self) -> &'static str {
        self.kind
    }

    fn arity(&self) -> Arity {
        Arity::exactly(2, 1)
    }

    fn allow_force_backward(&self, bottom: usize) -> bool {
        bottom == 0
    }

    fn is_loss(&self) -> bool {
        true
    }

    fn reshape(&mut self, bottom: &[Blob<T, D>], top: &mut [Blob<T, D>]) -> Result<()> {
        let (scores, labels) = (bottom[0].shape(), bottom[1].shape());
        loss_common::expect_batch(scores, labels)?;
        loss_common::expect_labels(scores, labels, &loss_common::per_item_axis(scores)?)?;
        top[0].reshape(&[])
    }

    fn forward(&mut self, device: &D, bottom: &[Blob<T, D>], top: &[Blob<T, D>]) -> Result<()> {
        let (x, label, mut loss) = (bottom[0].data()?, bottom[1].data()?, top[0].data_mut()?);
        device.class_loss(&self.op(&bottom[0])?, x.view(), label.view(), None, loss.view_mut())
    }

    fn backward(
        &mut self,
        device: &D,
        top: &[Blob<T, D>],
        propagate: PropagateDown<'_>,
        bottom: &[Blob<T, D>],
    ) -> Result<()> {
        if propagate.bottom[1] {
            return Err(loss_common::no_gradient("labels", 1));
        }
        if !propagate.bottom[0] {
            return Ok(());
        }
        let (op, weight) = (self.op(&bottom[0])?, top[0].diff()?);
        let (x, label, mut dx) = (bottom[0].data()?, bottom[1].data()?, bottom[0].diff_mut()?);
        let (x, label) = (x.view(), label.view());
        device.class_loss_backward(&op, x, label, None, weight.view(), dx.view_mut())
    }
}
