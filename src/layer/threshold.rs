//! `y = 1` where `x > threshold`, else 0

use super::{Neuron, NeuronGradient};
use crate::{error::Result, op::Unary, proto::LayerParameter};

/// Step: `y = 1` where `x > threshold`, else 0. No gradient passes it.
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
