//! Detection of divergence: an objective or weights that are NaN or infinite.

use super::{
    event::{Event, TracedBlob},
    on_nan::OnNan,
    training_run::Solver,
};
use crate::{
    blob::Blob,
    element::Element,
    error::{Error, Result},
    net::Net,
};

impl<T: Element> Solver<T> {
    /// Sets what the solver does when the objective of an iteration, or a weight before a snapshot,
    /// becomes NaN or infinite. The default is [`OnNan::Stop`].
    pub fn set_on_nan(&mut self, on_nan: OnNan) {
        self.on_nan = on_nan;
    }

    /// Handles an iteration whose objective is NaN or infinite.
    pub(super) fn check_loss(&mut self, loss: f64) -> Result<()> {
        if loss.is_finite() {
            self.diverged = false;
            return Ok(());
        }
        if self.on_nan == OnNan::Ignore {
            return Ok(());
        }
        let net = &self.nets.train;
        let mut first = None;
        for layer in 0..net.layer_names().len() {
            first = match first_nonfinite_param(net, layer)? {
                None => first_nonfinite_top(net, layer)?,
                param => param,
            };
            if first.is_some() {
                break;
            }
        }
        self.report_divergence(Some(loss), first)
    }

    /// Handles weights that are NaN or infinite. Snapshots call `check_weights`, because the
    /// objective shows NaN weights only one iteration later.
    pub(super) fn check_weights(&mut self) -> Result<()> {
        if self.on_nan == OnNan::Ignore || self.diverged {
            return Ok(());
        }
        let net = &self.nets.train;
        let layers = 0..net.layer_names().len();
        let places =
            layers.map(|layer| first_nonfinite_param(net, layer)).collect::<Result<Vec<_>>>();
        match places?.into_iter().flatten().next() {
            Some(first) => self.report_divergence(None, Some(first)),
            None => Ok(()),
        }
    }

    fn report_divergence(&mut self, loss: Option<f64>, first: Option<Place>) -> Result<()> {
        if self.diverged {
            return Ok(());
        }
        self.diverged = true;
        let iteration = self.iteration;
        let event = Event::Diverged {
            iteration,
            loss,
            first: first.as_ref().map(|place| (&*place.layer, place.what, &*place.name)),
        };
        self.observers.notify(&event);
        let mut message = format!("iteration {iteration}: ");
        if let Some(loss) = loss {
            message += &format!("the loss is {loss}; ");
        }
        message += &match first {
            Some(Place { layer, what, name }) => {
                let kind = if what == TracedBlob::Top { "top" } else { "parameter" };
                format!("the first NaN or infinite value is in layer `{layer}`, {kind} `{name}`")
            }
            None => "no parameter and no top has a NaN or infinite value".into(),
        };
        if self.on_nan == OnNan::Warn {
            log::warn!("{message}");
            return Ok(());
        }
        if self.param.snapshot() > 0 || self.param.snapshot_after_train() {
            let (model, _) = self.write_snapshot_as("_nan")?;
            message += &format!("; snapshot for inspection: {}", model.display());
        }
        Err(Error::Diverged(message + "; a lower base_lr or clip_gradients may help"))
    }
}

/// Place of a value: a parameter or a top of a layer.
struct Place {
    layer: String,
    what: TracedBlob,
    name: String,
}

fn first_nonfinite_param<T: Element>(net: &Net<T>, layer: usize) -> Result<Option<Place>> {
    for param in net.params().iter().filter(|param| param.layer == layer) {
        if has_nonfinite(param.blob())? {
            return Ok(Some(place(net, layer, TracedBlob::Param, param.index.to_string())));
        }
    }
    Ok(None)
}

fn first_nonfinite_top<T: Element>(net: &Net<T>, layer: usize) -> Result<Option<Place>> {
    let (_, tops) = net.bottoms_and_tops(layer).unwrap_or_default();
    for name in tops {
        let Some(blob) = net.blob(name) else { continue };
        if has_nonfinite(blob)? {
            return Ok(Some(place(net, layer, TracedBlob::Top, name.to_owned())));
        }
    }
    Ok(None)
}

fn place<T: Element>(net: &Net<T>, layer: usize, what: TracedBlob, name: String) -> Place {
    let layer = net.layer_names().nth(layer).unwrap_or_default().to_owned();
    Place { layer, what, name }
}

fn has_nonfinite<T: Element>(blob: &Blob<T>) -> Result<bool> {
    Ok(blob.data()?.host()?.iter().any(|x| !x.to_f64().is_finite()))
}
