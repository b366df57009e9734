//! Weights and a bias: the parameters that layers with filters have in common.

use super::{LayerContext, PropagateDown};
use crate::{
    blob::Blob,
    device::Device,
    element::Element,
    error::{Error, Result},
    filler::Filler,
    memory::{Src, View, ViewMut},
    op::{Axis, Binary},
    proto::FillerParameter,
};

/// A layer's weights and, if it has one, its bias, with how they are first filled.
pub(super) struct Weights<T: Element, D: Device> {
    outputs: usize,
    weights: Filler,
    /// `None` if the layer has no bias.
    bias: Option<Filler>,
    /// Weights, then the bias; none before they are made.
    blobs: Vec<Blob<T, D>>,
}

impl<T: Element, D: Device> Weights<T, D> {
    /// For `outputs` outputs, as `message` says.
    ///
    /// # Errors
    /// [`Error::InvalidData`] unless there are outputs; those of the fillers.
    pub(super) fn new(
        message: &str,
        outputs: u32,
        [weights, bias]: [&Option<FillerParameter>; 2],
        has_bias: bool,
    ) -> Result<Self> {
        if outputs == 0 {
            return Err(Error::InvalidData(format!("{message} needs a positive num_output")));
        }
        let bias = has_bias.then(|| filler(bias)).transpose()?;
        let (outputs, weights) = (outputs as usize, filler(weights)?);
        Ok(Self { outputs, weights, bias, blobs: Vec::new() })
    }

    pub(super) fn outputs(&self) -> usize {
        self.outputs
    }

    /// Makes weights of `shape` and a bias of one value an output, filled from the layer's own
    /// streams.
    pub(super) fn make(&mut self, cx: &LayerContext<'_, D>, shape: &[usize]) -> Result<()> {
        self.blobs = vec![filled(cx, shape, &self.weights, 0)?];
        if let Some(filler) = &self.bias {
            self.blobs.push(filled(cx, &[self.outputs], filler, 1)?);
        }
        Ok(())
    }

    /// The weights.
    ///
    /// # Errors
    /// [`Error::InvalidData`] before they are made.
    pub(super) fn weights(&self) -> Result<&Blob<T, D>> {
        self.blobs.first().ok_or_else(|| Error::InvalidData("used before its setup".into()))
    }

    pub(super) fn bias(&self) -> Option<&Blob<T, D>> {
        self.blobs.get(1)
    }

    /// `y ← y + bias`, along an axis of the outputs, if there is a bias.
    pub(super) fn add_bias(&self, device: &D, axis: &Axis, y: ViewMut<'_, T, D>) -> Result<()> {
        let Some(bias) = self.bias() else { return Ok(()) };
        device.broadcast(Binary::Add, axis, Src::InPlace, bias.data()?.view(), y)
    }

    /// Adds to the bias' gradient, given that of `y`, if there is a bias that learns.
    pub(super) fn add_bias_gradient(
        &self,
        device: &D,
        axis: &Axis,
        dy: View<'_, T, D>,
        propagate: PropagateDown<'_>,
    ) -> Result<()> {
        match self.bias() {
            Some(bias) if propagate.params[1] => {
                device.sum_to_axis(axis, T::acc(1.0), dy, bias.diff_mut()?.view_mut())
            }
            _ => Ok(()),
        }
    }

    pub(super) fn blobs(&self) -> &[Blob<T, D>] {
        &self.blobs
    }

    pub(super) fn blobs_mut(&mut self) -> &mut [Blob<T, D>] {
        &mut self.blobs
    }
}

/// As a message says; zeros if it says nothing.
pub(super) fn filler(param: &Option<FillerParameter>) -> Result<Filler> {
    param.as_ref().map_or(Ok(Filler::default()), Filler::from_proto)
}

/// The layer's parameter `index`, filled from a stream of its own.
pub(super) fn filled<T: Element, D: Device>(
    cx: &LayerContext<'_, D>,
    shape: &[usize],
    filler: &Filler,
    index: u64,
) -> Result<Blob<T, D>> {
    let blob = Blob::new(cx.device, shape)?;
    filler.fill(&blob, cx.key.child(index))?;
    Ok(blob)
}
