//! The Softmax layer, which converts scores to probabilities.

use super::prelude::*;
use crate::op::Axis;

/// `y = eˣ / Σ eˣ` along `axis`.
///
/// ```
/// use cortado::{prelude::*, proto::parse_text};
///
/// let text = r#"
///     layer { type: "Input" top: "x" input_param { shape { dim: 2 dim: 2 } } }
///     layer { type: "Softmax" bottom: "x" top: "y" }"#;
/// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?)?;
/// net.blob("x").unwrap().data_mut()?.host_mut()?.copy_from_slice(&[7.0, 7.0, 1000.0, 0.0]);
/// net.forward()?;
/// assert_eq!(net.blob("y").unwrap().to_vec()?, [0.5, 0.5, 1.0, 0.0]); // e¹⁰⁰⁰ does not overflow
/// # Ok::<(), cortado::Error>(())
/// ```
pub struct SoftmaxLayer {
    axis: isize,
}

impl SoftmaxLayer {
    /// Creates the layer.
    pub fn new(param: &LayerParameter, _: &LayerContext<'_>) -> Result<Self> {
        Ok(Self { axis: param.softmax_param.unwrap_or_default().axis() as isize })
    }
}

impl<T: Element> Layer<T> for SoftmaxLayer {
    fn kind(&self) -> &'static str {
        "Softmax"
    }

    fn allows_in_place(&self) -> bool {
        true
    }

    fn reshape(&mut self, bottom: &[Blob<T>], top: &mut [Blob<T>]) -> Result<()> {
        Axis::of(bottom[0].shape(), self.axis)?;
        top[0].reshape_like(&bottom[0])
    }

    fn forward(&mut self, device: &AnyDevice, bottom: &[Blob<T>], top: &[Blob<T>]) -> Result<()> {
        let axis = Axis::of(bottom[0].shape(), self.axis)?;
        let (x, mut y) = top[0].data_mut_from(&bottom[0])?;
        device.softmax(&axis, x.src(), y.view_mut())
    }

    fn backward(
        &mut self,
        device: &AnyDevice,
        top: &[Blob<T>],
        _: PropagateDown<'_>,
        bottom: &[Blob<T>],
    ) -> Result<()> {
        let axis = Axis::of(bottom[0].shape(), self.axis)?;
        let (y, (dy, mut dx)) = (top[0].data()?, bottom[0].diff_mut_from(&top[0])?);
        device.softmax_backward(&axis, y.view(), dy.src(), dx.view_mut())
    }
}
