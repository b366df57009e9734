//! One update of all parameters.

use super::{Event, Solver, UpdateParams};
use crate::{
    device::Device,
    element::Element,
    error::{Error, Result},
    net::Net,
    op::Regularization,
    proto::SolverParameter,
};

/// The regularisation that a solver's definition asks for.
pub(super) fn regularization(param: &SolverParameter) -> Result<Regularization> {
    match param.regularization_type() {
        "L1" => Ok(Regularization::L1),
        "L2" => Ok(Regularization::L2),
        other => {
            let why = format!("unknown regularization_type `{other}`; known types: L1, L2");
            Err(Error::InvalidData(why))
        }
    }
}

impl<T: Element, D: Device> Solver<T, D> {
    /// Updates every learnable parameter from its gradient.
    #[doc(alias = "ApplyUpdate")]
    pub(super) fn update(&mut self, rate: f64) -> Result<()> {
        let scale = self.clip()? / f64::from(self.param.iter_size());
        let weight_decay = self.param.weight_decay();
        for (param, learned) in self.state.of(&self.nets.train) {
            let stride = UpdateParams {
                iteration: self.iteration,
                rate: rate * f64::from(param.lr_mult.unwrap_or(1.0)),
                scale,
                decay: f64::from(weight_decay * param.decay_mult.unwrap_or(1.0)),
                regularization: self.regularization,
            };
            self.method.update(&stride, &learned)?;
        }
        Ok(())
    }

    /// The factor that brings the norm of the whole gradient down to `clip_gradients`.
    #[doc(alias = "ClipGradients")]
    fn clip(&mut self) -> Result<f64> {
        let limit = f64::from(self.param.clip_gradients());
        if limit < 0.0 {
            return Ok(1.0);
        }
        let norm = gradient_norm(&self.nets.train)?;
        if norm <= limit || norm.is_nan() {
            return Ok(1.0);
        }
        let scale = limit / norm;
        self.tell(&Event::Clipped { iteration: self.iteration, norm, limit, scale });
        Ok(scale)
    }
}

fn gradient_norm<T: Element, D: Device>(net: &Net<T, D>) -> Result<f64> {
    let mut sumsq = 0.0;
    for param in net.learnable_params() {
        sumsq += param.blob().sumsq_diff()?.to_f64();
    }
    Ok(sumsq.sqrt())
}
