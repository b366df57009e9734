//! `y = tanh x`

use super::{Neuron, NeuronGradient};
use crate::{
    error::Result,
    op::{Binary, Unary},
    proto::LayerParameter,
};

/// Hyperbolic tangent: `y = tanh x`.
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
