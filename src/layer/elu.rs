//! `y = x` or `alpha · (eˣ − 1)`

use super::{Neuron, NeuronGradient};
use crate::{
    error::Result,
    op::{Binary, Unary},
    proto::LayerParameter,
};

/// Exponential linear unit: `y = x` where `x > 0`, else `alpha · (eˣ − 1)`.
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
        if self.alpha < 0.0 { NeuronGradient::OfInput(op) } else { NeuronGradient::OfOutput(op) }
    }
}
