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

    /// Takes the action that `on_nan` specifies if the objective of an iteration is NaN or infinite.
    pub(super) fn check_loss(&mut self, loss: f64) -> Result<()> {
        if loss.is_finite() {
            self.warned = false;
            return Ok(());
        }
        if self.on_nan == OnNan::Ignore || self.warned {
            return Ok(());
        }
        let nets = (self.shards.first..).zip(self.nets.shards());
        let first = nets.map(first_nonfinite).find_map(Result::transpose).transpose()?;
        let first = self.first_of_processes(first)?;
        self.report_divergence(Some(loss), first)
    }

    /// Returns the place that the process with the lowest rank has found, or `None` if no process
    /// has found one. All processes have the same objective, so all of them search.
    fn first_of_processes(&mut self, own: Option<Place>) -> Result<Option<Place>> {
        if self.processes.size() == 1 {
            return Ok(own);
        }
        let message = own.as_ref().map(Place::to_message).unwrap_or_default();
        let messages = self.processes.all_gather(message.into_bytes())?;
        Ok(messages.iter().find_map(|message| Place::from_message(message)))
    }

    /// Takes the action that `on_nan` specifies if a weight is NaN or infinite. The solver calls this method before
    /// a snapshot, because the objective shows a divergence of the weights only one iteration
    /// later.
    pub(super) fn check_weights(&mut self) -> Result<()> {
        if self.on_nan == OnNan::Ignore || self.warned {
            return Ok(());
        }
        let net = &self.nets.train;
        let mut layers =
            (0..net.layer_names().len()).map(|layer| first_nonfinite_param(net, 0, layer));
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
            shard: first.as_ref().map_or(0, |place| place.shard),
        };
        self.observers.notify(&event);
        let mut message = format!("iteration {iteration}: ");
        if let Some(loss) = loss {
            message += &format!("the loss is {loss}; ");
        }
        message += &match first {
            Some(Place { shard, layer, what, name }) => {
                let kind = if what == TracedBlob::Top { "top" } else { "parameter" };
                let shard = match self.shards.count {
                    1 => String::new(),
                    _ => format!("shard {shard}, "),
                };
                format!(
                    "the first NaN or infinite value is in {shard}layer `{layer}`, {kind} `{name}`"
                )
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
    shard: usize,
    layer: String,
    what: TracedBlob,
    name: String,
}

impl Place {
    /// Returns a text, never empty, that describes the place to the other processes. Names of
    /// layers and blobs may contain any character, so the message starts with the length of the
    /// layer's name.
    fn to_message(&self) -> String {
        let Self { shard, layer, what, name } = self;
        let kind = if *what == TracedBlob::Top { "top" } else { "param" };
        format!("{shard} {kind} {} {layer}{name}", layer.len())
    }

    /// Returns the place that [`to_message`](Self::to_message) has described; `None` for an empty
    /// message.
    fn from_message(message: &[u8]) -> Option<Self> {
        let text = str::from_utf8(message).ok()?;
        let mut fields = text.splitn(4, ' ');
        let (shard, kind, len, names) =
            (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
        let (layer, name) = names.split_at_checked(len.parse().ok()?)?;
        let what = if kind == "top" { TracedBlob::Top } else { TracedBlob::Param };
        Some(Self { shard: shard.parse().ok()?, layer: layer.into(), what, name: name.into() })
    }
}

/// Returns the first NaN or infinite value of the train net of a shard.
fn first_nonfinite<T: Element>((shard, net): (usize, &Net<T>)) -> Result<Option<Place>> {
    let first_of_layer = |layer| match first_nonfinite_param(net, shard, layer) {
        Ok(None) => first_nonfinite_top(net, shard, layer),
        found => found,
    };
    let mut layers = (0..net.layer_names().len()).map(first_of_layer);
    layers.find_map(Result::transpose).transpose()
}

fn first_nonfinite_param<T: Element>(
    net: &Net<T>,
    shard: usize,
    layer: usize,
) -> Result<Option<Place>> {
    for param in net.params().iter().filter(|param| param.layer == layer) {
        if has_nonfinite(param.blob())? {
            let name = param.index.to_string();
            return Ok(Some(place(net, (shard, layer), TracedBlob::Param, name)));
        }
    }
    Ok(None)
}

fn first_nonfinite_top<T: Element>(
    net: &Net<T>,
    shard: usize,
    layer: usize,
) -> Result<Option<Place>> {
    let (_, tops) = net.bottoms_and_tops(layer).unwrap_or_default();
    for name in tops {
        let Some(blob) = net.blob(name) else { continue };
        if has_nonfinite(blob)? {
            return Ok(Some(place(net, (shard, layer), TracedBlob::Top, name.to_owned())));
        }
    }
    Ok(None)
}

fn place<T: Element>(
    net: &Net<T>,
    (shard, layer): (usize, usize),
    what: TracedBlob,
    name: String,
) -> Place {
    let layer = net.layer_names().nth(layer).unwrap_or_default().to_owned();
    Place { shard, layer, what, name }
}

fn has_nonfinite<T: Element>(blob: &Blob<T>) -> Result<bool> {
    Ok(blob.data()?.host()?.iter().any(|x| !x.to_f64().is_finite()))
}
