//! Pairs that are alike close to each other, the others apart.

use super::{Arity, Layer, LayerContext, PropagateDown, loss_common};
use crate::{
    blob::Blob,
    device::Device,
    element::Element,
    error::{Error, Result},
    op::{Axis, Binary, ElementwiseLoss, ElementwiseLossKind, LossNormalization, Reduce},
    proto::{ContrastiveLossParameter, LayerParameter},
};

/// `loss = Σ (s·d² + (1 − s)·max(0, margin − d)²) / 2N` over N pairs at distances d: bottoms are
/// the features of the pairs, of two axes, and s, which is 0 for pairs that are not alike.
///
/// With `legacy_version` those cost `max(0, margin − d²)`. Source: Hadsell, Chopra, LeCun 2006.
pub struct ContrastiveLossLayer<T: Element, D: Device> {
    param: ContrastiveLossParameter,
    /// What features differ by.
    difference: Blob<T, D>,
    /// Squared distances, and the loss' slope along them.
    distance: Blob<T, D>,
}

impl<T: Element, D: Device> ContrastiveLossLayer<T, D> {
    /// From the layer's parameters.
    ///
    /// # Errors
    /// None; fallible as all makers are.
    pub fn new(param: &LayerParameter, cx: &LayerContext<'_, D>) -> Result<Self> {
        Ok(Self {
            param: param.contrastive_loss_param.unwrap_or_default(),
            difference: Blob::new(cx.device, &[0])?,
            distance: Blob::new(cx.device, &[0])?,
        })
    }

    /// The loss of the distances.
    fn op(&self) -> ElementwiseLoss<T::Acc> {
        let margin = T::acc(self.param.margin().into());
        let form = match self.param.legacy_version() {
            false => ElementwiseLossKind::Contrastive { margin },
            true => ElementwiseLossKind::ContrastiveLegacy { margin },
        };
        let normalization = LossNormalization::BatchSize;
        ElementwiseLoss { form, batch: self.distance.count(), each: 1, ignore: None, normalization }
    }
}

impl<T: Element, D: Device> Layer<T, D> for ContrastiveLossLayer<T, D> {
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

    fn reshape(&mut self, bottom: &[Blob<T, D>], top: &mut [Blob<T, D>]) -> Result<()> {
        let (a, b, alike) = (bottom[0].shape(), bottom[1].shape(), bottom[2].shape());
        loss_common::expect_batch(a, b)?;
        loss_common::expect_batch(a, alike)?;
        if bottom[0].channels()? != bottom[1].channels()? {
            return Err(Error::Shape(format!("features of shapes {a} and {b}")));
        }
        // Axes after the second have to be of extent 1.
        let items = loss_common::per_item_axis(a)?;
        if items.extent != bottom[0].channels()? || items.count() != b.count() {
            return Err(Error::Shape(format!("features of shapes {a} and {b} are no vectors")));
        }
        loss_common::expect_labels(a, alike, &items)?;
        self.difference.reshape(a)?;
        self.distance.reshape(&a[..1])?;
        top[0].reshape(&[])
    }

    fn forward(&mut self, device: &D, bottom: &[Blob<T, D>], top: &[Blob<T, D>]) -> Result<()> {
        let (a, b, alike) = (bottom[0].data()?, bottom[1].data()?, bottom[2].data()?);
        let (op, axis) = (self.op(), loss_common::per_item_axis(bottom[0].shape())?);
        let (mut difference, mut distance) =
            (self.difference.data_mut()?, self.distance.data_mut()?);
        device.binary(Binary::Sub, a.view().into(), b.view(), difference.view_mut())?;
        device.reduce(Reduce::SumSq, &axis, difference.view(), distance.view_mut())?;
        let mut loss = top[0].data_mut()?;
        device.elementwise_loss(&op, distance.view(), alike.view(), loss.view_mut())
    }

    fn backward(
        &mut self,
        device: &D,
        top: &[Blob<T, D>],
        propagate: PropagateDown<'_>,
        bottom: &[Blob<T, D>],
    ) -> Result<()> {
        if propagate.bottom[2] {
            return Err(loss_common::no_gradient("pairs' labels", 2));
        }
        let (op, items) = (self.op(), loss_common::per_item_axis(bottom[0].shape())?);
        let (difference, distance) = (self.difference.data()?, self.distance.data()?);
        let (alike, weight, mut slope) =
            (bottom[2].data()?, top[0].diff()?, self.distance.diff_mut()?);
        let (x, t) = (distance.view(), alike.view());
        device.elementwise_loss_backward(&op, x, t, weight.view(), slope.view_mut())?;
        // The squared distance grows by twice the difference, the other way for the other bottom.
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
