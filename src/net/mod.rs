//! Nets: layers wired by blob name.

mod builder;
mod filter;
mod memory_reuse;
mod backward_pruning;
mod forward_backward;
mod split;
#[cfg(feature = "tensor-io")]
mod tensor_io;
mod build_log;
mod weights;

pub use builder::NetBuilder;
pub use filter::{filter_net, state_meets_rule};
pub use memory_reuse::MemoryUse;
pub use split::insert_splits;

use crate::{
    blob::Blob,
    device::Device,
    element::Element,
    layer::Layer,
    proto::{LayerParameter, Phase},
};
use std::{any::Any, time::Duration};

/// A directed acyclic graph of layers, in the order of their execution.
///
/// Built by [`Net::builder`]. Nothing in it is global: nets on any threads do not know of each
/// other unless they share weights.
pub struct Net<T: Element, D: Device> {
    device: D,
    name: String,
    phase: Phase,
    steps: Vec<NetLayer<T, D>>,
    blobs: Vec<NetBlob<T, D>>,
    params: Vec<Param<T, D>>,
    /// Places in `params` of those that own their values.
    learnable: Vec<usize>,
    outputs: Vec<usize>,
    /// Blobs whose storage is used again in the same pass, if that was asked for.
    lives: Option<Vec<memory_reuse::LiveRange>>,
}

/// A layer and its wiring.
struct NetLayer<T: Element, D: Device> {
    layer: Box<dyn Layer<T, D>>,
    param: LayerParameter,
    /// Places of its blobs in the net.
    bottoms: Vec<usize>,
    tops: Vec<usize>,
    /// Which gradients its backward pass computes.
    propagate_bottoms: Vec<bool>,
    propagate_params: Vec<bool>,
    /// Whether it has a backward pass at all.
    backward: bool,
    /// Weight of each top in the objective.
    loss_weights: Vec<f32>,
}

/// An intermediate result.
struct NetBlob<T: Element, D: Device> {
    name: String,
    blob: Blob<T, D>,
    /// Weight in the objective.
    loss_weight: f32,
}

/// A parameter of a layer.
pub struct Param<T: Element, D: Device> {
    /// The name by which parameters are shared, if it has one, else its place in the layer.
    pub name: String,
    /// Place of the layer in the net.
    pub layer: usize,
    /// Place in the layer.
    pub index: usize,
    /// Place in the net's parameters of the one whose values it shares.
    pub owner: Option<usize>,
    /// Factor of the learning rate, if the definition gives one; 1 if not.
    pub lr_mult: Option<f32>,
    /// Factor of the weight decay, if the definition gives one; 1 if not.
    pub decay_mult: Option<f32>,
    blob: Blob<T, D>,
}

impl<T: Element, D: Device> Param<T, D> {
    /// Values and gradient.
    pub fn blob(&self) -> &Blob<T, D> {
        &self.blob
    }
}

impl<T: Element, D: Device> Net<T, D> {
    /// Starts building a net on `device`.
    pub fn builder(device: &D) -> NetBuilder<T, D> {
        NetBuilder::new(device)
    }

    /// The net's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The device that it runs on.
    pub fn device(&self) -> &D {
        &self.device
    }

    /// Whether it trains or is tested.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// Names of the layers, in order.
    pub fn layer_names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.steps.iter().map(|step| step.param.name())
    }

    /// A layer by name.
    #[doc(alias = "layer_by_name")]
    pub fn layer(&self, name: &str) -> Option<&dyn Layer<T, D>> {
        let step = self.steps.iter().find(|step| step.param.name() == name)?;
        Some(&*step.layer)
    }

    /// A layer by name, as what it is: to reach methods of its own. `None` if there is none of
    /// that name or it is another.
    pub fn layer_as<L: Layer<T, D>>(&mut self, name: &str) -> Option<&mut L> {
        let step = self.steps.iter_mut().find(|step| step.param.name() == name)?;
        (&mut *step.layer as &mut dyn Any).downcast_mut()
    }

    /// Definitions of the layers after filtering and splitting, in order, without parameters.
    pub fn layer_params(&self) -> impl ExactSizeIterator<Item = &LayerParameter> {
        self.steps.iter().map(|step| &step.param)
    }

    /// Names of a layer's bottoms and tops.
    pub fn bottoms_and_tops(&self, layer: usize) -> Option<(Vec<&str>, Vec<&str>)> {
        let step = self.steps.get(layer)?;
        let names = |ids: &[usize]| ids.iter().map(|&id| self.blobs[id].name.as_str()).collect();
        Some((names(&step.bottoms), names(&step.tops)))
    }

    /// Whether a layer has a backward pass, and which of its bottoms get a gradient.
    #[doc(alias = "layer_need_backward")]
    #[doc(alias = "bottom_need_backward")]
    pub fn needs_backward(&self, layer: usize) -> Option<(bool, &[bool])> {
        self.steps.get(layer).map(|step| (step.backward, &step.propagate_bottoms[..]))
    }

    /// The blobs by name, in the order in which layers make them.
    pub fn blobs(&self) -> impl ExactSizeIterator<Item = (&str, &Blob<T, D>)> {
        self.blobs.iter().map(|blob| (blob.name.as_str(), &blob.blob))
    }

    /// A blob by name.
    #[doc(alias = "blob_by_name")]
    pub fn blob(&self, name: &str) -> Option<&Blob<T, D>> {
        self.blobs.iter().find(|blob| blob.name == name).map(|blob| &blob.blob)
    }

    /// A blob by name, to be reshaped: the layers follow at the next forward pass.
    pub fn blob_mut(&mut self, name: &str) -> Option<&mut Blob<T, D>> {
        self.blobs.iter_mut().find(|blob| blob.name == name).map(|blob| &mut blob.blob)
    }

    /// A blob's weight in the objective, by name; 0 if it has none.
    #[doc(alias = "blob_loss_weights")]
    pub fn loss_weight(&self, name: &str) -> Option<f32> {
        self.blobs.iter().find(|blob| blob.name == name).map(|blob| blob.loss_weight)
    }

    /// What no layer consumes: name, blob and weight in the objective, in byte order of names.
    #[doc(alias = "output_blobs")]
    pub fn outputs(&self) -> impl ExactSizeIterator<Item = (&str, &Blob<T, D>, f32)> {
        self.outputs.iter().map(|&id| {
            let NetBlob { name, blob, loss_weight } = &self.blobs[id];
            (name.as_str(), blob, *loss_weight)
        })
    }

    /// How long the layers have waited for data so far, all together; `None` if none reads any.
    pub fn data_wait_time(&self) -> Option<Duration> {
        self.steps
            .iter()
            .filter_map(|step| step.layer.data_wait_time())
            .reduce(Duration::saturating_add)
    }

    /// All parameters of all layers, in order, shared ones too.
    pub fn params(&self) -> &[Param<T, D>] {
        &self.params
    }

    /// The parameters that own their values: what a solver updates.
    pub fn learnable_params(&self) -> impl ExactSizeIterator<Item = &Param<T, D>> {
        self.learnable.iter().map(|&place| &self.params[place])
    }
}
