//! The ContrastiveLoss layer, for pairs of feature vectors.

use super::{loss_common, prelude::*};
use crate::{
    op::{Axis, Binary, ElementwiseLoss, ElementwiseLossKind, LossNormalization, Reduce},
    proto::ContrastiveLossParameter,
};

/// `loss = Σ (s·d² + (1 − s)·max(0, margin − d)²) / 2N` over N pairs of feature vectors. In the
/// formula, d is the Euclidean distance between the two vectors of a pair, and s is 1 for similar
/// pairs and 0 for dissimilar pairs. The first two bottoms hold the first and the second vectors of
/// the pairs, and the third bottom holds the values s.
///
/// With `legacy_version`, a dissimilar pair contributes `max(0, margin − d²)` to the sum. The
/// contrastive loss was introduced by Hadsell, Chopra and LeCun (2006).
///
/// ```
/// use cortado::{prelude::*, proto::parse_text};
///
/// let text = r#"
///     layer { type: "Input" top: "a" input_param { shape { dim: 2 dim: 1 } } }
///     layer { type: "Input" top: "b" input_param { shape { dim: 2 dim: 1 } } }
///     layer { type: "Input" top: "similar" input_param { shape { dim: 2 } } }
///     layer { type: "ContrastiveLoss" bottom: "a" bottom: "b" bottom: "similar" top: "loss" }"#;
/// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?)?;
/// net.blob("a").unwrap().data_mut()?.host_mut()?.copy_from_slice(&[3.0, 0.5]);
/// net.blob("similar").unwrap().data_mut()?.host_mut()?.copy_from_slice(&[1.0, 0.0]);
/// let loss = net.forward()?;
/// assert_eq!(loss, (9.0 + 0.25) / 4.0);
/// # Ok::<(), cortado::Error>(())
/// ```
pub struct ContrastiveLossLayer<T: Element> {
    param: ContrastiveLossParameter,
    difference: Blob<T>,
    /// Blob whose data hold the squared distance of each pair, and whose diff holds the derivative
    /// of the loss with respect to the squared distance.
    distance: Blob<T>,
}

impl<T: Element> ContrastiveLossLayer<T> {
    /// Creates the layer.
    pub fn new(param: &LayerParameter, cx: &LayerContext<'_>) -> Result<Self> {
        Ok(Self {
            param: param.contrastive_loss_param.unwrap_or_default(),
            difference: Blob::new(cx.device, &[0])?,
            distance: Blob::new(cx.device, &[0])?,
        })
    }

    /// Returns the descriptor of the contrastive loss as a function of the squared distances.
    fn op(&self) -> ElementwiseLoss<T::Acc> {
        let margin = T::acc(self.param.margin().into());
        let loss_kind = match self.param.legacy_version() {
            false => ElementwiseLossKind::Contrastive { margin },
            true => ElementwiseLossKind::ContrastiveLegacy { margin },
        };
        let normalization = LossNormalization::BatchSize;
        ElementwiseLoss {
            kind: loss_kind,
            batch: self.distance.count(),
            item_len: 1,
            ignore: None,
            normalization,
        }
    }
}

impl<T: Element> Layer<T> for ContrastiveLossLayer<T> {
    fn kind(&self) -> &'static str {
        "ContrastiveLoss"
    }

    fn arity(&self) -> Arity {
        Arity::exactly(3, 1)
    }

    fn allow_force_backward(&self, bottom: usize) -> bool {
        bottom != 2
    }

    fn is_loss(&self) -> bool {
        true
    }

    fn reshape(&mut self, bottom: &[Blob<T>], top: &mut [Blob<T>]) -> Result<()> {
        let (a, b, similar) = (bottom[0].shape(), bottom[1].shape(), bottom[2].shape());
        loss_common::check_batch(a, b)?;
        loss_common::check_batch(a, similar)?;
        if bottom[0].channels()? != bottom[1].channels()? {
            return wrong_shape(format!("features of shapes {a} and {b} differ in length"));
        }
        // In the first bottom, all axes after the second must have extent 1.
        let items = per_item_axis(a)?;
        if items.extent != bottom[0].channels()? || items.count() != b.count() {
            return wrong_shape(format!("features of shapes {a} and {b} are not vectors"));
        }
        loss_common::check_labels(a, similar, &items)?;
        self.difference.reshape(a)?;
        self.distance.reshape(&a[..1])?;
        top[0].reshape(&[])
    }

    fn forward(&mut self, device: &AnyDevice, bottom: &[Blob<T>], top: &[Blob<T>]) -> Result<()> {
        let (a, b, similar) = (bottom[0].data()?, bottom[1].data()?, bottom[2].data()?);
        let (op, axis) = (self.op(), per_item_axis(bottom[0].shape())?);
        let (mut difference, mut distance) =
            (self.difference.data_mut()?, self.distance.data_mut()?);
        device.binary(Binary::Sub, a.view().into(), b.view(), difference.view_mut())?;
        device.reduce(Reduce::SumSq, &axis, difference.view(), distance.view_mut())?;
        let mut loss = top[0].data_mut()?;
        device.elementwise_loss(&op, distance.view(), similar.view(), loss.view_mut())
    }

    fn backward(
        &mut self,
        device: &AnyDevice,
        top: &[Blob<T>],
        propagate: PropagateDown<'_>,
        bottom: &[Blob<T>],
    ) -> Result<()> {
        check_no_gradient(propagate.bottom, 2, "similarity of the pairs")?;
        let (op, items) = (self.op(), per_item_axis(bottom[0].shape())?);
        let (difference, distance) = (self.difference.data()?, self.distance.data()?);
        let (similar, weight, mut slope) =
            (bottom[2].data()?, top[0].diff()?, self.distance.diff_mut()?);
        let (x, t) = (distance.view(), similar.view());
        device.elementwise_loss_backward(&op, x, t, weight.view(), slope.view_mut())?;
        // The derivative of d² is 2·difference with respect to the first bottom, and −2·difference
        // with respect to the second bottom. To compute the derivatives of d², `slope` is
        // multiplied by 2 for the first bottom, and then by −1 for the second bottom.
        let axis = Axis::new(1, items.outer, items.extent)?;
        for (i, factor) in [(0, 2.0), (1, -1.0)] {
            device.scal(T::acc(factor), slope.view_mut())?;
            if propagate.bottom[i] {
                let mut dx = bottom[i].diff_mut()?;
                let difference = difference.view().into();
                device.broadcast(Binary::Mul, &axis, difference, slope.view(), dx.view_mut())?;
            }
        }
        Ok(())
    }
}
