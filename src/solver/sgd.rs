//! Stochastic gradient descent with momentum.

use crate::{
    blob::Blob,
    device::Device,
    element::Element,
    error::{Error, Result},
    net::Net,
    op::{Regularization, Sgd},
    proto::SolverParameter,
};

/// The method's state: for each learnable parameter the step it took last.
pub(super) struct SgdMethod<T: Element, D: Device> {
    pub(super) history: Vec<Blob<T, D>>,
    regularization: Regularization,
}

impl<T: Element, D: Device> SgdMethod<T, D> {
    pub(super) fn new(param: &SolverParameter, net: &Net<T, D>) -> Result<Self> {
        let regularization = match param.regularization_type() {
            "L1" => Regularization::L1,
            "L2" => Regularization::L2,
            other => {
                let why = format!("unknown regularization_type `{other}`; known types: L1, L2");
                return Err(Error::Invalid(why));
            }
        };
        let zeros = |blob: &Blob<T, D>| Blob::new(net.device(), blob.shape());
        let history = net.learnable().map(|param| zeros(param.blob())).collect::<Result<_>>()?;
        Ok(Self { history, regularization })
    }

    /// Updates every learnable parameter of `net` from its gradient, in one pass over each.
    #[doc(alias = "ApplyUpdate")]
    pub(super) fn update(
        &mut self,
        solver: &SolverParameter,
        rate: f64,
        net: &Net<T, D>,
    ) -> Result<()> {
        let scale = clip(solver, net)? / f64::from(solver.iter_size());
        for (param, history) in net.learnable().zip(&self.history) {
            let lr_mult = param.lr_mult.unwrap_or(1.0);
            let decay_mult = param.decay_mult.unwrap_or(1.0);
            let op = Sgd {
                rate: T::acc(rate * f64::from(lr_mult)),
                momentum: T::acc(solver.momentum().into()),
                decay: T::acc(f64::from(solver.weight_decay() * decay_mult)),
                scale: T::acc(scale),
                regularization: self.regularization,
            };
            let blob = param.blob();
            let (dw, mut w, mut h) = (blob.diff()?, blob.data_mut()?, history.data_mut()?);
            net.device().sgd(&op, dw.view(), w.view_mut(), h.view_mut())?;
        }
        Ok(())
    }
}

/// The factor that brings the norm of the whole gradient down to `clip_gradients`.
fn clip<T: Element, D: Device>(solver: &SolverParameter, net: &Net<T, D>) -> Result<f64> {
    let most = f64::from(solver.clip_gradients());
    if most < 0.0 {
        return Ok(1.0);
    }
    let mut sumsq = 0.0;
    for param in net.learnable() {
        sumsq += param.blob().sumsq_diff()?.to_f64();
    }
    let norm = sumsq.sqrt();
    Ok(if norm > most { most / norm } else { 1.0 })
}
