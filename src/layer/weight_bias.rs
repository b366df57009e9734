//! Weights and biases of the layers Convolution, Deconvolution, InnerProduct and Embed, and the
//! fillers of these parameters.

use super::prelude::*;
use crate::{
    filler::Filler,
    memory::{Src, View, ViewMut},
    op::{Axis, Binary},
    proto::FillerParameter,
};

pub(super) struct WeightsAndBias<T: Element> {
    outputs: usize,
    weights: Filler,
    /// The filler of the bias; `None` if the layer has no bias.
    bias: Option<Filler>,
    /// The weights and, if the layer has one, the bias; empty until [`create`](Self::create) is
    /// called.
    blobs: Vec<Blob<T>>,
}

impl<T: Element> WeightsAndBias<T> {
    /// Reads the filler definitions of the weights and the bias. Error messages start with
    /// `message`, the name of the protobuf message that holds the fillers.
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`] if `outputs`, the value of the field `num_output`, is 0, or
    /// an error if a filler's definition is invalid.
    pub(super) fn new(
        message: &str,
        outputs: u32,
        [weights, bias]: [&Option<FillerParameter>; 2],
        has_bias: bool,
    ) -> Result<Self> {
        if outputs == 0 {
            return invalid(format!("{message}: num_output must be positive"));
        }
        let bias = has_bias.then(|| filler(bias, Filler::default())).transpose()?;
        let (outputs, weights) = (outputs as usize, filler(weights, Filler::default())?);
        Ok(Self { outputs, weights, bias, blobs: Vec::new() })
    }

    pub(super) fn outputs(&self) -> usize {
        self.outputs
    }

    /// Creates and fills weights of shape `shape` and a bias with one value per output. Each filler
    /// draws random numbers from a separate stream, derived from the layer's key.
    pub(super) fn create(&mut self, cx: &LayerContext<'_>, shape: &[usize]) -> Result<()> {
        self.blobs = vec![filled_blob(cx, shape, &self.weights, 0)?];
        if let Some(filler) = &self.bias {
            self.blobs.push(filled_blob(cx, &[self.outputs], filler, 1)?);
        }
        Ok(())
    }

    /// Returns the weights.
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`] if [`create`](Self::create) has not been called.
    pub(super) fn weights(&self) -> Result<&Blob<T>> {
        self.blobs.first().ok_or_else(|| Error::InvalidData("called before setup".into()))
    }

    pub(super) fn bias(&self) -> Option<&Blob<T>> {
        self.blobs.get(1)
    }

    /// Adds the bias, if the layer has one, to `y`, whose axis `axis` holds the outputs.
    pub(super) fn add_bias(
        &self,
        device: &AnyDevice,
        axis: &Axis,
        y: ViewMut<'_, T, AnyDevice>,
    ) -> Result<()> {
        let Some(bias) = self.bias() else { return Ok(()) };
        device.broadcast(Binary::Add, axis, Src::InPlace, bias.data()?.view(), y)
    }

    /// Adds the sum of `dy` over all axes except `axis` to the gradient of the bias, if `propagate`
    /// requests this gradient.
    pub(super) fn add_bias_gradient(
        &self,
        device: &AnyDevice,
        axis: &Axis,
        dy: View<'_, T, AnyDevice>,
        propagate: PropagateDown<'_>,
    ) -> Result<()> {
        match self.bias() {
            Some(bias) if propagate.params[1] => {
                device.sum_to_axis(axis, T::acc(1.0), dy, bias.diff_mut()?.view_mut())
            }
            _ => Ok(()),
        }
    }

    pub(super) fn blobs(&self) -> &[Blob<T>] {
        &self.blobs
    }

    pub(super) fn blobs_mut(&mut self) -> &mut [Blob<T>] {
        &mut self.blobs
    }
}

/// Returns the filler that the message `param` defines, or `default` if the message is missing.
pub(super) fn filler(param: &Option<FillerParameter>, default: Filler) -> Result<Filler> {
    param.as_ref().map_or(Ok(default), Filler::from_proto)
}

/// Creates the layer's parameter with index `index`, and fills the parameter from a separate random
/// number stream.
pub(super) fn filled_blob<T: Element>(
    cx: &LayerContext<'_>,
    shape: &[usize],
    filler: &Filler,
    index: u64,
) -> Result<Blob<T>> {
    let blob = Blob::new(cx.device, shape)?;
    let fill_result = filler.fill(&blob, cx.key.child(index));
    let name = || Some(format!("data of parameter {index} of shape {}", blob.shape()));
    fill_result.map_err(|error| error.name_allocation(name))?;
    Ok(blob)
}
