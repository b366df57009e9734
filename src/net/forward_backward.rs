//! Forward and backward passes.

use super::{Net, NetLayer};
use crate::{
    blob::Blob,
    device::Device,
    element::Element,
    error::{Error, Result},
    layer::PropagateDown,
    op::Unary,
};
use std::ops::Range;

impl<T: Element, D: Device> Net<T, D> {
    /// Runs every layer forward; returns the objective, `Σ weight · top`.
    ///
    /// # Errors
    /// What a layer returns, with the layer's name.
    pub fn forward(&mut self) -> Result<f64> {
        self.forward_layers(0..self.steps.len())
    }

    /// Runs these layers forward, by place; returns their share of the objective. A layer and an
    /// activation in place after it may run as one, if both are among them: the bits are the same.
    ///
    /// # Errors
    /// [`Error::InvalidData`] if there are no such layers; what a layer returns, with the layer's name.
    #[doc(alias = "ForwardFromTo")]
    #[doc(alias = "ForwardTo")]
    pub fn forward_layers(&mut self, layers: Range<usize>) -> Result<f64> {
        self.expect_layers(&layers)?;
        let (mut loss, mut layers) = (0.0, layers);
        while !layers.is_empty() {
            loss += self.forward_first(&mut layers)?;
        }
        Ok(loss)
    }

    /// Runs the first of these layers, which are there, with what runs as one with it, and takes them
    /// from the range; returns their share of the objective.
    pub(crate) fn forward_first(&mut self, layers: &mut Range<usize>) -> Result<f64> {
        let Some(place) = layers.next() else { return Ok(0.0) };
        self.reshape_layer(place).map_err(|error| self.at_layer(place, error))?;
        let more = place + 1 < layers.end;
        let function = if more { self.activation_after(place)? } else { None };
        let result = self.forward_layer(place, function);
        let (loss, activated) = result.map_err(|error| self.at_layer(place, error))?;
        if activated {
            layers.next();
        }
        Ok(loss)
    }

    /// Runs every layer backward that has to; the parameters' gradients are added to what their
    /// diffs hold.
    ///
    /// # Errors
    /// What a layer returns, with the layer's name.
    pub fn backward(&mut self) -> Result<()> {
        self.backward_layers(0..self.steps.len())
    }

    /// Runs these layers backward, by place and from the last to the first, as
    /// [`backward`](Self::backward) runs all.
    ///
    /// # Errors
    /// [`Error::InvalidData`] if there are no such layers; what a layer returns, with the layer's name.
    #[doc(alias = "BackwardFromTo")]
    #[doc(alias = "BackwardFrom")]
    pub fn backward_layers(&mut self, layers: Range<usize>) -> Result<()> {
        self.expect_layers(&layers)?;
        if self.lives.is_some() {
            let why = "the net reuses memory: what a backward pass needs is overwritten";
            return Err(Error::InvalidData(why.into()));
        }
        for place in layers.rev() {
            if !self.steps[place].backward {
                continue;
            }
            let result = self.backward_layer(place);
            result.map_err(|error| self.at_layer(place, error))?;
        }
        Ok(())
    }

    /// Shapes every blob anew after the present shapes of the inputs; in a net that reuses memory,
    /// plans anew what blobs share.
    ///
    /// # Errors
    /// What a layer returns, with the layer's name.
    #[doc(alias = "Reshape")]
    pub fn reshape(&mut self) -> Result<()> {
        for place in 0..self.steps.len() {
            let result = self.reshape_layer(place);
            result.map_err(|error| self.at_layer(place, error))?;
        }
        self.share_memory()
    }

    fn expect_layers(&self, layers: &Range<usize>) -> Result<()> {
        let count = self.steps.len();
        if layers.start <= layers.end && layers.end <= count {
            return Ok(());
        }
        Err(Error::InvalidData(format!("the net has {count} layers, and so no layers {layers:?}")))
    }

    /// Sets the parameters' gradients to zero.
    ///
    /// # Errors
    /// Those of the device.
    #[doc(alias = "ClearParamDiffs")]
    pub fn clear_param_diffs(&self) -> Result<()> {
        for param in self.learnable_params() {
            self.device.fill(T::default(), param.blob().diff_mut()?.view_mut())?;
        }
        Ok(())
    }

    /// Shapes a layer's tops; they replace the net's, whose storage may have grown.
    pub(super) fn reshape_layer(&mut self, place: usize) -> Result<()> {
        let [bottom, mut top] = self.operands(place);
        let Self { steps, blobs, .. } = self;
        let NetLayer { layer, tops, .. } = &mut steps[place];
        layer.reshape(&bottom, &mut top)?;
        for (&id, top) in tops.iter().zip(top) {
            blobs[id].blob = top;
        }
        Ok(())
    }

    /// The function that the next layer, reshaped, applies in place to the only top of this one, if
    /// that is all there is to it.
    fn activation_after(&mut self, place: usize) -> Result<Option<Unary<f64>>> {
        let Some(next) = self.steps.get(place + 1) else { return Ok(None) };
        let step = &self.steps[place];
        let in_place = step.tops.len() == 1 && next.bottoms == step.tops && next.tops == step.tops;
        let mut weights = step.loss_weights.iter().chain(&next.loss_weights);
        let alone = in_place && weights.all(|&weight| weight == 0.0);
        if !alone || next.layer.fusible_activation().is_none() {
            return Ok(None);
        }
        let next = place + 1;
        self.reshape_layer(next).map_err(|error| self.at_layer(next, error))?;
        Ok(self.steps[next].layer.fusible_activation())
    }

    /// Runs a layer, reshaped, and a function of its top if it takes that upon itself; returns its
    /// share of the objective, and whether it does.
    fn forward_layer(&mut self, place: usize, function: Option<Unary<f64>>) -> Result<(f64, bool)> {
        self.seed_loss(place)?;
        let [bottom, top] = self.operands(place);
        let Self { device, steps, .. } = self;
        let layer = &mut steps[place].layer;
        let activated = match function {
            Some(function) => {
                let result = layer.forward_fused(device, &bottom, &top, function);
                let next = &steps[place + 1].param;
                result.map_err(|error| error.context(format!("as one with `{}`", next.name())))?
            }
            None => false,
        };
        let step = &mut self.steps[place];
        if !activated {
            step.layer.forward(&self.device, &bottom, &top)?;
        }
        let mut loss = 0.0;
        for (top, _) in top.iter().zip(&step.loss_weights).filter(|(_, weight)| **weight != 0.0) {
            loss += self.device.dot(top.data()?.view(), top.diff()?.view())?.to_f64();
        }
        Ok((loss, activated))
    }

    fn backward_layer(&mut self, place: usize) -> Result<()> {
        let [bottom, top] = self.operands(place);
        let NetLayer { layer, propagate_bottoms, propagate_params, .. } = &mut self.steps[place];
        let propagate = PropagateDown { bottom: propagate_bottoms, params: propagate_params };
        layer.backward(&self.device, &top, propagate, &bottom)
    }

    /// The gradient of the objective with respect to a weighted top is its weight.
    fn seed_loss(&self, place: usize) -> Result<()> {
        let step = &self.steps[place];
        for (&id, &weight) in step.tops.iter().zip(&step.loss_weights) {
            if weight != 0.0 {
                let mut diff = self.blobs[id].blob.diff_mut()?;
                self.device.fill(T::from_f64(weight.into()), diff.view_mut())?;
            }
        }
        Ok(())
    }

    /// Handles on a layer's bottoms and tops.
    fn operands(&self, place: usize) -> [Vec<Blob<T, D>>; 2] {
        let step = &self.steps[place];
        [&step.bottoms, &step.tops].map(|ids| self.handles(ids))
    }

    fn handles(&self, ids: &[usize]) -> Vec<Blob<T, D>> {
        ids.iter().map(|&id| self.blobs[id].blob.share()).collect()
    }

    pub(super) fn at_layer(&self, place: usize, error: Error) -> Error {
        let step = &self.steps[place];
        error.context(format!("layer `{}` ({})", step.param.name(), step.layer.kind()))
    }
}
