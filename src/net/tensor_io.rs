//! Conversion between the parameters of a net and named tensors in files.
//!
//! Tensor names have the form `<layer>.<index>`, such as `conv1.0`, because Caffe identifies a
//! layer's parameters by index. Tensor names such as `weight` and `bias` would be wrong for some
//! layer types, such as BatchNorm with its running mean. In a tensor name, the index follows the
//! last dot, because layer names may contain dots and slashes.

use super::{graph::Net, weights::CopyOptions};
use crate::{
    element::Element,
    error::{Error, Result},
    tensor_io::Tensor,
};
use std::collections::BTreeMap;

impl<T: Element> Net<T> {
    /// Copies the parameters of all layers, including shared parameters, to tensors named
    /// `<layer>.<index>`. The tensors have the element type of the net.
    ///
    /// # Errors
    /// Propagates errors from the device.
    pub fn to_tensors(&self) -> Result<Vec<(String, Tensor)>> {
        let mut tensors = Vec::with_capacity(self.params.len());
        for node in &self.nodes {
            for (index, param) in node.layer.params().iter().enumerate() {
                tensors.push((tensor_name(node.param.name(), index), param.to_tensor()?));
            }
        }
        Ok(tensors)
    }

    /// Copies tensors named `<layer>.<index>` to the parameters of the layers, rounded to the net's
    /// element type. Layers for which `source` has no tensor are unchanged. `copy_tensors_from`
    /// ignores tensors of unknown layers, and tensors whose names do not have the form
    /// `<layer>.<index>`. Returns the names of the copied layers in the order of execution.
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`] if the tensors of a layer do not match its number of
    /// parameters, if a tensor appears twice, or if the net has learnable parameters and no layer
    /// of the net has tensors in `source`. Returns [`Error::Shape`] if a tensor's shape differs
    /// from the parameter's shape. If a tensor does not match its parameter, the error message
    /// names the layer and the tensor, and the net is unchanged. Propagates errors from the device.
    #[doc(alias = "CopyTrainedLayersFrom")]
    pub fn copy_tensors_from(&mut self, source: &[(String, Tensor)]) -> Result<Vec<String>> {
        self.copy_tensors_from_with(source, CopyOptions::default())
    }

    /// Copies tensors like [`copy_tensors_from`](Self::copy_tensors_from), with the given options.
    ///
    /// # Errors
    /// Returns any error from `copy_tensors_from`, except those that the options suppress.
    pub fn copy_tensors_from_with(
        &mut self,
        source: &[(String, Tensor)],
        options: CopyOptions,
    ) -> Result<Vec<String>> {
        let mut layers = BTreeMap::<usize, BTreeMap<usize, &Tensor>>::new();
        for (full, tensor) in source {
            let Some((name, index)) = split_name(full) else { continue };
            let Some(layer) = self.layer_index(name) else { continue };
            if layers.entry(layer).or_default().insert(index, tensor).is_some() {
                let duplicate_error = Error::InvalidData(format!("tensor `{full}`: given twice"));
                return Err(self.in_layer(layer, duplicate_error));
            }
        }
        for (&layer, tensors) in &layers {
            self.check_tensors(layer, tensors).map_err(|error| self.in_layer(layer, error))?;
        }
        let mut copied_layers = Vec::new();
        for (layer, tensors) in layers {
            let params = self.nodes[layer].layer.params_mut().iter_mut();
            let result = params
                .zip(tensors.into_values())
                .try_for_each(|(param, tensor)| param.from_tensor(tensor, false));
            result.map_err(|error| self.in_layer(layer, error))?;
            copied_layers.push(self.nodes[layer].param.name().to_owned());
        }
        self.check_copied(&copied_layers, source.iter().map(|(name, _)| name.as_str()), options)?;
        Ok(copied_layers)
    }

    /// Fails unless `tensors` holds one tensor of the right shape for each parameter of the layer,
    /// and no other tensors.
    fn check_tensors(&self, layer: usize, tensors: &BTreeMap<usize, &Tensor>) -> Result<()> {
        let node = &self.nodes[layer];
        let (layer, params) = (node.param.name(), node.layer.params());
        let count = params.len();
        for (index, param) in params.iter().enumerate() {
            let name = tensor_name(layer, index);
            let Some(tensor) = tensors.get(&index) else {
                let reason = format!("missing tensor `{name}`: the layer has {count} parameters");
                return Err(Error::InvalidData(reason));
            };
            if tensor.shape() != param.shape() {
                let (theirs, ours) = (tensor.shape(), param.shape());
                let reason = format!("tensor `{name}`: expected shape {ours}, found {theirs}");
                return Err(Error::Shape(reason));
            }
        }
        match tensors.keys().find(|&&index| index >= count) {
            Some(&index) => {
                let name = tensor_name(layer, index);
                let reason =
                    format!("unexpected tensor `{name}`: the layer has only {count} parameters");
                Err(Error::InvalidData(reason))
            }
            None => Ok(()),
        }
    }
}

fn tensor_name(layer: &str, index: usize) -> String {
    format!("{layer}.{index}")
}

/// Splits a tensor name that [`tensor_name`] creates into the layer's name and the parameter's
/// index. Returns `None` if the name does not have the form `<layer>.<index>`.
fn split_name(full: &str) -> Option<(&str, usize)> {
    let (layer, index) = full.rsplit_once('.')?;
    let number = index.parse().ok()?;
    (tensor_name(layer, number) == full).then_some((layer, number))
}
