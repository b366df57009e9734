//! `y = 1 / (1 + e⁻ˣ)`

use super::{Neuron, NeuronGradient};
use crate::{
    error::Result,
    op::{Binary, Unary},
    proto::LayerParameter,
};

/// Logistic function: `y = 1 / (1 + e⁻ˣ)`.
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
