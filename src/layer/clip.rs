//! `y = min(max(x, low), high)`

use super::{Neuron, NeuronGradient};
use crate::{
    error::{Error, Result},
    op::{Binary, Unary},
    proto::LayerParameter,
};

/// Limits: `y = min(max(x, low), high)`. The gradient passes from `low` to `high`, both included.
#[doc(alias = "ClipLayer")]
pub struct Clip {
    low: f64,
    high: f64,
}

impl Neuron for Clip {
    const KIND: &'static str = "Clip";

    fn new(param: &LayerParameter) -> Result<Self> {
        let Some(param) = param.clip_param else {
            return Err(Error::InvalidData("needs a clip_param with min and max".into()));
        };
        let (low, high) = (param.min.into(), param.max.into());
        if low > high {
            return Err(Error::InvalidData(format!("clip_param: min {low} above max {high}")));
        }
        Ok(Self { low, high })
    }

    fn function(&self) -> Unary<f64> {
        Unary::Clip { low: self.low, high: self.high }
    }

    fn gradient(&self) -> NeuronGradient {
        NeuronGradient::OfInput(Binary::ClipGrad { low: self.low, high: self.high })
    }
}
