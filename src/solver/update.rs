//! The solver update of all learnable parameters in one iteration.

use super::{event::Event, method::UpdateParams, training_run::Solver};
use crate::{
    element::Element,
    error::{Error, Result},
    memory::trace,
    net::Net,
    op::Regularization,
    proto::SolverParameter,
};

pub(super) fn regularization(param: &SolverParameter) -> Result<Regularization> {
    match param.regularization_type() {
        "L1" => Ok(Regularization::L1),
        "L2" => Ok(Regularization::L2),
        other => {
            let reason = format!("unknown regularization_type `{other}`; known types: L1, L2");
            Err(Error::InvalidData(reason))
        }
    }
}

impl<T: Element> Solver<T> {
    #[doc(alias = "ApplyUpdate")]
    pub(super) fn update(&mut self, rate: f64) -> Result<()> {
        let _span = trace::span("solver update");
        let scale = self.clip_scale()? / f64::from(self.param.iter_size());
        let weight_decay = self.param.weight_decay();
        for (param, learnable) in self.state.learnable_params(&self.nets.train) {
            let update = UpdateParams {
                iteration: self.iteration,
                rate: rate * f64::from(param.lr_mult.unwrap_or(1.0)),
                scale,
                decay: f64::from(weight_decay * param.decay_mult.unwrap_or(1.0)),
                regularization: self.regularization,
            };
            let name = || {
                let layer = self.nets.train.layer_names().nth(param.layer).unwrap_or_default();
                Some(format!("history of parameter {} of layer `{layer}`", param.index))
            };
            let result = self.method.update(&update, &learnable);
            result.map_err(|error| error.name_allocation(name))?;
        }
        Ok(())
    }

    /// Returns the factor that scales the L2 norm of the gradients of all parameters to
    /// `clip_gradients`, or 1 if the norm does not exceed `clip_gradients`.
    #[doc(alias = "ClipGradients")]
    fn clip_scale(&mut self) -> Result<f64> {
        let limit = f64::from(self.param.clip_gradients());
        if limit < 0.0 {
            return Ok(1.0);
        }
        let norm = gradient_norm(&self.nets.train)?;
        if norm <= limit || norm.is_nan() {
            return Ok(1.0);
        }
        let scale = limit / norm;
        self.observers.notify(&Event::Clipped { iteration: self.iteration, norm, limit, scale });
        Ok(scale)
    }
}

fn gradient_norm<T: Element>(net: &Net<T>) -> Result<f64> {
    let mut sumsq = 0.0;
    for param in net.learnable_params() {
        sumsq += param.blob().sumsq_diff()?.to_f64();
    }
    Ok(sumsq.sqrt())
}
