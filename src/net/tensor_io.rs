//! Parameters in and out of nets as tensors of files, by name.
//!
//! Names are `<layer>.<index>`, as in `conv1.0`. The index is Caffe's own name for a blob of a
//! layer: what it means differs from type to type (weights, or a running mean), so that `weight`
//! and `bias` would fit only some. The dot is how others join a layer's name to a parameter's. It
//! is the last one that counts: names of layers may have dots and slashes.

use super::Net;
use crate::{
    device::Device,
    element::Element,
    error::{Error, Result},
    tensor_io::Tensor,
};
use std::collections::BTreeMap;

impl<T: Element, D: Device> Net<T, D> {
    /// A copy of all parameters of all layers, shared ones too, in the net's element type, under
    /// the names `<layer>.<index>`.
    ///
    /// # Errors
    /// Those of the device.
    pub fn to_tensors(&self) -> Result<Vec<(String, Tensor)>> {
        let mut tensors = Vec::with_capacity(self.params.len());
        for step in &self.steps {
            for (index, param) in step.layer.params().iter().enumerate() {
                tensors.push((name(step.param.name(), index), param.to_tensor()?));
            }
        }
        Ok(tensors)
    }

    /// Copies tensors with names `<layer>.<index>` to the parameters of the layers, rounded to the
    /// net's element type. Layers of which there is no tensor stay as they are; tensors of layers
    /// that the net does not have, or with names of another form, are passed over. Returns the
    /// names of the layers copied, in the net's order.
    ///
    /// # Errors
    /// [`Error::InvalidData`] if a layer has another number of parameters or a name comes twice,
    /// [`Error::Shape`] if a parameter has another shape: each names layer and tensor, and nothing
    /// has been changed. Those of the device.
    #[doc(alias = "CopyTrainedLayersFrom")]
    pub fn copy_tensors_from(&mut self, source: &[(String, Tensor)]) -> Result<Vec<String>> {
        let mut layers = BTreeMap::<usize, BTreeMap<usize, &Tensor>>::new();
        for (full, tensor) in source {
            let Some((layer, index)) = parts(full) else { continue };
            let Some(place) = self.place(layer) else { continue };
            if layers.entry(place).or_default().insert(index, tensor).is_some() {
                let twice = Error::InvalidData(format!("tensor `{full}`: it is given twice"));
                return Err(self.at_layer(place, twice));
            }
        }
        for (&place, tensors) in &layers {
            self.expect_tensors(place, tensors).map_err(|error| self.at_layer(place, error))?;
        }
        let mut copied = Vec::new();
        for (place, tensors) in layers {
            let step = &mut self.steps[place];
            let params = step.layer.params_mut().iter_mut();
            let result = params
                .zip(tensors.into_values())
                .try_for_each(|(param, tensor)| param.from_tensor(tensor, false));
            result.map_err(|error| self.at_layer(place, error))?;
            copied.push(self.steps[place].param.name().to_owned());
        }
        Ok(copied)
    }

    /// Fails unless there is a tensor of the right shape for each parameter of a layer, and no
    /// other.
    fn expect_tensors(&self, place: usize, tensors: &BTreeMap<usize, &Tensor>) -> Result<()> {
        let step = &self.steps[place];
        let (layer, params) = (step.param.name(), step.layer.params());
        let count = params.len();
        for (index, param) in params.iter().enumerate() {
            let full = name(layer, index);
            let Some(tensor) = tensors.get(&index) else {
                let why = format!("tensor `{full}` is missing: the layer has {count} parameters");
                return Err(Error::InvalidData(why));
            };
            if tensor.shape() != param.shape() {
                let (theirs, ours) = (tensor.shape(), param.shape());
                let why = format!("tensor `{full}` has the shape {theirs}, the parameter {ours}");
                return Err(Error::Shape(why));
            }
        }
        match tensors.keys().find(|&&index| index >= count) {
            Some(&index) => {
                let full = name(layer, index);
                let why =
                    format!("tensor `{full}` is one too many: the layer has {count} parameters");
                Err(Error::InvalidData(why))
            }
            None => Ok(()),
        }
    }
}

fn name(layer: &str, index: usize) -> String {
    format!("{layer}.{index}")
}

/// Layer and index of a name that [`name`] could have made.
fn parts(full: &str) -> Option<(&str, usize)> {
    let (layer, index) = full.rsplit_once('.')?;
    let number = index.parse().ok()?;
    (name(layer, number) == full).then_some((layer, number))
}
