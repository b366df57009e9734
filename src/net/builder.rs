//! Construction of a net from its definition.

use super::{
    build_log::{log_layer, log_net},
    definition_check::{check_excluded_tops, describe_empty_net, locate, warn_about_layers},
    filter::filter_net,
    graph::{Net, NetBlob, NetLayer, Param},
    split::{insert_splits, unknown_bottom_error},
};
use crate::{
    blob::Blob,
    data::SourceRegistry,
    device::{AnyDevice, Device},
    element::{Element, compiled_for},
    error::{Error, Result},
    layer::{Layer, LayerContext, LayerRegistry, Shard},
    op::RngKey,
    proto::{
        self, BlobProto, LayerParameter, NetParameter, NetState, ParamSpec, Phase,
        param_spec::DimCheckMode,
    },
};
use std::{
    collections::{BTreeSet, HashMap},
    path::Path,
};

/// A builder of nets, which holds the options for building a net from its definition.
///
/// The field `state` of the definition supplies the phase, level and stages that the caller does
/// not set. If neither the caller nor the definition gives a value, the phase is TEST and the level
/// is 0.
///
/// ```
/// use cortado::{prelude::*, proto::{Phase, parse_text}};
///
/// let text = r#"
///     layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 4 } } }
///     layer { name: "drop" type: "Dropout" bottom: "x" top: "y" include { phase: TRAIN } }"#;
/// let definition = parse_text(text, "net")?;
/// let builder = Net::<f32>::builder(&CpuDevice::new()).seed(7);
/// assert_eq!(builder.build(&definition)?.layer_names().collect::<Vec<_>>(), ["x"]);
/// assert_eq!(builder.phase(Phase::Train).build(&definition)?.layer_names().len(), 2);
/// # Ok::<(), cortado::Error>(())
/// ```
pub struct NetBuilder<T: Element> {
    device: AnyDevice,
    phase: Option<Phase>,
    level: Option<i32>,
    stages: Vec<String>,
    seed: u64,
    reuse_memory: bool,
    shard: Shard,
    registry: LayerRegistry<T>,
    sources: SourceRegistry,
}

impl<T: Element> Net<T> {
    /// Returns a builder of nets on `device` with default options.
    pub fn builder(device: &impl Device) -> NetBuilder<T> {
        NetBuilder {
            device: AnyDevice::new(device),
            phase: None,
            level: None,
            stages: Vec::new(),
            seed: 0,
            reuse_memory: false,
            shard: Shard::WHOLE,
            registry: LayerRegistry::standard(),
            sources: SourceRegistry::default(),
        }
    }
}

impl<T: Element> NetBuilder<T> {
    /// Sets the phase of the net, training or testing.
    #[must_use]
    pub fn phase(self, phase: Phase) -> Self {
        Self { phase: Some(phase), ..self }
    }

    /// Sets the level of the net's state. The rules `include` and `exclude` compare the level with
    /// `min_level` and `max_level`.
    #[must_use]
    pub fn level(self, level: i32) -> Self {
        Self { level: Some(level), ..self }
    }

    /// Adds `stages` to the stages that the definition's `state` gives.
    #[must_use]
    pub fn stages(self, stages: impl IntoIterator<Item = String>) -> Self {
        Self { stages: stages.into_iter().collect(), ..self }
    }

    /// Sets the seed of all random numbers in the net; the default is 0.
    #[must_use]
    pub fn seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// Sets whether to build an inference-only net, whose intermediate blobs reuse memory; `false`
    /// by default. With memory reuse, a blob may use the memory of an earlier blob that no later
    /// layer reads.
    ///
    /// Memory reuse does not change the outputs of the net. The memory of the net's inputs and
    /// outputs is not reused. With memory reuse, the contents of intermediate blobs after a forward
    /// pass are unspecified, and a backward pass fails.
    #[must_use]
    pub fn reuse_memory(self, reuse: bool) -> Self {
        Self { reuse_memory: reuse, ..self }
    }

    /// Sets the shard of the training run to which the net belongs; [`Shard::WHOLE`] by default.
    /// The data layers of the net take the records of this shard.
    #[must_use]
    pub fn shard(self, shard: Shard) -> Self {
        Self { shard, ..self }
    }

    /// Sets the registry that creates the layers of the net. By default, nets use the standard
    /// layer registry.
    #[must_use]
    pub fn registry(self, registry: LayerRegistry<T>) -> Self {
        Self { registry, ..self }
    }

    /// Sets the registry through which data layers open their sources. By default, nets use the
    /// standard source registry.
    #[must_use]
    pub fn sources(self, sources: SourceRegistry) -> Self {
        Self { sources, ..self }
    }

    /// Builds the net: filters the definition, inserts Split layers, creates and connects the
    /// layers, shapes all blobs, shares parameters and selects the gradients to compute.
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`] if the definition is invalid. If a layer fails, returns the
    /// layer's error together with the layer's name.
    pub fn build(&self, definition: &NetParameter) -> Result<Net<T>> {
        compiled_for!(T, fn(&NetBuilder<T>, &NetParameter) -> Result<Net<T>> = NetBuilder::construct)(
            self, definition,
        )
    }

    /// Reads a net definition from a text file in any of Caffe's formats, and builds the net.
    ///
    /// ```no_run
    /// use cortado::prelude::*;
    ///
    /// let net = Net::<f32>::builder(&CpuDevice::new()).from_file("deploy.prototxt")?;
    /// # Ok::<(), cortado::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns any error from [`proto::read_net`], and any error from [`build`](Self::build) with
    /// the file's name and the line of the layer that failed. Returns [`Error::InvalidData`] if no
    /// layer of the definition belongs to the net's state.
    pub fn from_file(&self, path: impl AsRef<Path>) -> Result<Net<T>> {
        let path = path.as_ref();
        self.build_from(&proto::read_net(path)?, path)
    }

    /// Builds the net from a definition that the caller has read from the file `path`, and may have
    /// changed.
    ///
    /// # Errors
    /// Returns any error from [`from_file`](Self::from_file), except those of reading the file.
    pub fn build_from(&self, definition: &NetParameter, path: impl AsRef<Path>) -> Result<Net<T>> {
        let path = path.as_ref();
        let state = self.state(definition);
        let net =
            self.build(definition).map_err(|error| locate(error, path, definition, &state))?;
        if net.nodes.is_empty() {
            let error = Error::InvalidData(describe_empty_net(definition, &state));
            return Err(error.context(path.display().to_string()));
        }
        Ok(net)
    }

    /// Adds the path of the definition's file to an error of a net that this builder has built. If
    /// the error names a layer, also adds the layer's line.
    ///
    /// ```
    /// use cortado::{Error, prelude::*, proto::NetParameter};
    ///
    /// let error = Error::InvalidData("no images".into()).context("layer `data`");
    /// let builder = Net::<f32>::builder(&CpuDevice::new());
    /// let error = builder.locate(error, &NetParameter::default(), "net.prototxt");
    /// assert_eq!(error.to_string(), "net.prototxt: layer `data`: no images");
    /// ```
    pub fn locate(&self, error: Error, definition: &NetParameter, path: impl AsRef<Path>) -> Error {
        locate(error, path.as_ref(), definition, &self.state(definition))
    }

    /// Returns the net's state: the state in the definition, with the phase and level that the
    /// caller has set and the caller's additional stages.
    fn state(&self, definition: &NetParameter) -> NetState {
        let mut state = definition.state.clone().unwrap_or_default();
        if let Some(phase) = self.phase {
            state.set_phase(phase);
        }
        state.level = self.level.or(state.level);
        state.stage.extend(self.stages.iter().cloned());
        state
    }

    fn construct(&self, definition: &NetParameter) -> Result<Net<T>> {
        check_format(definition)?;
        let state = self.state(definition);
        let filtered_net = filter_net(definition, &state)?;
        warn_about_layers(&filtered_net)?;
        check_excluded_tops(definition, &filtered_net, &state)?;
        let definition = insert_splits(&filtered_net)?;
        let mut construction = Construction::new(self, &state, definition.name());
        for param in &definition.layer {
            let in_layer = |error: Error| error.context(format!("layer `{}`", param.name()));
            construction.add_layer(param).map_err(in_layer)?;
        }
        construction.finish(definition.force_backward())
    }
}

/// Fails if the definition has one of Caffe's old formats. Only functions that read a definition
/// from a file upgrade the definition.
fn check_format(definition: &NetParameter) -> Result<()> {
    let field = if !definition.layers.is_empty() {
        "`layers`"
    } else if !definition.input.is_empty() {
        "`input`"
    } else {
        return Ok(());
    };
    let remedy = "upgrade it with `proto::upgrade::net` or `cortado upgrade-net`";
    let name = definition.name();
    Err(Error::InvalidData(format!("net `{name}`: {field} has an old format; {remedy}")))
}

struct Construction<'a, T: Element> {
    builder: &'a NetBuilder<T>,
    net: Net<T>,
    ids: HashMap<String, usize>,
    /// Names of the tops that no layer has consumed so far.
    unconsumed_tops: BTreeSet<String>,
    /// For each blob, whether the layer that produces the blob needs the blob's gradient.
    needs_gradient: Vec<bool>,
    /// For each parameter name, the index of the parameter's owner among the net's parameters.
    param_owners: HashMap<String, usize>,
}

impl<'a, T: Element> Construction<'a, T> {
    fn new(builder: &'a NetBuilder<T>, state: &NetState, name: &str) -> Self {
        let net = Net {
            device: builder.device.clone(),
            name: name.to_owned(),
            phase: state.phase(),
            nodes: Vec::new(),
            blobs: Vec::new(),
            params: Vec::new(),
            learnable: Vec::new(),
            outputs: Vec::new(),
            live_ranges: None,
        };
        let (ids, unconsumed_tops) = (HashMap::new(), BTreeSet::new());
        Self {
            builder,
            net,
            ids,
            unconsumed_tops,
            needs_gradient: Vec::new(),
            param_owners: HashMap::new(),
        }
    }

    fn add_layer(&mut self, param: &LayerParameter) -> Result<()> {
        if param.r#type().is_empty() {
            return Err(Error::InvalidData("no type given".into()));
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
            shard: builder.shard,
            sources: &builder.sources,
        };
        let layer = builder.registry.make(&param, &cx)?;
        let bottoms = self.bottoms(&param)?;
        let tops = self.tops(&param, &*layer)?;
        layer.arity().check(bottoms.len(), tops.len())?;
        let propagate_bottoms = self.propagate_bottoms(&param, &bottoms)?;
        let loss_weights = loss_weights(&param, &*layer, tops.len())?;
        let saved_blobs = std::mem::take(&mut param.blobs);
        self.net.nodes.push(NetLayer {
            layer,
            param,
            bottoms,
            tops,
            backward: propagate_bottoms.contains(&true),
            propagate_bottoms,
            propagate_params: Vec::new(),
            loss_weights,
        });
        let index = self.net.nodes.len() - 1;
        self.set_up(&cx, &saved_blobs).map_err(|error| self.net.name_blob(index, error))?;
        log_layer(&self.net);
        Ok(())
    }

    fn bottoms(&mut self, param: &LayerParameter) -> Result<Vec<usize>> {
        let mut bottoms = Vec::with_capacity(param.bottom.len());
        for (i, name) in param.bottom.iter().enumerate() {
            if !self.unconsumed_tops.remove(name) {
                let known_tops = self.unconsumed_tops.iter().map(String::as_str);
                return Err(unknown_bottom_error(name, i, known_tops));
            }
            bottoms.push(self.ids[name]);
        }
        Ok(bottoms)
    }

    /// Returns the blob indices of a layer's tops: the tops that the definition names and, for a
    /// loss layer, the required tops without a name.
    fn tops(&mut self, param: &LayerParameter, layer: &dyn Layer<T>) -> Result<Vec<usize>> {
        let mut tops = Vec::with_capacity(param.top.len());
        for (i, name) in param.top.iter().enumerate() {
            let in_place = param.bottom.get(i) == Some(name);
            let id = match self.ids.get(name) {
                Some(&id) if in_place && layer.allows_in_place() => id,
                Some(_) if in_place => {
                    let reason = format!("cannot run in place with bottom and top `{name}`");
                    return Err(Error::InvalidData(reason));
                }
                Some(_) => {
                    let reason = format!("top blob `{name}` is produced by several layers");
                    return Err(Error::InvalidData(reason));
                }
                None => self.add_blob(name)?,
            };
            self.unconsumed_tops.insert(name.clone());
            tops.push(id);
        }
        while layer.is_loss() && tops.len() < *layer.arity().top.start() {
            tops.push(self.add_blob("(automatic)")?);
        }
        Ok(tops)
    }

    fn add_blob(&mut self, name: &str) -> Result<usize> {
        let blob = Blob::new(&self.net.device, &[])?;
        let id = self.net.blobs.len();
        self.net.blobs.push(NetBlob { name: name.to_owned(), blob, loss_weight: 0.0 });
        self.needs_gradient.push(false);
        self.ids.insert(name.to_owned(), id);
        Ok(id)
    }

    fn propagate_bottoms(&self, param: &LayerParameter, bottoms: &[usize]) -> Result<Vec<bool>> {
        match param.propagate_down.len() {
            0 => Ok(bottoms.iter().map(|&id| self.needs_gradient[id]).collect()),
            count if count == bottoms.len() => Ok(param.propagate_down.clone()),
            count => Err(Error::InvalidData(format!(
                "propagate_down: expected one entry per bottom ({}), found {count}",
                bottoms.len()
            ))),
        }
    }

    /// Sets up the last layer of the net: creates its parameters, derives the shapes of its tops
    /// and determines the gradients that its backward pass must compute.
    fn set_up(&mut self, cx: &LayerContext<'_>, saved_blobs: &[BlobProto]) -> Result<()> {
        let index = self.net.nodes.len() - 1;
        let node = &self.net.nodes[index];
        let share_blob = |&id: &usize| self.net.blobs[id].blob.share();
        let bottom: Vec<_> = node.bottoms.iter().map(share_blob).collect();
        let layer = &mut self.net.nodes[index].layer;
        layer.setup(cx, &bottom)?;
        let params = layer.params_mut();
        if !saved_blobs.is_empty() {
            if saved_blobs.len() != params.len() {
                return Err(Error::InvalidData(format!(
                    "blobs: expected one per parameter ({}), found {}",
                    params.len(),
                    saved_blobs.len()
                )));
            }
            for (param, proto) in params.iter_mut().zip(saved_blobs) {
                param.from_proto(proto, false)?;
            }
        }
        self.net.reshape_layer(index)?;
        self.add_params(index)?;
        let node = &self.net.nodes[index];
        for (&id, &weight) in node.tops.iter().zip(&node.loss_weights) {
            self.needs_gradient[id] = node.backward;
            self.net.blobs[id].loss_weight = weight;
        }
        Ok(())
    }

    fn add_params(&mut self, layer: usize) -> Result<()> {
        let node = &self.net.nodes[layer];
        let count = node.layer.params().len();
        let specs = node.param.param.clone();
        if specs.len() > count {
            let found = specs.len();
            let reason =
                format!("param: expected one entry per parameter ({count}), found {found}");
            return Err(Error::InvalidData(reason));
        }
        let is_trainable = node.layer.params_are_trainable();
        for index in 0..count {
            let keeps_param = self.net.nodes[layer].layer.keeps_param(index);
            let spec = match specs.get(index) {
                Some(spec) if keeps_param => {
                    let (lr_mult, decay_mult) = (Some(0.0), Some(0.0));
                    ParamSpec { lr_mult, decay_mult, ..spec.clone() }
                }
                None if keeps_param => {
                    ParamSpec { lr_mult: Some(0.0), decay_mult: Some(0.0), ..ParamSpec::default() }
                }
                Some(spec) => spec.clone(),
                None if is_trainable => ParamSpec::default(),
                None => self.add_fixed_spec(layer),
            };
            let needs_gradient = spec.lr_mult() != 0.0;
            if needs_gradient && !is_trainable {
                let lr_mult = spec.lr_mult();
                let reason =
                    format!("parameter {index} is not trainable: lr_mult {lr_mult} must be 0");
                return Err(Error::InvalidData(reason));
            }
            let node = &mut self.net.nodes[layer];
            node.propagate_params.push(needs_gradient);
            node.backward |= needs_gradient;
            self.add_param(layer, index, &spec)?;
        }
        Ok(())
    }

    /// Adds a `param` entry with `lr_mult: 0` to the layer's definition, for a parameter that is
    /// not trainable.
    fn add_fixed_spec(&mut self, layer: usize) -> ParamSpec {
        let spec = ParamSpec { lr_mult: Some(0.0), ..ParamSpec::default() };
        self.net.nodes[layer].param.param.push(spec.clone());
        spec
    }

    fn add_param(&mut self, layer: usize, index: usize, spec: &ParamSpec) -> Result<()> {
        let id = self.net.params.len();
        let owner = match spec.name() {
            "" => None,
            name => match self.param_owners.get(name) {
                Some(&owner) => Some(owner),
                None => {
                    self.param_owners.insert(name.to_owned(), id);
                    None
                }
            },
        };
        if let Some(owner) = owner {
            self.share_param(layer, index, owner, spec)?;
        } else {
            self.net.learnable.push(id);
        }
        let name = match spec.name() {
            "" => index.to_string(),
            name => name.to_owned(),
        };
        let blob = self.net.nodes[layer].layer.params()[index].share();
        let (lr_mult, decay_mult) = (spec.lr_mult, spec.decay_mult);
        self.net.params.push(Param { name, layer, index, owner, lr_mult, decay_mult, blob });
        Ok(())
    }

    /// Makes a parameter share the values and the gradient of its owner, the first parameter with
    /// the same name.
    fn share_param(
        &mut self,
        layer: usize,
        index: usize,
        owner: usize,
        spec: &ParamSpec,
    ) -> Result<()> {
        let Self { net, .. } = self;
        let owner = &mut net.params[owner];
        let param_blob = &mut net.nodes[layer].layer.params_mut()[index];
        let fits = match spec.share_mode() {
            DimCheckMode::Permissive => param_blob.count() == owner.blob.count(),
            DimCheckMode::Strict => *param_blob.shape() == *owner.blob.shape(),
        };
        let name = spec.name();
        if !fits {
            let (found, expected) = (param_blob.shape(), owner.blob.shape());
            let reason =
                format!("shared parameter `{name}`: expected shape {expected}, found {found}");
            return Err(Error::Shape(reason));
        }
        merge_mult("lr_mult", name, &mut owner.lr_mult, spec.lr_mult)?;
        merge_mult("decay_mult", name, &mut owner.decay_mult, spec.decay_mult)?;
        param_blob.share_data(&owner.blob)?;
        param_blob.share_diff(&owner.blob)
    }

    fn finish(mut self, force_backward: bool) -> Result<Net<T>> {
        self.net.prune_backward();
        if force_backward {
            self.net.force_backward();
        }
        self.net.outputs = self.unconsumed_tops.iter().map(|name| self.ids[name]).collect();
        if self.builder.reuse_memory {
            self.net.reuse_memory()?;
        }
        log_net(&self.net);
        Ok(self.net)
    }
}

/// Merges the multiplier `mult` of a shared parameter into `owner_mult`, the multiplier of the
/// parameter's owner. Sets `owner_mult` to `mult` if `owner_mult` is `None`. Fails if `mult` and
/// `owner_mult` are both `Some` and differ.
fn merge_mult(
    field: &str,
    name: &str,
    owner_mult: &mut Option<f32>,
    mult: Option<f32>,
) -> Result<()> {
    match (*owner_mult, mult) {
        (Some(first), Some(mult)) if first != mult => {
            let reason =
                format!("shared parameter `{name}`: expected {field} {first}, found {mult}");
            Err(Error::InvalidData(reason))
        }
        (None, Some(_)) => {
            *owner_mult = mult;
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Returns the weight of each top of a layer in the objective. The default weight is 1 for the
/// first top of a loss layer and 0 for all other tops.
fn loss_weights<T: Element>(
    param: &LayerParameter,
    layer: &dyn Layer<T>,
    tops: usize,
) -> Result<Vec<f32>> {
    match param.loss_weight.len() {
        0 => Ok((0..tops).map(|top| f32::from(layer.is_loss() && top == 0)).collect()),
        given if given == tops => Ok(param.loss_weight.clone()),
        found => Err(Error::InvalidData(format!(
            "loss_weight: expected one entry per top ({tops}), found {found}"
        ))),
    }
}
