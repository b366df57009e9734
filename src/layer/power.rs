//! `y = (scale·x + shift)^power`

use super::{Neuron, NeuronGradient};
use crate::{
    error::Result,
    op::{Binary, Unary},
    proto::LayerParameter,
};

/// Power: `y = (scale·x + shift)^power`.
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
        // The slope of a line is that of any value: none has to be kept.
        let line = power == 1.0 || power * scale == 0.0;
        if line { NeuronGradient::OfOutput(op) } else { NeuronGradient::OfInput(op) }
    }
}
