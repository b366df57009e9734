//! Multinomial logistic loss whose mistakes are not all alike.

use super::{Arity, Layer, LayerContext, PropagateDown, loss_common};
use crate::{
    blob::Blob,
    device::Device,
    element::Element,
    error::{Error, Result},
    op::{Axis, ClassLoss, ClassLossKind, LossNormalization},
    proto::{self, BlobProto, LayerParameter},
};

/// `loss = −Σ Σ H[label, k] · ln softmax(x)[k] / n`: bottoms are scores, labels and, unless `source`
/// names a file with it, the matrix H. A second top has the softmax.
pub struct InfogainLossLayer<T: Element, D: Device> {
    axis: isize,
    ignore: Option<i64>,
    normalization: LossNormalization,
    /// H, if it comes from a file.
    matrix: Option<Blob<T, D>>,
    /// For the bottoms' present shapes.
    op: Option<ClassLoss>,
    probabilities: Blob<T, D>,
}

impl<T: Element, D: Device> InfogainLossLayer<T, D> {
    /// From the layer's parameters.
    ///
    /// # Errors
    /// [`Error::InvalidData`] without a matrix, for the older `normalize`, which this loss never had,
    /// or if there are two tops and no `loss_weight`; those of the file.
    pub fn new(param: &LayerParameter, cx: &LayerContext<'_, D>) -> Result<Self> {
        let infogain = param.infogain_loss_param.clone().unwrap_or_default();
        let loss = param.loss_param.unwrap_or_default();
        if loss.normalize.is_some() {
            return Err(Error::InvalidData("loss_param: give normalization, not normalize".into()));
        }
        if param.top.len() > 1 && param.loss_weight.is_empty() {
            return Err(Error::InvalidData("two tops need a loss_weight each".into()));
        }
        let mut matrix = None;
        if param.bottom.len() < 3 {
            if infogain.source().is_empty() {
                let why = "needs the matrix, as a third bottom or from the file `source` names";
                return Err(Error::InvalidData(format!("infogain_loss_param {why}")));
            }
            let message: BlobProto = proto::read_binary(infogain.source())?;
            let mut blob = Blob::new(cx.device, &[0])?;
            blob.from_proto(&message, true).map_err(|error| error.context(infogain.source()))?;
            matrix = Some(blob);
        }
        Ok(Self {
            axis: infogain.axis() as isize,
            ignore: loss_common::ignore(&loss),
            normalization: loss_common::normalization(&loss, LossNormalization::Valid),
            matrix,
            op: None,
            probabilities: Blob::new(cx.device, &[0])?,
        })
    }

    fn op(&self) -> Result<&ClassLoss> {
        self.op.as_ref().ok_or_else(loss_common::not_reshaped_error)
    }

    /// H, wherever it comes from.
    fn matrix<'a>(&'a self, bottom: &'a [Blob<T, D>]) -> Result<&'a Blob<T, D>> {
        self.matrix.as_ref().or(bottom.get(2)).ok_or_else(loss_common::not_reshaped_error)
    }
}

impl<T: Element, D: Device> Layer<T, D> for InfogainLossLayer<T, D> {
    fn kind(&self) -> &'static str {
        "InfogainLoss"
    }

    fn arity(&self) -> Arity {
        Arity::between(2..=3, 1..=2)
    }

    fn allow_force_backward(&self, bottom: usize) -> bool {
        bottom != 1
    }

    fn is_loss(&self) -> bool {
        true
    }

    fn reshape(&mut self, bottom: &[Blob<T, D>], top: &mut [Blob<T, D>]) -> Result<()> {
        let (scores, labels) = (bottom[0].shape(), bottom[1].shape());
        let axis = Axis::of(scores, self.axis)?;
        loss_common::expect_batch(scores, labels)?;
        loss_common::expect_labels(scores, labels, &axis)?;
        let (matrix, classes) = (self.matrix(bottom)?.shape(), axis.extent);
        if classes.checked_mul(classes) != Some(matrix.count()) {
            let why =
                format!("a matrix {matrix} for {classes} classes, not {classes} by {classes}");
            return Err(Error::Shape(why));
        }
        let (ignore, normalization) = (self.ignore, self.normalization);
        let form = ClassLossKind::LogWithSoftmaxGradient;
        self.op = Some(ClassLoss { axis, form, ignore, normalization });
        self.probabilities.reshape_like(&bottom[0])?;
        top[0].reshape(&[])?;
        let Some(probabilities) = top.get_mut(1) else { return Ok(()) };
        probabilities.reshape_like(&bottom[0])?;
        probabilities.share_data(&self.probabilities)
    }

    fn forward(&mut self, device: &D, bottom: &[Blob<T, D>], top: &[Blob<T, D>]) -> Result<()> {
        let (op, matrix) = (self.op()?, self.matrix(bottom)?.data()?);
        let (x, label) = (bottom[0].data()?, bottom[1].data()?);
        let (mut p, mut loss) = (self.probabilities.data_mut()?, top[0].data_mut()?);
        device.softmax(&op.axis, x.view().into(), p.view_mut())?;
        device.class_loss(op, p.view(), label.view(), Some(matrix.view()), loss.view_mut())
    }

    fn backward(
        &mut self,
        device: &D,
        top: &[Blob<T, D>],
        propagate: PropagateDown<'_>,
        bottom: &[Blob<T, D>],
    ) -> Result<()> {
        for (i, what) in [(1, "labels"), (2, "matrix")] {
            if propagate.bottom.get(i) == Some(&true) {
                return Err(loss_common::no_gradient(what, i));
            }
        }
        if !propagate.bottom[0] {
            return Ok(());
        }
        let (op, matrix, weight) = (self.op()?, self.matrix(bottom)?.data()?, top[0].diff()?);
        let (p, label) = (self.probabilities.data()?, bottom[1].data()?);
        let (matrix, mut dx) = (Some(matrix.view()), bottom[0].diff_mut()?);
        let (p, label, weight) = (p.view(), label.view(), weight.view());
        device.class_loss_backward(op, p, label, matrix, weight, dx.view_mut())
    }
}
