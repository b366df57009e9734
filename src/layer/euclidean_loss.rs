//! The EuclideanLoss layer: half the mean squared distance.

use super::{loss_common, prelude::*};
use crate::op::{ElementwiseLoss, ElementwiseLossKind, LossNormalization};

/// `loss = Σ (a − b)² / 2N` over N items. The layer computes the gradients of both bottoms, a and
/// b.
///
/// ```
/// use cortado::{prelude::*, proto::parse_text};
///
/// let text = r#"
///     layer { type: "Input" top: "a" input_param { shape { dim: 2 dim: 1 } } }
///     layer { type: "Input" top: "b" input_param { shape { dim: 2 dim: 1 } } }
///     layer { type: "EuclideanLoss" bottom: "a" bottom: "b" top: "loss" }"#;
/// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?)?;
/// net.blob("a").unwrap().data_mut()?.host_mut()?.copy_from_slice(&[1.0, 2.0]);
/// net.blob("b").unwrap().data_mut()?.host_mut()?.copy_from_slice(&[4.0, 6.0]);
/// let loss = net.forward()?;
/// assert_eq!(loss, (9.0 + 16.0) / 4.0);
/// # Ok::<(), cortado::Error>(())
/// ```
pub struct EuclideanLossLayer;

impl EuclideanLossLayer {
    /// Creates the layer.
    pub fn new(_: &LayerParameter, _: &LayerContext<'_>) -> Result<Self> {
        Ok(Self)
    }
}

fn op<T: Element>(bottom: &Blob<T>) -> Result<ElementwiseLoss<T::Acc>> {
    let items = per_item_axis(bottom.shape())?;
    Ok(ElementwiseLoss {
        kind: ElementwiseLossKind::Squared,
        batch: items.outer,
        item_len: items.extent,
        ignore: None,
        normalization: LossNormalization::BatchSize,
    })
}

impl<T: Element> Layer<T> for EuclideanLossLayer {
    fn kind(&self) -> &'static str {
        "EuclideanLoss"
    }

    fn arity(&self) -> Arity {
        Arity::exactly(2, 1)
    }

    fn is_loss(&self) -> bool {
        true
    }

    fn reshape(&mut self, bottom: &[Blob<T>], top: &mut [Blob<T>]) -> Result<()> {
        let (a, b) = (bottom[0].shape(), bottom[1].shape());
        loss_common::check_batch(a, b)?;
        if a.count() != b.count() {
            return wrong_shape(format!(
                "bottoms of shapes {a} and {b} have different numbers of elements"
            ));
        }
        top[0].reshape(&[])
    }

    fn forward(&mut self, device: &AnyDevice, bottom: &[Blob<T>], top: &[Blob<T>]) -> Result<()> {
        let (a, b, mut loss) = (bottom[0].data()?, bottom[1].data()?, top[0].data_mut()?);
        device.elementwise_loss(&op(&bottom[0])?, a.view(), b.view(), loss.view_mut())
    }

    fn backward(
        &mut self,
        device: &AnyDevice,
        top: &[Blob<T>],
        propagate: PropagateDown<'_>,
        bottom: &[Blob<T>],
    ) -> Result<()> {
        let (op, weight) = (op(&bottom[0])?, top[0].diff()?);
        for (i, other) in [(0, 1), (1, 0)] {
            if propagate.bottom[i] {
                let (x, t) = (bottom[i].data()?, bottom[other].data()?);
                let mut dx = bottom[i].diff_mut()?;
                let (x, t, weight) = (x.view(), t.view(), weight.view());
                device.elementwise_loss_backward(&op, x, t, weight, dx.view_mut())?;
            }
        }
        Ok(())
    }
}
