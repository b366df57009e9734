//! `y = max(x, 0)`

use super::{Neuron, NeuronGradient};
use crate::{
    error::Result,
    op::{Binary, Unary},
    proto::LayerParameter,
};

/// Rectified linear unit: `y = max(x, 0) + negative_slope · min(x, 0)`.
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
        // A falling slope turns signs round.
        if self.slope < 0.0 { NeuronGradient::OfInput(op) } else { NeuronGradient::OfOutput(op) }
    }
}
