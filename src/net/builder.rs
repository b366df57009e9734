//! From a definition to a net.

use super::{
    Net, NetBlob, NetLayer, Param, filter_net, insert_splits, split::unknown_bottom_error, build_log,
};
use crate::{
    blob::Blob,
    data::SourceRegistry,
    device::Device,
    element::Element,
    error::{Error, Result},
    layer::{Layer, LayerContext, LayerRegistry},
    op::RngKey,
    proto::{
        BlobProto, LayerParameter, NetParameter, NetState, ParamSpec, Phase,
        param_spec::DimCheckMode,
    },
};
use std::collections::{BTreeSet, HashMap};

/// How to build a net.
///
/// What is not said here, the definition says: its `state`, else the TEST phase, level 0.
pub struct NetBuilder<T: Element, D: Device> {
    device: D,
    phase: Option<Phase>,
    level: Option<i32>,
    stages: Vec<String>,
    seed: u64,
    reuse_memory: bool,
    registry: LayerRegistry<T, D>,
    sources: SourceRegistry,
}

impl<T: Element, D: Device> NetBuilder<T, D> {
    pub(super) fn new(device: &D) -> Self {
        Self {
            device: device.clone(),
            phase: None,
            level: None,
            stages: Vec::new(),
            seed: 0,
            reuse_memory: false,
            registry: LayerRegistry::standard(),
            sources: SourceRegistry::default(),
        }
    }

    /// Builds for this phase.
    #[must_use]
    pub fn phase(self, phase: Phase) -> Self {
        Self { phase: Some(phase), ..self }
    }

    /// Builds for this level.
    #[must_use]
    pub fn level(self, level: i32) -> Self {
        Self { level: Some(level), ..self }
    }

    /// Builds for these stages, besides those of the definition.
    #[must_use]
    pub fn stages(self, stages: impl IntoIterator<Item = String>) -> Self {
        Self { stages: stages.into_iter().collect(), ..self }
    }

    /// Seeds all randomness of the net; 0 if not called.
    #[must_use]
    pub fn seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// Builds a net for inference only, in which intermediate results share memory: an activation
    /// takes that of one that no layer needs any more. Not if not called.
    ///
    /// Results are the same. Inputs and outputs keep their memory; what other blobs hold after a
    /// forward pass is unspecified, and a backward pass is an error.
    #[must_use]
    pub fn reuse_memory(self, reuse: bool) -> Self {
        Self { reuse_memory: reuse, ..self }
    }

    /// Makes layers with this registry instead of the standard one.
    #[must_use]
    pub fn registry(self, registry: LayerRegistry<T, D>) -> Self {
        Self { registry, ..self }
    }

    /// Finds records with these instead of the standard sources.
    #[must_use]
    pub fn sources(self, sources: SourceRegistry) -> Self {
        Self { sources, ..self }
    }

    /// Builds the net: filters the definition, inserts splits, makes and wires the layers, shapes
    /// all blobs, shares parameters and finds which gradients are needed.
    ///
    /// # Errors
    /// [`Error::InvalidData`] for a definition that makes no net; what layers return, with the
    /// layer's name.
    pub fn build(&self, definition: &NetParameter) -> Result<Net<T, D>> {
        expect_current(definition)?;
        let mut state = definition.state.clone().unwrap_or_default();
        if let Some(phase) = self.phase {
            state.set_phase(phase);
        }
        state.level = self.level.or(state.level);
        state.stage.extend(self.stages.iter().cloned());
        let definition = insert_splits(&filter_net(definition, &state)?)?;
        let mut wiring = Wiring::new(self, &state, definition.name());
        for param in &definition.layer {
            let in_layer = |error: Error| error.context(format!("layer `{}`", param.name()));
            wiring.add(param).map_err(in_layer)?;
        }
        wiring.finish(definition.force_backward())
    }
}

/// Fails for definitions in old formats: files of them are upgraded when they are read.
fn expect_current(definition: &NetParameter) -> Result<()> {
    let old = if !definition.layers.is_empty() {
        "its `layers` are in an old format"
    } else if !definition.input.is_empty() {
        "its inputs are given by `input` fields instead of an Input layer"
    } else {
        return Ok(());
    };
    let name = definition.name();
    let how = "`proto::upgrade::net` or `cortado upgrade-net`";
    Err(Error::InvalidData(format!("net `{name}` has to be upgraded first, by {how}: {old}")))
}

/// A net being built.
struct Wiring<'a, T: Element, D: Device> {
    builder: &'a NetBuilder<T, D>,
    net: Net<T, D>,
    ids: HashMap<String, usize>,
    /// Tops that no layer has consumed yet.
    available: BTreeSet<String>,
    /// Whether a gradient for the blob is of use.
    needed: Vec<bool>,
    /// Named parameters: place in the net's parameters.
    named: HashMap<String, usize>,
}

impl<'a, T: Element, D: Device> Wiring<'a, T, D> {
    fn new(builder: &'a NetBuilder<T, D>, state: &NetState, name: &str) -> Self {
        let net = Net {
            device: builder.device.clone(),
            name: name.to_owned(),
            phase: state.phase(),
            steps: Vec::new(),
            blobs: Vec::new(),
            params: Vec::new(),
            learnable: Vec::new(),
            outputs: Vec::new(),
            lives: None,
        };
        let (ids, available) = (HashMap::new(), BTreeSet::new());
        Self { builder, net, ids, available, needed: Vec::new(), named: HashMap::new() }
    }

    /// Makes a layer and wires it.
    fn add(&mut self, param: &LayerParameter) -> Result<()> {
        if param.r#type().is_empty() {
            return Err(Error::InvalidData("has no type".into()));
        }
        log::debug!("Creating Layer {}", param.name());
        let mut param = param.clone();
        if param.phase.is_none() {
            param.set_phase(self.net.phase);
        }
        let builder = self.builder;
        let cx = LayerContext {
            device: &builder.device,
            phase: param.phase(),
            key: RngKey::new(builder.seed).named_child(param.name()),
            sources: &builder.sources,
        };
        let layer = builder.registry.make(&param, &cx)?;
        let bottoms = self.bottoms(&param)?;
        let tops = self.tops(&param, &*layer)?;
        layer.arity().check(bottoms.len(), tops.len())?;
        let propagate_bottoms = self.propagate_bottoms(&param, &bottoms)?;
        let loss_weights = loss_weights(&param, &*layer, tops.len())?;
        let saved = std::mem::take(&mut param.blobs);
        self.net.steps.push(NetLayer {
            layer,
            param,
            bottoms,
            tops,
            backward: propagate_bottoms.contains(&true),
            propagate_bottoms,
            propagate_params: Vec::new(),
            loss_weights,
        });
        self.set_up(&cx, &saved)?;
        build_log::layer(&self.net);
        Ok(())
    }

    fn bottoms(&mut self, param: &LayerParameter) -> Result<Vec<usize>> {
        let mut bottoms = Vec::with_capacity(param.bottom.len());
        for (i, name) in param.bottom.iter().enumerate() {
            if !self.available.remove(name) {
                return Err(unknown_bottom_error(
                    name,
                    i,
                    self.available.iter().map(String::as_str),
                ));
            }
            bottoms.push(self.ids[name]);
        }
        Ok(bottoms)
    }

    /// The tops: those named, and for some layers automatic ones up to as many as they need.
    fn tops(&mut self, param: &LayerParameter, layer: &dyn Layer<T, D>) -> Result<Vec<usize>> {
        let mut tops = Vec::with_capacity(param.top.len());
        for (i, name) in param.top.iter().enumerate() {
            let in_place = param.bottom.get(i) == Some(name);
            let id = match self.ids.get(name) {
                Some(&id) if in_place && layer.allows_in_place() => id,
                Some(_) if in_place => {
                    let why = format!("cannot run in place (top and bottom are `{name}`)");
                    return Err(Error::InvalidData(why));
                }
                Some(_) => {
                    let why = format!("top blob `{name}` is produced by several layers");
                    return Err(Error::InvalidData(why));
                }
                None => self.blob(name)?,
            };
            self.available.insert(name.clone());
            tops.push(id);
        }
        while layer.is_loss() && tops.len() < *layer.arity().top.start() {
            tops.push(self.blob("(automatic)")?);
        }
        Ok(tops)
    }

    fn blob(&mut self, name: &str) -> Result<usize> {
        let blob = Blob::new(&self.net.device, &[])?;
        let id = self.net.blobs.len();
        self.net.blobs.push(NetBlob { name: name.to_owned(), blob, loss_weight: 0.0 });
        self.needed.push(false);
        self.ids.insert(name.to_owned(), id);
        Ok(id)
    }

    fn propagate_bottoms(&self, param: &LayerParameter, bottoms: &[usize]) -> Result<Vec<bool>> {
        match param.propagate_down.len() {
            0 => Ok(bottoms.iter().map(|&id| self.needed[id]).collect()),
            given if given == bottoms.len() => Ok(param.propagate_down.clone()),
            given => {
                let why =
                    format!("propagate_down has {given} entries for {} bottoms", bottoms.len());
                Err(Error::InvalidData(why))
            }
        }
    }

    /// Sets the newest layer up: parameters, shapes, needs.
    fn set_up(&mut self, cx: &LayerContext<'_, D>, saved: &[BlobProto]) -> Result<()> {
        let place = self.net.steps.len() - 1;
        let step = &self.net.steps[place];
        let share = |&id: &usize| self.net.blobs[id].blob.share();
        let bottom: Vec<_> = step.bottoms.iter().map(share).collect();
        self.net.steps[place].layer.setup(cx, &bottom)?;
        let params = self.net.steps[place].layer.params_mut();
        if !saved.is_empty() {
            if saved.len() != params.len() {
                let why = format!("has {} parameters, not {}", params.len(), saved.len());
                return Err(Error::InvalidData(why));
            }
            for (param, proto) in params.iter_mut().zip(saved) {
                param.from_proto(proto, false)?;
            }
        }
        self.net.reshape_layer(place)?;
        self.add_params(place)?;
        let step = &self.net.steps[place];
        for (&id, &weight) in step.tops.iter().zip(&step.loss_weights) {
            self.needed[id] = step.backward;
            self.net.blobs[id].loss_weight = weight;
        }
        Ok(())
    }

    fn add_params(&mut self, place: usize) -> Result<()> {
        let count = self.net.steps[place].layer.params().len();
        let specs = self.net.steps[place].param.param.clone();
        if specs.len() > count {
            let why = format!("has {count} parameters, but {} `param` entries", specs.len());
            return Err(Error::InvalidData(why));
        }
        let learned = self.net.steps[place].layer.params_are_trainable();
        for index in 0..count {
            let spec = match specs.get(index) {
                Some(spec) => spec.clone(),
                None if learned => ParamSpec::default(),
                None => self.add_fixed_spec(place),
            };
            if !learned && spec.lr_mult() != 0.0 {
                let why = format!("parameter {index} is not learned: its lr_mult has to be 0");
                return Err(Error::InvalidData(why));
            }
            let learns = spec.lr_mult() != 0.0;
            let step = &mut self.net.steps[place];
            step.propagate_params.push(learns);
            step.backward |= learns;
            self.add_param(place, index, &spec)?;
        }
        Ok(())
    }

    /// Completes a layer's definition by a `param` entry of what is not learned.
    fn add_fixed_spec(&mut self, place: usize) -> ParamSpec {
        let spec = ParamSpec { lr_mult: Some(0.0), ..ParamSpec::default() };
        self.net.steps[place].param.param.push(spec.clone());
        spec
    }

    fn add_param(&mut self, place: usize, index: usize, spec: &ParamSpec) -> Result<()> {
        let id = self.net.params.len();
        let owner = match spec.name() {
            "" => None,
            name => match self.named.get(name) {
                Some(&owner) => Some(owner),
                None => {
                    self.named.insert(name.to_owned(), id);
                    None
                }
            },
        };
        if let Some(owner) = owner {
            self.share_param(place, index, owner, spec)?;
        } else {
            self.net.learnable.push(id);
        }
        let name = match spec.name() {
            "" => index.to_string(),
            name => name.to_owned(),
        };
        let blob = self.net.steps[place].layer.params()[index].share();
        let (lr_mult, decay_mult) = (spec.lr_mult, spec.decay_mult);
        self.net.params.push(Param { name, layer: place, index, owner, lr_mult, decay_mult, blob });
        Ok(())
    }

    /// Makes a parameter an alias of the one that first had its name.
    fn share_param(
        &mut self,
        place: usize,
        index: usize,
        owner: usize,
        spec: &ParamSpec,
    ) -> Result<()> {
        let Self { net, .. } = self;
        let owner = &mut net.params[owner];
        let ours = &mut net.steps[place].layer.params_mut()[index];
        let fits = match spec.share_mode() {
            DimCheckMode::Permissive => ours.count() == owner.blob.count(),
            DimCheckMode::Strict => *ours.shape() == *owner.blob.shape(),
        };
        let name = spec.name();
        if !fits {
            let (ours, owners) = (ours.shape(), owner.blob.shape());
            let why = format!("shared parameter `{name}` has shape {ours}, its owner {owners}");
            return Err(Error::Shape(why));
        }
        agree("lr_mult", name, &mut owner.lr_mult, spec.lr_mult)?;
        agree("decay_mult", name, &mut owner.decay_mult, spec.decay_mult)?;
        ours.share_data(&owner.blob)?;
        ours.share_diff(&owner.blob)
    }

    fn finish(mut self, force_backward: bool) -> Result<Net<T, D>> {
        self.net.prune_backward();
        if force_backward {
            self.net.force_backward();
        }
        self.net.outputs = self.available.iter().map(|name| self.ids[name]).collect();
        if self.builder.reuse_memory {
            self.net.reuse_memory()?;
        }
        build_log::net(&self.net);
        Ok(self.net)
    }
}

/// A factor that several sharers give has to be the same; the first one given counts.
fn agree(field: &str, name: &str, owners: &mut Option<f32>, given: Option<f32>) -> Result<()> {
    match (*owners, given) {
        (Some(first), Some(given)) if first != given => {
            let why = format!("shared parameter `{name}` has {field} {given}, its owner {first}");
            Err(Error::InvalidData(why))
        }
        (None, Some(_)) => {
            *owners = given;
            Ok(())
        }
        _ => Ok(()),
    }
}

/// The weight of each top in the objective: those given, else 1 for the first of a loss.
fn loss_weights<T: Element, D: Device>(
    param: &LayerParameter,
    layer: &dyn Layer<T, D>,
    tops: usize,
) -> Result<Vec<f32>> {
    match param.loss_weight.len() {
        0 => Ok((0..tops).map(|top| f32::from(layer.is_loss() && top == 0)).collect()),
        given if given == tops => Ok(param.loss_weight.clone()),
        given => {
            Err(Error::InvalidData(format!("loss_weight has {given} entries for {tops} tops")))
        }
    }
}
