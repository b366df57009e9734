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
    /// Sets what the solver does if the objective of an iteration, or a weight in a snapshot, is
    /// NaN or infinite. The default is [`OnNan::Stop`].
    pub fn set_on_nan(&mut self, on_nan: OnNan) {
        self.on_nan = on_nan;
    }

    /// Acts as `on_nan` defines if the objective of an iteration is NaN or infinite.
    pub(super) fn check_loss(&mut self, loss: f64) -> Result<()> {
        if loss.is_finite() {
            self.warned = false;
            return Ok(());
        }
        if self.on_nan == OnNan::Ignore || self.warned {
            return Ok(());
        }
        let net = &self.nets.train;
        let first_of_layer = |layer| match first_nonfinite_param(net, layer) {
            Ok(None) => first_nonfinite_top(net, layer),
            found => found,
        };
        let layers = 0..net.layer_names().len();
        let first = layers.map(first_of_layer).find_map(Result::transpose).transpose()?;
        self.report_divergence(Some(loss), first)
    }

    /// Acts as `on_nan` defines if a weight is NaN or infinite. The solver calls this method before
    /// a snapshot, because the objective shows a divergence of the weights only one iteration
    /// later.
    pub(super) fn check_weights(&mut self) -> Result<()> {
        if self.on_nan == OnNan::Ignore || self.warned {
            return Ok(());
        }
        let net = &self.nets.train;
        let mut layers =
            (0..net.layer_names().len()).map(|layer| first_nonfinite_param(net, layer));
        match layers.find_map(Result::transpose).transpose()? {
            Some(first) => self.report_divergence(None, Some(first)),
            None => Ok(()),
        }
    }

    fn report_divergence(&mut self, loss: Option<f64>, first: Option<Place>) -> Result<()> {
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
            self.warned = true;
            log::warn!("{message}");
            return Ok(());
        }
        if self.param.snapshot() > 0 || self.param.snapshot_after_train() {
            // If writing the snapshot fails, still return `Error::Diverged`.
            message += &match self.write_snapshot_as("_nan") {
                Ok((model, _)) => format!("; snapshot for inspection: {}", model.display()),
                Err(error) => format!("; no snapshot for inspection: {error}"),
            };
        }
        Err(Error::Diverged(message + "; a lower base_lr or clip_gradients may help"))
    }
}

/// Location of a value: a parameter or a top of a layer.
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
