//! `y = base^(scale·x + shift)`

use super::{Neuron, NeuronGradient};
use crate::{
    error::{Error, Result},
    op::{Binary, Unary},
    proto::LayerParameter,
};

/// Exponential function: `y = base^(scale·x + shift)`; the base is e unless given.
#[doc(alias = "ExpLayer")]
pub struct Exp {
    /// Of e's exponent.
    scale: f64,
    shift: f64,
}

/// The natural logarithm of a `base` as layers give it, where −1 stands for e.
pub(super) fn ln_base(field: &str, base: f32) -> Result<f64> {
    match f64::from(base) {
        -1.0 => Ok(1.0),
        base if base > 0.0 => Ok(base.ln()),
        _ => Err(Error::InvalidData(format!("{field}: base {base} is not positive"))),
    }
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
