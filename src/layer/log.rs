//! `y = log(scale·x + shift)`

use super::{Neuron, NeuronGradient, exp::ln_base};
use crate::{
    error::{Error, Result},
    op::{Binary, Unary},
    proto::LayerParameter,
};

/// Logarithm: `y = log(scale·x + shift)`, to base e unless given.
#[doc(alias = "LogLayer")]
pub struct Log {
    scale: f64,
    shift: f64,
    /// `1 / ln base`
    factor: f64,
}

impl Neuron for Log {
    const KIND: &'static str = "Log";

    fn new(param: &LayerParameter) -> Result<Self> {
        let param = param.log_param.unwrap_or_default();
        let ln_base = ln_base("log_param", param.base())?;
        if ln_base == 0.0 {
            return Err(Error::InvalidData("log_param: there is no logarithm to base 1".into()));
        }
        let (scale, shift) = (param.scale().into(), param.shift().into());
        Ok(Self { scale, shift, factor: 1.0 / ln_base })
    }

    fn function(&self) -> Unary<f64> {
        let Self { scale, shift, factor } = *self;
        Unary::LnAffine { scale, shift, factor }
    }

    fn gradient(&self) -> NeuronGradient {
        let Self { scale, shift, factor } = *self;
        NeuronGradient::OfInput(Binary::LnAffineGrad { scale, shift, factor })
    }
}
