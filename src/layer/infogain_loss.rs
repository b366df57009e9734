//! The InfogainLoss layer: a multinomial logistic loss weighted by an infogain matrix.

use super::{loss_common, prelude::*};
use crate::{
    op::{Axis, ClassLoss, ClassLossKind, LossNormalization},
    proto::{self, BlobProto},
};

/// `loss = −Σ Σ H[label, k] · ln softmax(x)[k] / n`. The three bottoms hold the scores x, the
/// labels and the infogain matrix H. Without a third bottom, the layer reads the matrix H from the
/// file `source`. The optional second top holds the softmax of the scores.
///
/// ```
/// use cortado::{prelude::*, proto::parse_text};
///
/// let text = r#"
///     layer { type: "Input" top: "scores" input_param { shape { dim: 1 dim: 2 } } }
///     layer { type: "Input" top: "label" input_param { shape { dim: 1 } } }
///     layer { type: "Input" top: "H" input_param { shape { dim: 1 dim: 1 dim: 2 dim: 2 } } }
///     layer { type: "InfogainLoss" bottom: "scores" bottom: "label" bottom: "H" top: "loss" }"#;
/// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?)?;
/// net.blob("H").unwrap().data_mut()?.host_mut()?.copy_from_slice(&[4.0, 0.0, 0.0, 1.0]);
/// let loss = net.forward()?;
/// assert!((loss - 4.0 * 2_f64.ln()).abs() < 1e-6);
/// # Ok::<(), cortado::Error>(())
/// ```
pub struct InfogainLossLayer<T: Element> {
    axis: isize,
    ignore: Option<i64>,
    normalization: LossNormalization,
    matrix: Option<Blob<T>>,
    op: Option<ClassLoss>,
    probabilities: Blob<T>,
}

impl<T: Element> InfogainLossLayer<T> {
    /// Creates the layer.
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`] if the infogain matrix is missing, if `loss_param` sets
    /// `normalize`, or if the layer has two tops and no `loss_weight`. Returns an error if the
    /// matrix file `source` cannot be read.
    pub fn new(param: &LayerParameter, cx: &LayerContext<'_>) -> Result<Self> {
        let infogain = param.infogain_loss_param.clone().unwrap_or_default();
        let loss = param.loss_param.clone().unwrap_or_default();
        if loss.normalize.is_some() {
            return invalid("loss_param: normalize is not supported; use normalization");
        }
        if param.top.len() > 1 && param.loss_weight.is_empty() {
            return invalid("loss_weight: expected 2 values for 2 tops, found none");
        }
        let mut matrix = None;
        if param.bottom.len() < 3 {
            if infogain.source().is_empty() {
                let reason =
                    "the infogain matrix is missing; give a third bottom or the file `source`";
                return invalid(format!("infogain_loss_param: {reason}"));
            }
            let message: BlobProto = proto::read_binary(infogain.source())?;
            let mut blob = Blob::new(cx.device, &[0])?;
            blob.from_proto(&message, true).map_err(|error| error.context(infogain.source()))?;
            matrix = Some(blob);
        }
        Ok(Self {
            axis: infogain.axis() as isize,
            ignore: loss_common::ignore(&loss),
            normalization: loss_common::normalization(&loss, LossNormalization::Valid)?,
            matrix,
            op: None,
            probabilities: Blob::new(cx.device, &[0])?,
        })
    }

    /// Creates a layer that weights the loss of each label by the weight of its class: H is the
    /// diagonal matrix of the weights. `axis` is the class axis.
    pub(super) fn with_class_weights(
        weights: &[f32],
        axis: isize,
        ignore: Option<i64>,
        normalization: LossNormalization,
        cx: &LayerContext<'_>,
    ) -> Result<Self> {
        let matrix = Blob::new(cx.device, &[weights.len(), weights.len()])?;
        {
            let mut data = matrix.data_mut()?;
            let diagonal = data.host_mut()?.iter_mut().step_by(weights.len() + 1);
            diagonal.zip(weights).for_each(|(h, &weight)| *h = T::from_f64(weight.into()));
        }
        let matrix = Some(matrix);
        let probabilities = Blob::new(cx.device, &[0])?;
        Ok(Self { axis, ignore, normalization, matrix, op: None, probabilities })
    }

    /// Returns the infogain matrix H, which comes from the file `source` or from the third bottom.
    fn matrix<'a>(&'a self, bottom: &'a [Blob<T>]) -> Result<&'a Blob<T>> {
        let missing_matrix =
            || Error::InvalidData("the third bottom, the infogain matrix, is missing".into());
        self.matrix.as_ref().or(bottom.get(2)).ok_or_else(missing_matrix)
    }
}

impl<T: Element> Layer<T> for InfogainLossLayer<T> {
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

    fn reshape(&mut self, bottom: &[Blob<T>], top: &mut [Blob<T>]) -> Result<()> {
        let (scores, labels) = (bottom[0].shape(), bottom[1].shape());
        let axis = Axis::of(scores, self.axis)?;
        loss_common::check_batch(scores, labels)?;
        loss_common::check_labels(scores, labels, &axis)?;
        let (matrix, classes) = (self.matrix(bottom)?.shape(), axis.extent);
        if classes.checked_mul(classes) != Some(matrix.count()) {
            return wrong_shape(format!("expected shape [{classes}, {classes}], found {matrix}"));
        }
        let (ignore, normalization) = (self.ignore, self.normalization);
        let loss_kind = ClassLossKind::LogWithSoftmaxGradient;
        self.op = Some(ClassLoss { axis, kind: loss_kind, ignore, normalization });
        self.probabilities.reshape_like(&bottom[0])?;
        top[0].reshape(&[])?;
        let Some(probabilities) = top.get_mut(1) else { return Ok(()) };
        probabilities.reshape_like(&bottom[0])?;
        probabilities.share_data(&self.probabilities)
    }

    fn forward(&mut self, device: &AnyDevice, bottom: &[Blob<T>], top: &[Blob<T>]) -> Result<()> {
        let (op, matrix) = (reshaped(&self.op)?, self.matrix(bottom)?.data()?);
        let (x, label) = (bottom[0].data()?, bottom[1].data()?);
        let (mut p, mut loss) = (self.probabilities.data_mut()?, top[0].data_mut()?);
        device.softmax(&op.axis, x.view().into(), p.view_mut())?;
        device.class_loss(op, p.view(), label.view(), Some(matrix.view()), loss.view_mut())
    }

    fn backward(
        &mut self,
        device: &AnyDevice,
        top: &[Blob<T>],
        propagate: PropagateDown<'_>,
        bottom: &[Blob<T>],
    ) -> Result<()> {
        check_no_gradient(propagate.bottom, 1, "labels")?;
        check_no_gradient(propagate.bottom, 2, "matrix")?;
        let (op, matrix, weight) =
            (reshaped(&self.op)?, self.matrix(bottom)?.data()?, top[0].diff()?);
        let (p, label) = (self.probabilities.data()?, bottom[1].data()?);
        let (matrix, mut dx) = (Some(matrix.view()), bottom[0].diff_mut()?);
        let (p, label, weight) = (p.view(), label.view(), weight.view());
        device.class_loss_backward(op, p, label, matrix, weight, dx.view_mut())
    }
}
