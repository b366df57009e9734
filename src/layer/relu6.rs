//! The ReLU6 layer, which limits ReLU to 6.

use super::prelude::*;
use crate::{
    memory::Src,
    op::{Binary, Unary},
};

const CLIP: Unary<f64> = Unary::Clip { low: 0.0, high: 6.0 };

/// Rectified linear unit with the upper limit 6, `y = min(max(x, 0), 6)`. The layer comes from
/// forks of Caffe for MobileNet. At 0 and at 6, the derivative is 0, as in the fork MobileNet-YOLO.
///
/// ```
/// use cortado::{prelude::*, proto::parse_text};
///
/// let text = r#"
///     layer { type: "Input" top: "x" input_param { shape { dim: 3 } } }
///     layer { type: "ReLU6" bottom: "x" top: "y" }"#;
/// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?)?;
/// net.blob("x").unwrap().data_mut()?.host_mut()?.copy_from_slice(&[-5.0, 0.5, 7.0]);
/// net.forward()?;
/// assert_eq!(net.blob("y").unwrap().to_vec()?, [0.0, 0.5, 6.0]);
/// # Ok::<(), cortado::Error>(())
/// ```
#[doc(alias = "ReLU6Layer")]
pub struct Relu6Layer<T: Element> {
    /// Scratch blob of the backward pass: `6 − y`.
    distance: Blob<T>,
}

impl<T: Element> Relu6Layer<T> {
    /// Creates the layer.
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`] if `negative_slope` is not 0.
    pub fn new(param: &LayerParameter, cx: &LayerContext<'_>) -> Result<Self> {
        match param.relu6_param.unwrap_or_default().negative_slope() {
            0.0 => Ok(Self { distance: Blob::new(cx.device, &[0])? }),
            slope => invalid(format!("relu6_param: negative_slope must be 0, found {slope}")),
        }
    }
}

impl<T: Element> Layer<T> for Relu6Layer<T> {
    fn kind(&self) -> &'static str {
        "ReLU6"
    }

    fn allows_in_place(&self) -> bool {
        true
    }

    fn reshape(&mut self, bottom: &[Blob<T>], top: &mut [Blob<T>]) -> Result<()> {
        self.distance.reshape_like(&bottom[0])?;
        top[0].reshape_like(&bottom[0])
    }

    fn forward(&mut self, device: &AnyDevice, bottom: &[Blob<T>], top: &[Blob<T>]) -> Result<()> {
        let (x, mut y) = top[0].data_mut_from(&bottom[0])?;
        device.unary(CLIP.cast(), x.src(), y.view_mut())
    }

    fn fusible_activation(&self) -> Option<Unary<f64>> {
        Some(CLIP)
    }

    fn backward(
        &mut self,
        device: &AnyDevice,
        top: &[Blob<T>],
        _: PropagateDown<'_>,
        bottom: &[Blob<T>],
    ) -> Result<()> {
        let (y, mut distance) = (top[0].data()?, self.distance.data_mut()?);
        let (scale, shift, power) = (T::acc(-1.0), T::acc(6.0), T::acc(1.0));
        let subtract = Unary::PowAffine { scale, shift, power };
        device.unary(subtract, y.view().into(), distance.view_mut())?;
        // The gradient passes where both `y` and `6 − y` are positive.
        let (dy, mut dx) = bottom[0].diff_mut_from(&top[0])?;
        let positive = Binary::ReluGrad { slope: T::acc(0.0) };
        device.binary(positive, dy.src(), y.view(), dx.view_mut())?;
        device.binary(positive, Src::InPlace, distance.view(), dx.view_mut())
    }
}
