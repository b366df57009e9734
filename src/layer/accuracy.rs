//! The share of right answers.

use super::{Arity, Layer, LayerContext, PropagateDown, loss_common};
use crate::{
    blob::Blob,
    device::Device,
    element::Element,
    error::{Error, Result},
    op::{Accuracy, Axis},
    proto::LayerParameter,
};

/// Share of labels whose score is among the `top_k` greatest: bottoms are scores and labels. A
/// second top has that share for each class, 0 where none is labelled so.
pub struct AccuracyLayer {
    axis: isize,
    top_k: usize,
    ignore: Option<i64>,
    /// For the bottoms' present shapes.
    op: Option<Accuracy>,
}

impl AccuracyLayer {
    /// From the layer's parameters.
    ///
    /// # Errors
    /// None; fallible as all makers are.
    pub fn new<D: Device>(param: &LayerParameter, _: &LayerContext<'_, D>) -> Result<Self> {
        let param = param.accuracy_param.unwrap_or_default();
        Ok(Self {
            axis: param.axis() as isize,
            top_k: param.top_k() as usize,
            ignore: param.ignore_label.map(i64::from),
            op: None,
        })
    }
}

impl<T: Element, D: Device> Layer<T, D> for AccuracyLayer {
    fn kind(&self) -> &'static str {
        "Accuracy"
    }

    fn arity(&self) -> Arity {
        Arity::between(2..=2, 1..=2)
    }

    fn allow_force_backward(&self, _: usize) -> bool {
        false
    }

    fn reshape(&mut self, bottom: &[Blob<T, D>], top: &mut [Blob<T, D>]) -> Result<()> {
        let axis = Axis::of(bottom[0].shape(), self.axis)?;
        loss_common::expect_labels(bottom[0].shape(), bottom[1].shape(), &axis)?;
        if self.top_k > axis.extent {
            let why = format!("top_k {} of {} classes", self.top_k, axis.extent);
            return Err(Error::InvalidData(why));
        }
        self.op = Some(Accuracy { axis, top_k: self.top_k, ignore: self.ignore });
        top[0].reshape(&[])?;
        top.get_mut(1).map_or(Ok(()), |by_class| by_class.reshape(&[axis.extent]))
    }

    fn forward(&mut self, device: &D, bottom: &[Blob<T, D>], top: &[Blob<T, D>]) -> Result<()> {
        let op = self.op.as_ref().ok_or_else(loss_common::not_reshaped_error)?;
        let (scores, label, mut y) = (bottom[0].data()?, bottom[1].data()?, top[0].data_mut()?);
        device.accuracy(op, scores.view(), label.view(), y.view_mut())?;
        let Some(by_class) = top.get(1) else { return Ok(()) };
        let mut y = by_class.data_mut()?;
        device.accuracy_by_class(op, scores.view(), label.view(), y.view_mut())
    }

    fn backward(
        &mut self,
        _: &D,
        _: &[Blob<T, D>],
        propagate: PropagateDown<'_>,
        _: &[Blob<T, D>],
    ) -> Result<()> {
        if propagate.bottom.contains(&true) {
            return Err(Error::InvalidData("accuracy has no gradient".into()));
        }
        Ok(())
    }
}
