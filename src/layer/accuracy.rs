//! The Accuracy layer: the fraction of correctly classified items.

use super::{loss_common, prelude::*};
use crate::op::{Accuracy, Axis};

/// The fraction of items whose label has one of the `top_k` greatest scores. The first bottom holds
/// the class scores, and the second bottom holds the labels. The optional second top holds the
/// accuracy of each class, or 0 for a class without items.
///
/// ```
/// use cortado::{prelude::*, proto::parse_text};
///
/// let text = r#"
///     layer { type: "Input" top: "scores" input_param { shape { dim: 2 dim: 3 } } }
///     layer { type: "Input" top: "labels" input_param { shape { dim: 2 } } }
///     layer { type: "Accuracy" bottom: "scores" bottom: "labels" top: "accuracy" }"#;
/// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?)?;
/// let scores = net.blob("scores").unwrap();
/// scores.data_mut()?.host_mut()?.copy_from_slice(&[0.1, 0.7, 0.2, 0.5, 0.2, 0.3]);
/// net.blob("labels").unwrap().data_mut()?.host_mut()?.copy_from_slice(&[1.0, 2.0]);
/// net.forward()?;
/// assert_eq!(net.blob("accuracy").unwrap().item()?, 0.5);
/// # Ok::<(), cortado::Error>(())
/// ```
pub struct AccuracyLayer {
    axis: isize,
    top_k: usize,
    ignore_label: Option<i64>,
    op: Option<Accuracy>,
}

impl AccuracyLayer {
    /// Creates the layer.
    pub fn new(param: &LayerParameter, _: &LayerContext<'_>) -> Result<Self> {
        let param = param.accuracy_param.unwrap_or_default();
        Ok(Self {
            axis: param.axis() as isize,
            top_k: param.top_k() as usize,
            ignore_label: param.ignore_label.map(i64::from),
            op: None,
        })
    }
}

impl<T: Element> Layer<T> for AccuracyLayer {
    fn kind(&self) -> &'static str {
        "Accuracy"
    }

    fn arity(&self) -> Arity {
        Arity::between(2..=2, 1..=2)
    }

    fn allow_force_backward(&self, _: usize) -> bool {
        false
    }

    fn reshape(&mut self, bottom: &[Blob<T>], top: &mut [Blob<T>]) -> Result<()> {
        let axis = Axis::of(bottom[0].shape(), self.axis)?;
        loss_common::check_labels(bottom[0].shape(), bottom[1].shape(), &axis)?;
        if self.top_k > axis.extent {
            return invalid(format!(
                "accuracy_param: top_k is {}, but there are only {} classes",
                self.top_k, axis.extent
            ));
        }
        self.op = Some(Accuracy { axis, top_k: self.top_k, ignore: self.ignore_label });
        top[0].reshape(&[])?;
        top.get_mut(1).map_or(Ok(()), |by_class| by_class.reshape(&[axis.extent]))
    }

    fn forward(&mut self, device: &AnyDevice, bottom: &[Blob<T>], top: &[Blob<T>]) -> Result<()> {
        let op = reshaped(&self.op)?;
        let (scores, label, mut y) = (bottom[0].data()?, bottom[1].data()?, top[0].data_mut()?);
        device.accuracy(op, scores.view(), label.view(), y.view_mut())?;
        let Some(by_class) = top.get(1) else { return Ok(()) };
        let mut y = by_class.data_mut()?;
        device.accuracy_by_class(op, scores.view(), label.view(), y.view_mut())
    }
}
