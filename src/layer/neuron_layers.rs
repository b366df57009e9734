//! Caffe's neuron layers, from AbsVal to Threshold, each of which applies one function to every
//! element.

use super::{
    neuron::{Neuron, NeuronGradient},
    prelude::*,
};
use crate::op::{Binary, Unary};

/// Absolute value, `y = |x|`.
///
/// ```
/// use cortado::{prelude::*, proto::parse_text};
///
/// let text = r#"
///     layer { type: "Input" top: "x" input_param { shape { dim: 3 } } }
///     layer { type: "AbsVal" bottom: "x" top: "y" }"#;
/// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?)?;
/// net.blob("x").unwrap().data_mut()?.host_mut()?.copy_from_slice(&[-2.0, 0.0, 3.0]);
/// net.forward()?;
/// assert_eq!(net.blob("y").unwrap().to_vec()?, [2.0, 0.0, 3.0]);
/// # Ok::<(), cortado::Error>(())
/// ```
#[doc(alias = "AbsValLayer")]
pub struct AbsVal;

impl Neuron for AbsVal {
    const KIND: &'static str = "AbsVal";
    const IN_PLACE: bool = false;

    fn new(_: &LayerParameter) -> Result<Self> {
        Ok(Self)
    }

    fn function(&self) -> Unary<f64> {
        Unary::Abs
    }

    fn gradient(&self) -> NeuronGradient {
        NeuronGradient::OfInput(Binary::AbsGrad)
    }
}

/// Binomial normal log likelihood (BNLL), also called softplus, `y = ln(1 + eˣ)`.
///
/// ```
/// use cortado::{prelude::*, proto::parse_text};
///
/// let text = r#"
///     layer { type: "Input" top: "x" input_param { shape { dim: 3 } } }
///     layer { type: "BNLL" bottom: "x" top: "y" }"#;
/// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?)?;
/// net.blob("x").unwrap().data_mut()?.host_mut()?.copy_from_slice(&[0.0, -100.0, 100.0]);
/// net.forward()?;
/// let y = net.blob("y").unwrap().to_vec()?;
/// assert!(y.iter().zip([2_f32.ln(), 0.0, 100.0]).all(|(y, want)| (y - want).abs() < 1e-5));
/// # Ok::<(), cortado::Error>(())
/// ```
#[doc(alias = "BNLLLayer")]
pub struct Bnll;

impl Neuron for Bnll {
    const KIND: &'static str = "BNLL";

    fn new(_: &LayerParameter) -> Result<Self> {
        Ok(Self)
    }

    fn function(&self) -> Unary<f64> {
        Unary::Softplus
    }

    fn gradient(&self) -> NeuronGradient {
        NeuronGradient::OfOutput(Binary::SoftplusGrad)
    }
}

/// Clipping, `y = min(max(x, low), high)`. The derivative of clipping is 1 where `low ≤ x ≤ high`,
/// otherwise 0.
///
/// ```
/// use cortado::{prelude::*, proto::parse_text};
///
/// let text = r#"
///     layer { type: "Input" top: "x" input_param { shape { dim: 3 } } }
///     layer { type: "Clip" bottom: "x" top: "y" clip_param { min: -1 max: 1 } }"#;
/// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?)?;
/// net.blob("x").unwrap().data_mut()?.host_mut()?.copy_from_slice(&[-5.0, 0.5, 5.0]);
/// net.forward()?;
/// assert_eq!(net.blob("y").unwrap().to_vec()?, [-1.0, 0.5, 1.0]);
/// # Ok::<(), cortado::Error>(())
/// ```
#[doc(alias = "ClipLayer")]
pub struct Clip {
    low: f64,
    high: f64,
}

impl Neuron for Clip {
    const KIND: &'static str = "Clip";

    fn new(param: &LayerParameter) -> Result<Self> {
        let Some(param) = param.clip_param else {
            return invalid("clip_param: min and max are required");
        };
        let (low, high) = (param.min.into(), param.max.into());
        if low > high {
            return invalid(format!("clip_param: min {low} exceeds max {high}"));
        }
        Ok(Self { low, high })
    }

    fn function(&self) -> Unary<f64> {
        Unary::Clip { low: self.low, high: self.high }
    }

    fn gradient(&self) -> NeuronGradient {
        NeuronGradient::OfInput(Binary::ClipGrad { low: self.low, high: self.high })
    }
}

/// Exponential linear unit (ELU), `y = x` where `x > 0`, otherwise `y = alpha · (eˣ − 1)`.
///
/// ```
/// use cortado::{prelude::*, proto::parse_text};
///
/// let text = r#"
///     layer { type: "Input" top: "x" input_param { shape { dim: 3 } } }
///     layer { type: "ELU" bottom: "x" top: "y" elu_param { alpha: 2 } }"#;
/// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?)?;
/// net.blob("x").unwrap().data_mut()?.host_mut()?.copy_from_slice(&[-100.0, 0.0, 3.0]);
/// net.forward()?;
/// assert_eq!(net.blob("y").unwrap().to_vec()?, [-2.0, 0.0, 3.0]);
/// # Ok::<(), cortado::Error>(())
/// ```
#[doc(alias = "ELULayer")]
pub struct Elu {
    alpha: f64,
}

impl Neuron for Elu {
    const KIND: &'static str = "ELU";

    fn new(param: &LayerParameter) -> Result<Self> {
        Ok(Self { alpha: param.elu_param.unwrap_or_default().alpha().into() })
    }

    fn function(&self) -> Unary<f64> {
        Unary::Elu { alpha: self.alpha }
    }

    fn gradient(&self) -> NeuronGradient {
        let op = Binary::EluGrad { alpha: self.alpha };
        // With a negative `alpha`, the sign of ELU's output does not determine the sign of its
        // input, so the gradient needs the input.
        if self.alpha < 0.0 { NeuronGradient::OfInput(op) } else { NeuronGradient::OfOutput(op) }
    }
}

/// Exponential function, `y = base^(scale·x + shift)`; the default base is e.
///
/// ```
/// use cortado::{prelude::*, proto::parse_text};
///
/// let text = r#"
///     layer { type: "Input" top: "x" input_param { shape { dim: 3 } } }
///     layer { type: "Exp" bottom: "x" top: "y" exp_param { base: 2 } }"#;
/// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?)?;
/// net.blob("x").unwrap().data_mut()?.host_mut()?.copy_from_slice(&[-1.0, 0.0, 3.0]);
/// net.forward()?;
/// let y = net.blob("y").unwrap().to_vec()?;
/// assert!(y.iter().zip([0.5, 1.0, 8.0]).all(|(y, want)| (y - want).abs() < 1e-5));
/// # Ok::<(), cortado::Error>(())
/// ```
#[doc(alias = "ExpLayer")]
pub struct Exp {
    /// Factor of `x` in the exponent of e, `ln base · scale`.
    scale: f64,
    /// Constant term in the exponent of e, `ln base · shift`.
    shift: f64,
}

impl Neuron for Exp {
    const KIND: &'static str = "Exp";

    fn new(param: &LayerParameter) -> Result<Self> {
        let param = param.exp_param.unwrap_or_default();
        let ln_base = ln_base("exp_param", param.base())?;
        let (scale, shift) = (f64::from(param.scale()), f64::from(param.shift()));
        Ok(Self { scale: ln_base * scale, shift: ln_base * shift })
    }

    fn function(&self) -> Unary<f64> {
        Unary::ExpAffine { scale: self.scale, shift: self.shift }
    }

    fn gradient(&self) -> NeuronGradient {
        NeuronGradient::OfOutput(Binary::MulScaled(self.scale))
    }
}

/// Returns the natural logarithm of the field `base` of `param`; a `base` of −1 stands for e.
fn ln_base(param: &str, base: f32) -> Result<f64> {
    match f64::from(base) {
        -1.0 => Ok(1.0),
        base if base > 0.0 => Ok(base.ln()),
        _ => invalid(format!("{param}: base {base} is not positive")),
    }
}

/// Logarithm, `y = ln(scale·x + shift) / ln base`; the default base is e.
///
/// ```
/// use cortado::{prelude::*, proto::parse_text};
///
/// let text = r#"
///     layer { type: "Input" top: "x" input_param { shape { dim: 2 } } }
///     layer { type: "Log" bottom: "x" top: "y" log_param { base: 10 } }"#;
/// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?)?;
/// net.blob("x").unwrap().data_mut()?.host_mut()?.copy_from_slice(&[1.0, 1000.0]);
/// net.forward()?;
/// let y = net.blob("y").unwrap().to_vec()?;
/// assert!(y.iter().zip([0.0, 3.0]).all(|(y, want)| (y - want).abs() < 1e-5));
/// # Ok::<(), cortado::Error>(())
/// ```
#[doc(alias = "LogLayer")]
pub struct Log {
    scale: f64,
    shift: f64,
    /// Factor of the natural logarithm, `1 / ln base`.
    factor: f64,
}

impl Neuron for Log {
    const KIND: &'static str = "Log";

    fn new(param: &LayerParameter) -> Result<Self> {
        let param = param.log_param.unwrap_or_default();
        let ln_base = ln_base("log_param", param.base())?;
        if ln_base == 0.0 {
            return invalid("log_param: base must not be 1");
        }
        let (scale, shift) = (param.scale().into(), param.shift().into());
        Ok(Self { scale, shift, factor: 1.0 / ln_base })
    }

    fn function(&self) -> Unary<f64> {
        let Self { scale, shift, factor } = *self;
        Unary::LnAffine { scale, shift, factor }
    }

    fn gradient(&self) -> NeuronGradient {
        let Self { scale, shift, factor } = *self;
        NeuronGradient::OfInput(Binary::LnAffineGrad { scale, shift, factor })
    }
}

/// Power function, `y = (scale·x + shift)^power`.
///
/// ```
/// use cortado::{prelude::*, proto::parse_text};
///
/// let text = r#"
///     layer { type: "Input" top: "x" input_param { shape { dim: 2 } } }
///     layer { type: "Power" bottom: "x" top: "y" power_param { power: 2 scale: 3 shift: 1 } }"#;
/// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?)?;
/// net.blob("x").unwrap().data_mut()?.host_mut()?.copy_from_slice(&[1.0, 2.0]);
/// net.forward()?;
/// assert_eq!(net.blob("y").unwrap().to_vec()?, [16.0, 49.0]);
/// # Ok::<(), cortado::Error>(())
/// ```
#[doc(alias = "PowerLayer")]
pub struct Power {
    scale: f64,
    shift: f64,
    power: f64,
}

impl Neuron for Power {
    const KIND: &'static str = "Power";

    fn new(param: &LayerParameter) -> Result<Self> {
        let param = param.power_param.unwrap_or_default();
        let (scale, shift) = (param.scale().into(), param.shift().into());
        Ok(Self { scale, shift, power: param.power().into() })
    }

    fn function(&self) -> Unary<f64> {
        let Self { scale, shift, power } = *self;
        Unary::PowAffine { scale, shift, power }
    }

    fn gradient(&self) -> NeuronGradient {
        let Self { scale, shift, power } = *self;
        let op = Binary::PowAffineGrad { scale, shift, power };
        // The derivative of a linear function is constant, so the Power layer need not save its
        // input.
        let is_linear = power == 1.0 || power * scale == 0.0;
        if is_linear { NeuronGradient::OfOutput(op) } else { NeuronGradient::OfInput(op) }
    }
}

/// Rectified linear unit (ReLU), `y = max(x, 0) + negative_slope · min(x, 0)`.
///
/// ```
/// use cortado::{prelude::*, proto::parse_text};
///
/// let text = r#"
///     layer { type: "Input" top: "x" input_param { shape { dim: 3 } } }
///     layer { type: "ReLU" bottom: "x" top: "y" relu_param { negative_slope: 0.5 } }"#;
/// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?)?;
/// net.blob("x").unwrap().data_mut()?.host_mut()?.copy_from_slice(&[-4.0, 0.0, 3.0]);
/// net.forward()?;
/// assert_eq!(net.blob("y").unwrap().to_vec()?, [-2.0, 0.0, 3.0]);
/// # Ok::<(), cortado::Error>(())
/// ```
#[doc(alias = "ReLULayer")]
pub struct Relu {
    slope: f64,
}

impl Neuron for Relu {
    const KIND: &'static str = "ReLU";

    fn new(param: &LayerParameter) -> Result<Self> {
        Ok(Self { slope: param.relu_param.unwrap_or_default().negative_slope().into() })
    }

    fn function(&self) -> Unary<f64> {
        Unary::Relu { slope: self.slope }
    }

    fn gradient(&self) -> NeuronGradient {
        let op = Binary::ReluGrad { slope: self.slope };
        // With a negative slope, the sign of ReLU's output does not determine the sign of its
        // input, so the gradient needs the input.
        if self.slope < 0.0 { NeuronGradient::OfInput(op) } else { NeuronGradient::OfOutput(op) }
    }
}

/// Logistic function (sigmoid), `y = 1 / (1 + e⁻ˣ)`.
///
/// ```
/// use cortado::{prelude::*, proto::parse_text};
///
/// let text = r#"
///     layer { type: "Input" top: "x" input_param { shape { dim: 2 } } }
///     layer { type: "Sigmoid" bottom: "x" top: "y" }"#;
/// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?)?;
/// net.blob("x").unwrap().data_mut()?.host_mut()?.copy_from_slice(&[0.0, 3_f32.ln()]);
/// net.forward()?;
/// let y = net.blob("y").unwrap().to_vec()?;
/// assert!(y.iter().zip([0.5, 0.75]).all(|(y, want)| (y - want).abs() < 1e-5));
/// # Ok::<(), cortado::Error>(())
/// ```
#[doc(alias = "SigmoidLayer")]
pub struct Sigmoid;

impl Neuron for Sigmoid {
    const KIND: &'static str = "Sigmoid";

    fn new(_: &LayerParameter) -> Result<Self> {
        Ok(Self)
    }

    fn function(&self) -> Unary<f64> {
        Unary::Sigmoid
    }

    fn gradient(&self) -> NeuronGradient {
        NeuronGradient::OfOutput(Binary::SigmoidGrad)
    }
}

/// Swish, also called SiLU, `y = x / (1 + e^(−beta·x))`.
///
/// ```
/// use cortado::{prelude::*, proto::parse_text};
///
/// let text = r#"
///     layer { type: "Input" top: "x" input_param { shape { dim: 3 } } }
///     layer { type: "Swish" bottom: "x" top: "y" }"#;
/// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?)?;
/// net.blob("x").unwrap().data_mut()?.host_mut()?.copy_from_slice(&[-100.0, 0.0, 100.0]);
/// net.forward()?;
/// let y = net.blob("y").unwrap().to_vec()?;
/// assert!(y.iter().zip([0.0, 0.0, 100.0]).all(|(y, want)| (y - want).abs() < 1e-5));
/// # Ok::<(), cortado::Error>(())
/// ```
#[doc(alias = "SwishLayer")]
pub struct Swish {
    beta: f64,
}

impl Neuron for Swish {
    const KIND: &'static str = "Swish";

    fn new(param: &LayerParameter) -> Result<Self> {
        Ok(Self { beta: param.swish_param.unwrap_or_default().beta().into() })
    }

    fn function(&self) -> Unary<f64> {
        Unary::Swish { beta: self.beta }
    }

    fn gradient(&self) -> NeuronGradient {
        NeuronGradient::OfInput(Binary::SwishGrad { beta: self.beta })
    }
}

/// Hyperbolic tangent, `y = tanh x`.
///
/// ```
/// use cortado::{prelude::*, proto::parse_text};
///
/// let text = r#"
///     layer { type: "Input" top: "x" input_param { shape { dim: 3 } } }
///     layer { type: "TanH" bottom: "x" top: "y" }"#;
/// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?)?;
/// net.blob("x").unwrap().data_mut()?.host_mut()?.copy_from_slice(&[-100.0, 0.0, 100.0]);
/// net.forward()?;
/// assert_eq!(net.blob("y").unwrap().to_vec()?, [-1.0, 0.0, 1.0]);
/// # Ok::<(), cortado::Error>(())
/// ```
#[doc(alias = "TanHLayer")]
pub struct Tanh;

impl Neuron for Tanh {
    const KIND: &'static str = "TanH";

    fn new(_: &LayerParameter) -> Result<Self> {
        Ok(Self)
    }

    fn function(&self) -> Unary<f64> {
        Unary::Tanh
    }

    fn gradient(&self) -> NeuronGradient {
        NeuronGradient::OfOutput(Binary::TanhGrad)
    }
}

/// Step function without a gradient, `y = 1` where `x > threshold`, otherwise `y = 0`.
///
/// ```
/// use cortado::{prelude::*, proto::parse_text};
///
/// let text = r#"
///     layer { type: "Input" top: "x" input_param { shape { dim: 3 } } }
///     layer { type: "Threshold" bottom: "x" top: "y" threshold_param { threshold: 2 } }"#;
/// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?)?;
/// net.blob("x").unwrap().data_mut()?.host_mut()?.copy_from_slice(&[1.0, 2.0, 3.0]);
/// net.forward()?;
/// assert_eq!(net.blob("y").unwrap().to_vec()?, [0.0, 0.0, 1.0]);
/// # Ok::<(), cortado::Error>(())
/// ```
#[doc(alias = "ThresholdLayer")]
pub struct Threshold {
    threshold: f64,
}

impl Neuron for Threshold {
    const KIND: &'static str = "Threshold";

    fn new(param: &LayerParameter) -> Result<Self> {
        Ok(Self { threshold: param.threshold_param.unwrap_or_default().threshold().into() })
    }

    fn function(&self) -> Unary<f64> {
        Unary::Threshold(self.threshold)
    }

    fn gradient(&self) -> NeuronGradient {
        NeuronGradient::None
    }
}
