//! `y = |x|`

use super::{Neuron, NeuronGradient};
use crate::{
    error::Result,
    op::{Binary, Unary},
    proto::LayerParameter,
};

/// Absolute value: `y = |x|`.
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
