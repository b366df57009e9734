//! The HingeLoss and MultinomialLogisticLoss layers.

use super::{loss_common, prelude::*};
use crate::{
    op::{ClassLoss, ClassLossKind, LossNormalization},
    proto::hinge_loss_parameter::Norm,
};

/// A classification loss over N items with one label each. The first bottom holds class scores or
/// probabilities, and the second bottom holds labels.
///
/// ```
/// use cortado::{prelude::*, proto::parse_text};
///
/// let text = r#"
///     layer { type: "Input" top: "scores" input_param { shape { dim: 1 dim: 3 } } }
///     layer { type: "Input" top: "label" input_param { shape { dim: 1 } } }
///     layer { type: "HingeLoss" bottom: "scores" bottom: "label" top: "loss" }"#;
/// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?)?;
/// net.blob("scores").unwrap().data_mut()?.host_mut()?.copy_from_slice(&[2.0, -3.0, 0.5]);
/// net.blob("label").unwrap().data_mut()?.host_mut()?.copy_from_slice(&[0.0]);
/// let loss = net.forward()?;
/// assert_eq!(loss, 1.5); // only the third score is above −1
/// # Ok::<(), cortado::Error>(())
/// ```
pub struct ClassLossLayer {
    kind: &'static str,
    loss_kind: ClassLossKind,
}

impl ClassLossLayer {
    /// Creates a layer of type `HingeLoss`, which computes `loss = Σ max(0, 1 ± x)ᵖ / N`. The sign
    /// before the score x is minus for the class of the label and plus for all other classes. The
    /// power p is 1 if the field `norm` is `L1`, and 2 if `norm` is `L2`.
    #[doc(alias = "HingeLossLayer")]
    pub fn hinge(param: &LayerParameter, _: &LayerContext<'_>) -> Result<Self> {
        let loss_kind = match param.hinge_loss_param.unwrap_or_default().norm() {
            Norm::L1 => ClassLossKind::Hinge,
            Norm::L2 => ClassLossKind::SquaredHinge,
        };
        Ok(Self { kind: "HingeLoss", loss_kind })
    }

    /// Creates a layer of type `MultinomialLogisticLoss`, which computes `loss = −Σ ln
    /// max(p[label], 1e-20) / N`, where p holds class probabilities, such as the outputs of a
    /// softmax.
    #[doc(alias = "MultinomialLogisticLossLayer")]
    pub fn multinomial_logistic(_: &LayerParameter, _: &LayerContext<'_>) -> Result<Self> {
        Ok(Self { kind: "MultinomialLogisticLoss", loss_kind: ClassLossKind::Log })
    }

    fn op<T: Element>(&self, scores: &Blob<T>) -> Result<ClassLoss> {
        let axis = per_item_axis(scores.shape())?;
        let normalization = LossNormalization::BatchSize;
        Ok(ClassLoss { axis, kind: self.loss_kind, ignore: None, normalization })
    }
}

impl<T: Element> Layer<T> for ClassLossLayer {
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

    fn reshape(&mut self, bottom: &[Blob<T>], top: &mut [Blob<T>]) -> Result<()> {
        let (scores, labels) = (bottom[0].shape(), bottom[1].shape());
        loss_common::check_batch(scores, labels)?;
        loss_common::check_labels(scores, labels, &per_item_axis(scores)?)?;
        top[0].reshape(&[])
    }

    fn forward(&mut self, device: &AnyDevice, bottom: &[Blob<T>], top: &[Blob<T>]) -> Result<()> {
        let (x, label, mut loss) = (bottom[0].data()?, bottom[1].data()?, top[0].data_mut()?);
        device.class_loss(&self.op(&bottom[0])?, x.view(), label.view(), None, loss.view_mut())
    }

    fn backward(
        &mut self,
        device: &AnyDevice,
        top: &[Blob<T>],
        propagate: PropagateDown<'_>,
        bottom: &[Blob<T>],
    ) -> Result<()> {
        check_no_gradient(propagate.bottom, 1, "labels")?;
        let (op, weight) = (self.op(&bottom[0])?, top[0].diff()?);
        let (x, label, mut dx) = (bottom[0].data()?, bottom[1].data()?, bottom[0].diff_mut()?);
        let (x, label) = (x.view(), label.view());
        device.class_loss_backward(&op, x, label, None, weight.view(), dx.view_mut())
    }
}
