//! The SigmoidCrossEntropyLoss layer: cross entropy of the sigmoid of each score.

use super::{loss_common, prelude::*};
use crate::op::{ElementwiseLoss, ElementwiseLossKind, LossNormalization};

/// `loss = Σ (ln(1 + eˣ) − t·x) / n`. The first bottom holds the scores x, and the second bottom
/// holds the target probabilities t.
///
/// By default, the divisor n of the loss is the batch size. As in Caffe, the layer truncates each
/// target to an integer before the comparison with `ignore_label`.
///
/// ```
/// use cortado::{prelude::*, proto::parse_text};
///
/// let text = r#"
///     layer { type: "Input" top: "x" input_param { shape { dim: 1 dim: 2 } } }
///     layer { type: "Input" top: "t" input_param { shape { dim: 1 dim: 2 } } }
///     layer { type: "SigmoidCrossEntropyLoss" bottom: "x" bottom: "t" top: "loss" }"#;
/// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?)?;
/// net.blob("t").unwrap().data_mut()?.host_mut()?.copy_from_slice(&[1.0, 0.0]);
/// let loss = net.forward()?;
/// assert!((loss - 2.0 * 2_f64.ln()).abs() < 1e-6);
/// # Ok::<(), cortado::Error>(())
/// ```
pub struct SigmoidCrossEntropyLossLayer {
    ignore: Option<i64>,
    normalization: LossNormalization,
}

impl SigmoidCrossEntropyLossLayer {
    /// Creates the layer.
    pub fn new(param: &LayerParameter, _: &LayerContext<'_>) -> Result<Self> {
        let loss = param.loss_param.clone().unwrap_or_default();
        let normalization = loss_common::normalization(&loss, LossNormalization::BatchSize)?;
        Ok(Self { ignore: loss_common::ignore(&loss), normalization })
    }

    fn op<T: Element>(&self, scores: &Blob<T>) -> Result<ElementwiseLoss<T::Acc>> {
        let items = per_item_axis(scores.shape())?;
        Ok(ElementwiseLoss {
            kind: ElementwiseLossKind::SigmoidCrossEntropy,
            batch: items.outer,
            item_len: items.extent,
            ignore: self.ignore,
            normalization: self.normalization,
        })
    }
}

impl<T: Element> Layer<T> for SigmoidCrossEntropyLossLayer {
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

    fn reshape(&mut self, bottom: &[Blob<T>], top: &mut [Blob<T>]) -> Result<()> {
        let (scores, targets) = (bottom[0].shape(), bottom[1].shape());
        loss_common::check_batch(scores, targets)?;
        if scores.count() != targets.count() {
            return wrong_shape(format!("targets {targets} and scores {scores} differ in size"));
        }
        top[0].reshape(&[])
    }

    fn forward(&mut self, device: &AnyDevice, bottom: &[Blob<T>], top: &[Blob<T>]) -> Result<()> {
        let (x, t, mut loss) = (bottom[0].data()?, bottom[1].data()?, top[0].data_mut()?);
        device.elementwise_loss(&self.op(&bottom[0])?, x.view(), t.view(), loss.view_mut())
    }

    fn backward(
        &mut self,
        device: &AnyDevice,
        top: &[Blob<T>],
        propagate: PropagateDown<'_>,
        bottom: &[Blob<T>],
    ) -> Result<()> {
        check_no_gradient(propagate.bottom, 1, "targets")?;
        let (op, weight) = (self.op(&bottom[0])?, top[0].diff()?);
        let (x, t, mut dx) = (bottom[0].data()?, bottom[1].data()?, bottom[0].diff_mut()?);
        device.elementwise_loss_backward(&op, x.view(), t.view(), weight.view(), dx.view_mut())
    }
}
