//! The graph of a net: layers, the blobs between them, and parameters.

use crate::{
    blob::Blob,
    device::AnyDevice,
    element::Element,
    error::Error,
    layer::Layer,
    proto::{LayerParameter, Phase},
};
use std::time::Duration;

/// A neural net: a directed acyclic graph of layers, stored in the order of execution.
///
/// [`Net::builder`] returns a builder of nets. Nets have no global state, so nets on different
/// threads are independent unless they share weights.
///
/// ```
/// use cortado::{prelude::*, proto::parse_text};
///
/// let text = r#"
///     layer { type: "Input" top: "x" input_param { shape { dim: 1 dim: 2 } } }
///     layer { name: "sum" type: "Reduction" bottom: "x" top: "y" loss_weight: 3 }
///     force_backward: true"#;
/// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?)?;
/// net.blob("x").unwrap().data_mut()?.host_mut()?.copy_from_slice(&[1.0, 2.0]);
/// assert_eq!(net.forward()?, 9.0); // the objective
/// net.backward()?;
/// assert_eq!(net.blob("x").unwrap().diff()?.host()?, [3.0, 3.0]);
/// # Ok::<(), cortado::Error>(())
/// ```
pub struct Net<T: Element> {
    pub(super) device: AnyDevice,
    pub(super) name: String,
    pub(super) phase: Phase,
    pub(super) nodes: Vec<NetLayer<T>>,
    pub(super) blobs: Vec<NetBlob<T>>,
    pub(super) params: Vec<Param<T>>,
    /// The indices in `params` of the learnable parameters, that is, those that do not share the
    /// values of another parameter.
    pub(super) learnable: Vec<usize>,
    /// The indices of the net's outputs in `blobs`.
    pub(super) outputs: Vec<usize>,
    /// The live ranges of the blobs whose storage the net reuses; `None` if the net does not reuse
    /// memory.
    pub(super) live_ranges: Option<Vec<LiveRange>>,
}

pub(super) struct NetLayer<T: Element> {
    pub(super) layer: Box<dyn Layer<T>>,
    pub(super) param: LayerParameter,
    /// The indices of the layer's bottoms among the net's blobs.
    pub(super) bottoms: Vec<usize>,
    pub(super) tops: Vec<usize>,
    pub(super) propagate_bottoms: Vec<bool>,
    pub(super) propagate_params: Vec<bool>,
    pub(super) backward: bool,
    pub(super) loss_weights: Vec<f32>,
}

pub(super) struct NetBlob<T: Element> {
    pub(super) name: String,
    pub(super) blob: Blob<T>,
    pub(super) loss_weight: f32,
}

/// A group of blobs that share storage, and the range of layers that access these blobs. Blobs
/// share storage if a layer runs in place, or if a top of the layer shares the storage of the
/// bottom, as in Split and Reshape.
pub(super) struct LiveRange {
    pub(super) blobs: Vec<usize>,
    pub(super) first: usize,
    pub(super) last: usize,
}

/// A parameter of a layer in a net, such as its weights or its bias.
///
/// ```
/// use cortado::{prelude::*, proto::parse_text};
///
/// let text = r#"
///     layer { type: "Input" top: "x" input_param { shape { dim: 1 dim: 2 } } }
///     layer { name: "ip" type: "InnerProduct" bottom: "x" top: "y" inner_product_param {
///       num_output: 3 } param { name: "w" lr_mult: 2 } }"#;
/// let net = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?)?;
/// let [w, b] = net.params() else { panic!("weights and a bias") };
/// assert_eq!((&*w.name, w.lr_mult, b.lr_mult), ("w", Some(2.0), None));
/// assert_eq!(w.blob().shape().to_vec(), [3, 2]);
/// # Ok::<(), cortado::Error>(())
/// ```
pub struct Param<T: Element> {
    /// The name of the parameter, by which layers share parameters; by default, the parameter's
    /// index in its layer.
    pub name: String,
    /// The index, among the net's layers, of the layer to which the parameter belongs.
    pub layer: usize,
    /// The index of the parameter among the parameters of its layer.
    pub index: usize,
    /// The index, among the net's parameters, of the parameter whose values this parameter shares;
    /// `None` if the parameter has its own values.
    pub owner: Option<usize>,
    /// The multiplier of the learning rate for this parameter; `None` stands for 1.
    pub lr_mult: Option<f32>,
    /// The multiplier of the weight decay for this parameter; `None` stands for 1.
    pub decay_mult: Option<f32>,
    pub(super) blob: Blob<T>,
}

impl<T: Element> Param<T> {
    /// Returns the blob that holds the parameter's values and gradient.
    pub fn blob(&self) -> &Blob<T> {
        &self.blob
    }
}

impl<T: Element> Net<T> {
    /// Returns the name of the net.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the device on which the net runs.
    pub fn device(&self) -> &AnyDevice {
        &self.device
    }

    /// Returns the phase of the net: training or testing.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// Returns the names of the layers in the order of execution.
    pub fn layer_names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.nodes.iter().map(|node| node.param.name())
    }

    /// Returns the layer with the name `name`, or `None`.
    #[doc(alias = "layer_by_name")]
    pub fn layer(&self, name: &str) -> Option<&dyn Layer<T>> {
        let node = self.nodes.iter().find(|node| node.param.name() == name)?;
        Some(&*node.layer)
    }

    /// Returns the layer with the name `name` as its concrete type `L`, which may have methods
    /// besides those of `Layer`. Returns `None` if no layer has this name, or if the layer has
    /// another type.
    pub fn layer_as<L: Layer<T>>(&mut self, name: &str) -> Option<&mut L> {
        let node = self.nodes.iter_mut().find(|node| node.param.name() == name)?;
        node.layer.downcast_mut()
    }

    /// Returns the definitions of the layers in the order of execution, without parameter values.
    /// The returned definitions include inserted Split layers, but no layers that `include` or
    /// `exclude` rules removed.
    pub fn layer_params(&self) -> impl ExactSizeIterator<Item = &LayerParameter> {
        self.nodes.iter().map(|node| &node.param)
    }

    /// Returns the names of the bottoms and the names of the tops of the layer with index `layer`.
    pub fn bottoms_and_tops(&self, layer: usize) -> Option<(Vec<&str>, Vec<&str>)> {
        let node = self.nodes.get(layer)?;
        let names = |ids: &[usize]| ids.iter().map(|&id| self.blobs[id].name.as_str()).collect();
        Some((names(&node.bottoms), names(&node.tops)))
    }

    /// Returns whether the layer with the given index has a backward pass, and for each of its
    /// bottoms whether the layer computes the bottom's gradient.
    #[doc(alias = "layer_need_backward")]
    #[doc(alias = "bottom_need_backward")]
    pub fn needs_backward(&self, layer: usize) -> Option<(bool, &[bool])> {
        self.nodes.get(layer).map(|node| (node.backward, &node.propagate_bottoms[..]))
    }

    /// Returns all blobs with their names, in the order in which layers produce them.
    pub fn blobs(&self) -> impl ExactSizeIterator<Item = (&str, &Blob<T>)> {
        self.blobs.iter().map(|blob| (blob.name.as_str(), &blob.blob))
    }

    /// Returns the blob with the name `name`, or `None`.
    #[doc(alias = "blob_by_name")]
    pub fn blob(&self, name: &str) -> Option<&Blob<T>> {
        self.blobs.iter().find(|blob| blob.name == name).map(|blob| &blob.blob)
    }

    /// Returns a mutable reference to the blob with the name `name`, so that the caller can reshape
    /// the blob. The next forward pass reshapes all blobs that depend on the reshaped blob.
    pub fn blob_mut(&mut self, name: &str) -> Option<&mut Blob<T>> {
        self.blobs.iter_mut().find(|blob| blob.name == name).map(|blob| &mut blob.blob)
    }

    /// Returns the loss weight of a blob, which is the blob's weight in the objective; 0 for a blob
    /// that is not a loss top.
    #[doc(alias = "blob_loss_weights")]
    pub fn loss_weight(&self, name: &str) -> Option<f32> {
        self.blobs.iter().find(|blob| blob.name == name).map(|blob| blob.loss_weight)
    }

    /// Returns the name, the blob and the loss weight of each output of the net, sorted by name. An
    /// output is a blob that no layer consumes.
    #[doc(alias = "output_blobs")]
    pub fn outputs(&self) -> impl ExactSizeIterator<Item = (&str, &Blob<T>, f32)> {
        self.outputs.iter().map(|&id| {
            let NetBlob { name, blob, loss_weight } = &self.blobs[id];
            (name.as_str(), blob, *loss_weight)
        })
    }

    /// Returns the total time for which the net's layers have waited for data; `None` if no layer
    /// reads data.
    pub fn data_wait_time(&self) -> Option<Duration> {
        let wait_times = self.nodes.iter().filter_map(|node| node.layer.data_wait_time());
        wait_times.reduce(Duration::saturating_add)
    }

    /// Returns the number of records of each source that the net's layers read, in the order of
    /// execution.
    pub(crate) fn source_records(&self) -> impl Iterator<Item = u64> {
        self.nodes.iter().filter_map(|node| node.layer.source_records())
    }

    /// Returns the parameters of all layers in the order of execution, including parameters that
    /// share the values of another parameter.
    pub fn params(&self) -> &[Param<T>] {
        &self.params
    }

    /// Returns the parameters that a solver updates: all parameters that do not share the values of
    /// another parameter.
    pub fn learnable_params(&self) -> impl ExactSizeIterator<Item = &Param<T>> {
        self.learnable.iter().map(|&index| &self.params[index])
    }

    #[cfg(feature = "onnx")]
    pub(crate) fn layer_at(&self, index: usize) -> Option<&dyn Layer<T>> {
        self.nodes.get(index).map(|node| &*node.layer)
    }

    /// Returns the learnable parameters whose gradients the backward pass computes.
    pub(crate) fn params_with_gradients(&self) -> impl Iterator<Item = &Param<T>> {
        let is_trained = |id: usize| {
            let mut params = self.params.iter().enumerate();
            params.any(|(other, param)| {
                (other == id || param.owner == Some(id)) && param.lr_mult != Some(0.0)
            })
        };
        self.learnable.iter().filter(move |&&id| is_trained(id)).map(|&id| &self.params[id])
    }

    /// Returns the parameters that only forward passes change, and not the solver, such as the
    /// statistics of BatchNorm.
    pub(crate) fn statistics(&self) -> impl Iterator<Item = &Param<T>> {
        let learnable = self.learnable.iter().map(|&id| &self.params[id]);
        learnable.filter(|param| {
            let layer = &self.nodes[param.layer].layer;
            !layer.params_are_trainable() || layer.keeps_param(param.index)
        })
    }

    pub(super) fn layer_index(&self, name: &str) -> Option<usize> {
        self.nodes.iter().position(|node| node.param.name() == name)
    }

    /// Adds the name and the type of the layer with index `index` to an error.
    pub(super) fn in_layer(&self, index: usize, error: Error) -> Error {
        let node = &self.nodes[index];
        let error = self.name_blob(index, error);
        error.context(format!("layer `{}` ({})", node.param.name(), node.layer.kind()))
    }

    /// Adds the name of a blob to the error of an allocation that exceeded a memory limit. The blob
    /// is the layer's first top, bottom or parameter that has the requested size and whose data or
    /// diff is not allocated. Leaves the error unchanged if the layer has no such blob, if the
    /// error already has a context, or if the error is of another kind.
    pub(super) fn name_blob(&self, index: usize, error: Error) -> Error {
        let Error::MemoryLimit { bytes, .. } = error else { return error };
        error.name_allocation(|| self.unallocated_blob(&self.nodes[index], bytes))
    }

    fn unallocated_blob(&self, node: &NetLayer<T>, bytes: usize) -> Option<String> {
        let blobs = node.tops.iter().chain(&node.bottoms).map(|&id| &self.blobs[id]);
        let blobs = blobs.map(|NetBlob { name, blob, .. }| (format!("blob `{name}`"), blob));
        let params = node.layer.params().iter().enumerate();
        let params = params.map(|(index, blob)| (format!("parameter {index}"), blob));
        let unallocated_part = |blob: &Blob<T>| {
            let allocated_bytes = blob.allocated_bytes().ok()?;
            let part = allocated_bytes.iter().position(|bytes| *bytes == 0)?;
            (blob.storage_bytes().ok()? == bytes).then_some(["data", "diff"][part])
        };
        let mut candidates = blobs.chain(params);
        candidates.find_map(|(name, blob)| {
            let (part, shape) = (unallocated_part(blob)?, blob.shape());
            Some(format!("{part} of {name} of shape {shape}"))
        })
    }
}
