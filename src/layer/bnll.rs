//! `y = ln(1 + eˣ)`

use super::{Neuron, NeuronGradient};
use crate::{
    error::Result,
    op::{Binary, Unary},
    proto::LayerParameter,
};

/// Binomial normal log likelihood, or softplus: `y = ln(1 + eˣ)`.
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
