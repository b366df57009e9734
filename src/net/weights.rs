//! Copying of parameters between nets and protobuf messages, and sharing of parameters between
//! nets.

use super::graph::{Net, Param};
#[cfg(feature = "tensor-io")]
use crate::tensor_io;
use crate::{
    blob::Blob,
    element::{Element, compiled_for},
    error::{Error, Result},
    proto::{self, BlobProto, LayerParameter, NetParameter},
};
use std::{ffi::OsStr, path::Path};

/// Options for copying trained weights to a net.
///
/// ```
/// use cortado::{net::CopyOptions, prelude::*, proto::{NetParameter, parse_text}};
///
/// let text = r#"layer { type: "Input" top: "x" input_param { shape { dim: 1 dim: 2 } } }
///     layer { name: "ip" type: "InnerProduct" bottom: "x" top: "y"
///       inner_product_param { num_output: 1 } }"#;
/// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?)?;
/// let unrelated_net = NetParameter::default();
/// assert!(net.copy_trained_from(&unrelated_net).is_err());
/// let options = CopyOptions { allow_no_match: true };
/// assert!(net.copy_trained_from_with(&unrelated_net, options)?.is_empty());
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopyOptions {
    /// Whether weights that have no layer in common with the net are allowed. If this is allowed,
    /// weights without a common layer leave the net unchanged. By default, weights that have no
    /// layer in common with the net cause an error.
    pub allow_no_match: bool,
}

impl<T: Element> Net<T> {
    /// Copies the parameters of the layers in `source` to the layers with the same names in this
    /// net. Layers that `source` lacks are unchanged. `source` may omit the values of a parameter
    /// that shares the values of another parameter. The message of a parameter without values may
    /// be empty, or be missing at the end of `blobs`. Returns the names of the copied layers.
    ///
    /// [`proto::read_trained_net`](crate::proto::read_trained_net) reads the message `source` from
    /// a file in any of Caffe's formats.
    ///
    /// ```
    /// use cortado::{prelude::*, proto::parse_text};
    ///
    /// let text = r#"layer { type: "Input" top: "x" input_param { shape { dim: 1 dim: 2 } } }
    ///     layer { name: "ip" type: "InnerProduct" bottom: "x" top: "y"
    ///       inner_product_param { num_output: 1 bias_term: false } }"#;
    /// let definition = parse_text(text, "net")?;
    /// let trained_net = Net::<f32>::builder(&CpuDevice::new()).build(&definition)?;
    /// trained_net.params()[0].blob().fill(0.5)?;
    /// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&definition)?;
    /// assert_eq!(net.copy_trained_from(&trained_net.to_proto(false)?)?, ["ip"]);
    /// assert_eq!(net.params()[0].blob().to_vec()?, [0.5, 0.5]);
    /// # Ok::<(), cortado::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`] or [`Error::Shape`] if the parameters of a layer in `source`
    /// and in the net differ in number or shape; in this case, the net is unchanged. Returns
    /// [`Error::InvalidData`], which lists the layers of the net and of `source`, if the net has
    /// learnable parameters and no layer of the net has parameters in `source`. Returns
    /// [`Error::InvalidData`] if `source` has contradictory fields, and propagates errors from the
    /// device; in these cases, some layers may already be copied.
    #[doc(alias = "CopyTrainedLayersFrom")]
    pub fn copy_trained_from(&mut self, source: &NetParameter) -> Result<Vec<String>> {
        self.copy_trained_from_with(source, CopyOptions::default())
    }

    /// Copies parameters like [`copy_trained_from`](Self::copy_trained_from), with the given
    /// options.
    ///
    /// # Errors
    /// Returns any error from `copy_trained_from`, except those that the options suppress.
    pub fn copy_trained_from_with(
        &mut self,
        source: &NetParameter,
        options: CopyOptions,
    ) -> Result<Vec<String>> {
        compiled_for!(T, fn(&mut Net<T>, &NetParameter, CopyOptions) -> Result<Vec<String>> = Net::copy_weights)(
            self, source, options,
        )
    }

    fn copy_weights(&mut self, source: &NetParameter, options: CopyOptions) -> Result<Vec<String>> {
        if !source.layers.is_empty() {
            let reason = "weights in an old format; upgrade them first with `proto::upgrade::net`";
            return Err(Error::InvalidData(reason.into()));
        }
        for from in &source.layer {
            let Some(layer) = self.layer_index(from.name()) else { continue };
            let result = self.check_blobs(layer, &from.blobs).map_err(suggest_renaming);
            result.map_err(|error| self.in_layer(layer, error))?;
        }
        let mut copied_layers = Vec::new();
        for from in &source.layer {
            let Some(layer) = self.layer_index(from.name()) else { continue };
            let params = self.nodes[layer].layer.params_mut().iter_mut();
            let result = params
                .zip(&from.blobs)
                .filter(|(_, proto)| has_data(proto))
                .try_for_each(|(param, proto)| param.from_proto(proto, false));
            result.map_err(|error| self.in_layer(layer, error))?;
            if has_undivided_statistics(from) {
                // All parameters of the layer were copied, so the third exists.
                let result = self.nodes[layer].layer.params_mut()[2].fill(1.0);
                result.map_err(|error| self.in_layer(layer, error))?;
            }
            if !from.blobs.is_empty() {
                copied_layers.push(from.name().to_owned());
            }
        }
        let trained_layers = source.layer.iter().filter(|layer| !layer.blobs.is_empty());
        self.check_copied(&copied_layers, trained_layers.map(|layer| layer.name()), options)?;
        Ok(copied_layers)
    }

    /// Makes this net share the parameter values of the layers in `source` that have the same
    /// names, so that an update of the parameters changes both nets. The nets do not share the
    /// gradients of the parameters.
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`] or [`Error::Shape`] if the parameters of two layers with the
    /// same name differ in number or shape.
    #[doc(alias = "ShareTrainedLayersWith")]
    pub fn share_trained_with(&mut self, source: &Self) -> Result<()> {
        for from in &source.nodes {
            let Some(layer) = self.layer_index(from.param.name()) else { continue };
            let params = self.nodes[layer].layer.params_mut();
            let result = check_count(params.len(), from.layer.params().len())
                .and_then(|()| params.iter_mut().zip(from.layer.params()).try_for_each(share_data));
            result.map_err(|error| self.in_layer(layer, error))?;
        }
        self.refresh_params();
        Ok(())
    }

    /// Makes this net share the values of all trainable parameters of `source`, a net with the same
    /// definition. The nets share neither gradients nor the parameters that forward passes change,
    /// such as the statistics of BatchNorm.
    pub(crate) fn share_trainable_with(&mut self, source: &Self) -> Result<()> {
        for index in 0..self.nodes.len() {
            let Some(from) = source.nodes.get(index) else { continue };
            let layer = &mut self.nodes[index].layer;
            if !layer.params_are_trainable() {
                continue;
            }
            let is_kept: Vec<bool> =
                (0..layer.params().len()).map(|index| layer.keeps_param(index)).collect();
            let params = layer.params_mut().iter_mut().zip(from.layer.params()).zip(is_kept);
            let mut shared = params.filter(|(_, is_kept)| !is_kept).map(|(pair, _)| pair);
            let result = shared.try_for_each(share_data);
            result.map_err(|error| self.in_layer(index, error))?;
        }
        self.refresh_params();
        Ok(())
    }

    /// Converts the net to a `NetParameter` message that holds the values of the parameters. With
    /// `diffs`, the message also holds the gradients of the parameters.
    ///
    /// # Errors
    /// Propagates errors from the device.
    #[doc(alias = "ToProto")]
    pub fn to_proto(&self, diffs: bool) -> Result<NetParameter> {
        compiled_for!(T, fn(&Net<T>, bool) -> Result<NetParameter> = Net::weights_to_proto)(
            self, diffs,
        )
    }

    fn weights_to_proto(&self, diffs: bool) -> Result<NetParameter> {
        let mut net = NetParameter { name: Some(self.name.clone()), ..Default::default() };
        for node in &self.nodes {
            let mut layer = node.param.clone();
            let params = node.layer.params().iter();
            layer.blobs = params.map(|param| param.to_proto(diffs)).collect::<Result<_>>()?;
            net.layer.push(layer);
        }
        Ok(net)
    }

    /// Removes the duplicates of shared parameter values from `message`, which
    /// [`to_proto`](Self::to_proto) of this net has returned. A file to which the caller writes the
    /// stripped message contains shared values only once, as in Caffe's HDF5 files.
    /// `strip_shared_params` keeps the gradients of all parameters.
    pub fn strip_shared_params(&self, message: &mut NetParameter) {
        for param in self.params.iter().filter(|param| param.owner.is_some()) {
            let layer = message.layer.get_mut(param.layer);
            if let Some(blob) = layer.and_then(|layer| layer.blobs.get_mut(param.index)) {
                (blob.data, blob.double_data) = Default::default();
            }
        }
    }

    /// Copies trained weights from a file to the layers with the same names, like
    /// [`copy_trained_from`](Self::copy_trained_from). Returns the names of the copied layers. The
    /// extension of the file determines the format: `.safetensors` and `.npz` (feature
    /// `tensor-io`), `.h5` (feature `hdf5`). A file with any other extension is read as a
    /// caffemodel.
    ///
    /// ```no_run
    /// use cortado::{prelude::*, proto};
    ///
    /// let definition = proto::read_net("deploy.prototxt")?;
    /// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&definition)?;
    /// net.copy_trained_from_file("net.caffemodel")?;
    /// # Ok::<(), cortado::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`] if this build lacks the feature for the file's format.
    /// Returns any error from `copy_trained_from` and from the function that reads the file's
    /// format. Every error names the file.
    #[doc(alias = "CopyTrainedLayersFrom")]
    pub fn copy_trained_from_file(&mut self, path: impl AsRef<Path>) -> Result<Vec<String>> {
        self.copy_trained_from_file_with(path, CopyOptions::default())
    }

    /// Copies trained weights from a file like
    /// [`copy_trained_from_file`](Self::copy_trained_from_file), with the given options.
    ///
    /// # Errors
    /// Returns any error from `copy_trained_from_file`, except those that the options suppress.
    pub fn copy_trained_from_file_with(
        &mut self,
        path: impl AsRef<Path>,
        options: CopyOptions,
    ) -> Result<Vec<String>> {
        let path = path.as_ref();
        let result = match path.extension().and_then(OsStr::to_str) {
            #[cfg(feature = "tensor-io")]
            Some("safetensors") => {
                self.copy_tensors_from_with(&tensor_io::read_safetensors(path)?, options)
            }
            #[cfg(feature = "tensor-io")]
            Some("npz") => self.copy_tensors_from_with(&tensor_io::read_npz(path)?, options),
            #[cfg(not(feature = "tensor-io"))]
            Some("safetensors" | "npz") => {
                Err(Error::InvalidData("this build lacks the feature `tensor-io`".into()))
            }
            _ => self.copy_trained_from_with(&proto::read_trained_net(path)?, options),
        };
        result.map_err(|error| error.context(path.display().to_string()))
    }

    /// Fails if the net has learnable parameters and `copied_layers`, the names of the copied
    /// layers, is empty, unless the options allow it. The argument `found` lists the layers or
    /// tensors of the source, for the error message.
    pub(super) fn check_copied<'a>(
        &self,
        copied_layers: &[String],
        found: impl IntoIterator<Item = &'a str>,
        options: CopyOptions,
    ) -> Result<()> {
        if !copied_layers.is_empty() || self.learnable.is_empty() || options.allow_no_match {
            return Ok(());
        }
        let net_layers = self.nodes.iter().filter(|node| !node.layer.params().is_empty());
        let net_layers = list_names(net_layers.map(|node| node.param.name()));
        let found = list_names(found);
        let reason = "no layer name in common with the net";
        Err(Error::InvalidData(format!(
            "{reason}: the weights have {found}; the net has {net_layers}"
        )))
    }

    /// Checks that the messages `blobs` match the parameters of a layer in number and shape.
    fn check_blobs(&self, layer: usize, blobs: &[BlobProto]) -> Result<()> {
        let params = self.nodes[layer].layer.params();
        let is_shared = |index| {
            let is_same = |param: &&Param<T>| (param.layer, param.index) == (layer, index);
            self.params.iter().find(is_same).is_some_and(|param| param.owner.is_some())
        };
        for (index, param) in params.iter().enumerate() {
            match blobs.get(index) {
                Some(proto) if has_data(proto) => {
                    let result = param.check_shape(proto);
                    result.map_err(|error| error.context(format!("parameter {index}")))?;
                }
                _ if is_shared(index) => {}
                Some(_) if blobs.len() == params.len() => {
                    let reason = format!("parameter {index}: the other net has no values");
                    return Err(Error::InvalidData(reason));
                }
                _ => check_count(params.len(), blobs.len())?,
            }
        }
        if blobs.len() > params.len() { check_count(params.len(), blobs.len()) } else { Ok(()) }
    }

    /// Replaces the parameter handles in the net's list of parameters by handles to the current
    /// parameters of the layers.
    fn refresh_params(&mut self) {
        for param in &mut self.params {
            param.blob = self.nodes[param.layer].layer.params()[param.index].share();
        }
    }
}

/// Adds the remedy to a shape error: rename the layer to train it from scratch.
fn suggest_renaming(error: Error) -> Error {
    match error.root() {
        Error::Shape(_) => {
            Error::Shape(format!("{error}; rename the layer to train it from scratch"))
        }
        _ => error,
    }
}

/// Formats the first four of `names`, followed by the number of remaining names.
fn list_names<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let mut names = names.into_iter();
    let first: Vec<_> = names.by_ref().take(4).map(|name| format!("`{name}`")).collect();
    match (first.is_empty(), names.count()) {
        (true, _) => "none".into(),
        (false, 0) => first.join(", "),
        (false, more) => format!("{} and {more} more", first.join(", ")),
    }
}

/// Returns whether a BatchNorm layer comes from NVIDIA's fork of Caffe, whose layers with a scale
/// and a bias store the mean and the variance themselves, and leave the third blob 0. Caffe's
/// layers divide the first two blobs by the third.
fn has_undivided_statistics(layer: &LayerParameter) -> bool {
    let is_zero = |blob: &BlobProto| {
        blob.data.iter().all(|&x| x == 0.0) && blob.double_data.iter().all(|&x| x == 0.0)
    };
    let [mean, variance, divisor, _, _] = &layer.blobs[..] else { return false };
    let zero_divisor = has_data(divisor) && is_zero(divisor);
    layer.r#type() == "BatchNorm" && zero_divisor && !(is_zero(mean) && is_zero(variance))
}

fn has_data(proto: &BlobProto) -> bool {
    !proto.data.is_empty() || !proto.double_data.is_empty()
}

fn check_count(ours: usize, theirs: usize) -> Result<()> {
    if ours != theirs {
        let reason = format!("expected {ours} parameters, found {theirs}");
        return Err(Error::InvalidData(reason));
    }
    Ok(())
}

fn share_data<T: Element>((ours, theirs): (&mut Blob<T>, &Blob<T>)) -> Result<()> {
    if *ours.shape() != *theirs.shape() {
        let (ours, theirs) = (ours.shape(), theirs.shape());
        return Err(Error::Shape(format!("cannot share parameters of shapes {ours} and {theirs}")));
    }
    ours.share_data(theirs)
}
