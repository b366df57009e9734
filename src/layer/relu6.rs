//! The ReLU6 neuron, which limits ReLU to 6.

use super::{
    neuron::{Neuron, NeuronGradient},
    prelude::*,
};
use crate::op::{Binary, Unary};

/// Rectified linear unit with the upper limit 6, `y = min(max(x, 0), 6)`. The layer comes from
/// forks of Caffe for MobileNet. At 0 and at 6, the derivative is 1, like that of
/// [`Clip`](super::Clip); in the fork MobileNet-YOLO, the derivative is 0 at both points.
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
pub struct Relu6;

impl Neuron for Relu6 {
    const KIND: &'static str = "ReLU6";

    fn new(param: &LayerParameter) -> Result<Self> {
        match param.relu6_param.unwrap_or_default().negative_slope() {
            0.0 => Ok(Self),
            slope => invalid(format!("relu6_param: negative_slope must be 0, found {slope}")),
        }
    }

    fn function(&self) -> Unary<f64> {
        Unary::Clip { low: 0.0, high: 6.0 }
    }

    fn gradient(&self) -> NeuronGradient {
        NeuronGradient::OfInput(Binary::ClipGrad { low: 0.0, high: 6.0 })
    }
}
