//! `y = x / (1 + e^(−beta·x))`

use super::{Neuron, NeuronGradient};
use crate::{
    error::Result,
    op::{Binary, Unary},
    proto::LayerParameter,
};

/// Swish, or SiLU: `y = x / (1 + e^(−beta·x))`.
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
