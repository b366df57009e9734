//! Cross entropy of the sigmoid of scores, each by itself.

use super::{Arity, Layer, LayerContext, PropagateDown, loss_common};
use crate::{
    blob::Blob,
    device::Device,
    element::Element,
    error::{Error, Result},
    op::{ElementwiseLoss, ElementwiseLossKind, LossNormalization},
    proto::LayerParameter,
};

/// `loss = Σ (ln(1 + eˣ) − t·x) / n`: bottoms are scores and targets, which are probabilities.
///
/// Divides by the batch size unless told otherwise. A target is compared with `ignore_label` without
/// its fraction, as in Caffe.
pub struct SigmoidCrossEntropyLossLayer {
    ignore: Option<i64>,
    normalization: LossNormalization,
}

impl SigmoidCrossEntropyLossLayer {
    /// From the layer's parameters.
    ///
    /// # Errors
    /// None; fallible as all makers are.
    pub fn new<D: Device>(param: &LayerParameter, _: &LayerContext<'_, D>) -> Result<Self> {
        let loss = param.loss_param.unwrap_or_default();
        let normalization = loss_common::normalization(&loss, LossNormalization::BatchSize);
        Ok(Self { ignore: loss_common::ignore(&loss), normalization })
    }

    fn op<T: Element, D: Device>(&self, scores: &Blob<T, D>) -> Result<ElementwiseLoss<T::Acc>> {
        let items = loss_common::per_item_axis(scores.shape())?;
        Ok(ElementwiseLoss {
            form: ElementwiseLossKind::SigmoidCrossEntropy,
            batch: items.outer,
            each: items.extent,
            ignore: self.ignore,
            normalization: self.normalization,
        })
    }
}

impl<T: Element, D: Device> Layer<T, D> for SigmoidCrossEntropyLossLayer {
    fn kind(&self) -> &'static str {
        "SigmoidCrossEntropyLoss"
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
        let (scores, targets) = (bottom[0].shape(), bottom[1].shape());
        loss_common::expect_batch(scores, targets)?;
        if scores.count() != targets.count() {
            let why = format!("targets {targets} for scores {scores}: they differ in count");
            return Err(Error::Shape(why));
        }
        top[0].reshape(&[])
    }

    fn forward(&mut self, device: &D, bottom: &[Blob<T, D>], top: &[Blob<T, D>]) -> Result<()> {
        let (x, t, mut loss) = (bottom[0].data()?, bottom[1].data()?, top[0].data_mut()?);
        device.elementwise_loss(&self.op(&bottom[0])?, x.view(), t.view(), loss.view_mut())
    }

    fn backward(
        &mut self,
        device: &D,
        top: &[Blob<T, D>],
        propagate: PropagateDown<'_>,
        bottom: &[Blob<T, D>],
    ) -> Result<()> {
        if propagate.bottom[1] {
            return Err(loss_common::no_gradient("targets", 1));
        }
        if !propagate.bottom[0] {
            return Ok(());
        }
        let (op, weight) = (self.op(&bottom[0])?, top[0].diff()?);
        let (x, t, mut dx) = (bottom[0].data()?, bottom[1].data()?, bottom[0].diff_mut()?);
        device.elementwise_loss_backward(&op, x.view(), t.view(), weight.view(), dx.view_mut())
    }
}
