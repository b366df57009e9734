//! Forward and backward passes of a net.

use super::graph::{Net, NetLayer};
use crate::{
    blob::Blob,
    element::{Element, compiled_for},
    error::{Error, Result},
    kernel::traits::*,
    layer::PropagateDown,
    memory::{
        ledger::{self, LayerPass, LayerScope},
        trace::{self, Pass, SpanStart, Work},
    },
    op::Unary,
};
use std::ops::Range;

impl<T: Element> Net<T> {
    /// Runs the forward pass of all layers. Returns the objective, the sum of `weight · top` over
    /// all loss tops.
    ///
    /// # Errors
    /// If a layer fails, returns the layer's error together with the layer's name.
    pub fn forward(&mut self) -> Result<f64> {
        self.forward_layers(0..self.nodes.len())
    }

    /// Runs the forward pass of the layers whose indices are in `layers`, and returns the
    /// contribution of these layers to the objective. A layer and the in-place activation layer
    /// after it may run as one fused kernel if the range contains both layers. The result of the
    /// fused kernel is bit-identical to the result of two separate kernels, unless a GPU computes
    /// the kernel with cuBLASLt.
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`] if `layers` extends beyond the last layer of the net. If a
    /// layer fails, returns the layer's error together with the layer's name.
    #[doc(alias = "ForwardFromTo")]
    #[doc(alias = "ForwardTo")]
    pub fn forward_layers(&mut self, layers: Range<usize>) -> Result<f64> {
        compiled_for!(T, fn(&mut Net<T>, Range<usize>) -> Result<f64> = Net::run_forward)(
            self, layers,
        )
    }

    fn run_forward(&mut self, layers: Range<usize>) -> Result<f64> {
        self.check_range(&layers)?;
        let (mut loss, mut layers) = (0.0, layers);
        while !layers.is_empty() {
            loss += self.forward_first(&mut layers)?;
        }
        Ok(loss)
    }

    /// Runs the forward pass of the first layer in `layers`. If the next layer in `layers` is an
    /// activation layer that can be fused with the first layer, runs both layers as one kernel.
    /// Removes the executed layers from `layers`. Returns the contribution of the executed layers
    /// to the objective, or 0 if the range is empty.
    ///
    /// # Errors
    /// Returns the same errors as [`forward_layers`](Self::forward_layers).
    pub fn forward_first(&mut self, layers: &mut Range<usize>) -> Result<f64> {
        self.check_range(layers)?;
        let Some(index) = layers.next() else { return Ok(0.0) };
        let (span, _layer) = (trace::start(), self.enter_layer(index, Pass::Forward));
        self.reshape_layer(index).map_err(|error| self.in_layer(index, error))?;
        let has_next = index + 1 < layers.end;
        let activation = if has_next { self.activation_after(index)? } else { None };
        let result = self.forward_layer(index, activation);
        let (loss, is_fused) = result.map_err(|error| self.in_layer(index, error))?;
        if is_fused {
            layers.next();
        }
        self.end_span(span, index, is_fused, Pass::Forward);
        Ok(loss)
    }

    /// Runs the backward pass of every layer that needs one. The layers add the gradients of the
    /// parameters to the previous contents of the parameters' diffs.
    ///
    /// # Errors
    /// If a layer fails, returns the layer's error together with the layer's name.
    pub fn backward(&mut self) -> Result<()> {
        self.backward_layers(0..self.nodes.len())
    }

    /// Runs the backward pass of the layers whose indices are in `layers`, from the last to the
    /// first, like [`backward`](Self::backward).
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`] if `layers` extends beyond the last layer of the net. If a
    /// layer fails, returns the layer's error together with the layer's name.
    #[doc(alias = "BackwardFromTo")]
    #[doc(alias = "BackwardFrom")]
    pub fn backward_layers(&mut self, layers: Range<usize>) -> Result<()> {
        compiled_for!(T, fn(&mut Net<T>, Range<usize>) -> Result<()> = Net::run_backward)(
            self, layers,
        )
    }

    fn run_backward(&mut self, layers: Range<usize>) -> Result<()> {
        self.check_range(&layers)?;
        if self.live_ranges.is_some() {
            let reason = "backward pass: the net reuses memory; build it without `reuse_memory`";
            return Err(Error::InvalidData(reason.into()));
        }
        for index in layers.rev() {
            if self.nodes[index].backward {
                let (span, _layer) = (trace::start(), self.enter_layer(index, Pass::Backward));
                self.backward_layer(index).map_err(|error| self.in_layer(index, error))?;
                self.end_span(span, index, false, Pass::Backward);
            }
        }
        Ok(())
    }

    /// Runs the backward pass of every layer that needs one, from the last layer to the first, and
    /// calls `after` with the index of each layer, when the gradients of its parameters are complete.
    pub(crate) fn backward_with(
        &mut self,
        after: &mut dyn FnMut(usize) -> Result<()>,
    ) -> Result<()> {
        for index in (0..self.nodes.len()).rev() {
            self.run_backward(index..index + 1)?;
            after(index)?;
        }
        Ok(())
    }

    /// Derives the shapes of all blobs from the current shapes of the net's inputs. If the net
    /// reuses memory, `reshape` also reassigns storage to the blobs.
    ///
    /// # Errors
    /// If a layer fails, returns the layer's error together with the layer's name.
    #[doc(alias = "Reshape")]
    pub fn reshape(&mut self) -> Result<()> {
        compiled_for!(T, fn(&mut Net<T>) -> Result<()> = Net::reshape_layers)(self)
    }

    fn reshape_layers(&mut self) -> Result<()> {
        for index in 0..self.nodes.len() {
            self.reshape_layer(index).map_err(|error| self.in_layer(index, error))?;
        }
        self.share_memory()
    }

    fn check_range(&self, layers: &Range<usize>) -> Result<()> {
        let count = self.nodes.len();
        if layers.start <= layers.end && layers.end <= count {
            return Ok(());
        }
        Err(Error::InvalidData(format!(
            "invalid layer range {layers:?}: the net has {count} layers"
        )))
    }

    /// Sets the gradients of the parameters to zero.
    ///
    /// # Errors
    /// Propagates errors from the device.
    #[doc(alias = "ClearParamDiffs")]
    pub fn clear_param_diffs(&self) -> Result<()> {
        for param in self.learnable_params() {
            self.device.fill(T::default(), param.blob().diff_mut()?.view_mut())?;
        }
        Ok(())
    }

    /// Reshapes the tops of the layer with index `index`. Replaces the net's handles to the tops,
    /// because reshaping may have replaced the storage.
    pub(super) fn reshape_layer(&mut self, index: usize) -> Result<()> {
        let [bottom, mut top] = self.operands(index);
        let Self { nodes, blobs, .. } = self;
        let NetLayer { layer, tops, .. } = &mut nodes[index];
        layer.reshape(&bottom, &mut top)?;
        for (&id, top) in tops.iter().zip(top) {
            blobs[id].blob = top;
        }
        Ok(())
    }

    /// Returns the activation function of the next layer if the net can fuse this function into the
    /// layer with index `index`. The net can fuse two layers if the second layer runs in place on
    /// the first layer's only top, and neither layer has a loss weight.
    fn activation_after(&mut self, index: usize) -> Result<Option<Unary<f64>>> {
        let Some(next) = self.nodes.get(index + 1) else { return Ok(None) };
        let node = &self.nodes[index];
        let in_place = node.tops.len() == 1 && next.bottoms == node.tops && next.tops == node.tops;
        let mut weights = node.loss_weights.iter().chain(&next.loss_weights);
        let is_fusible = in_place && weights.all(|&weight| weight == 0.0);
        if !is_fusible || next.layer.fusible_activation().is_none() {
            return Ok(None);
        }
        let next = index + 1;
        self.reshape_layer(next).map_err(|error| self.in_layer(next, error))?;
        Ok(self.nodes[next].layer.fusible_activation())
    }

    /// Runs the forward pass of a layer, fused with `activation` if the layer supports fusion. The
    /// caller has already reshaped the layer. Returns the layer's contribution to the objective,
    /// and whether the activation was fused.
    fn forward_layer(
        &mut self,
        index: usize,
        activation: Option<Unary<f64>>,
    ) -> Result<(f64, bool)> {
        self.seed_loss(index)?;
        let [bottom, top] = self.operands(index);
        let Self { device, nodes, .. } = self;
        let layer = &mut nodes[index].layer;
        let is_fused = match activation {
            Some(function) => {
                let result = layer.forward_fused(device, &bottom, &top, function);
                let next = nodes[index + 1].param.name();
                result.map_err(|error| error.context(format!("fused with `{next}`")))?
            }
            None => false,
        };
        let node = &mut self.nodes[index];
        if !is_fused {
            node.layer.forward(&self.device, &bottom, &top)?;
        }
        let mut loss = 0.0;
        for (top, _) in top.iter().zip(&node.loss_weights).filter(|(_, weight)| **weight != 0.0) {
            loss += self.device.dot(top.data()?.view(), top.diff()?.view())?.to_f64();
        }
        Ok((loss, is_fused))
    }

    fn backward_layer(&mut self, index: usize) -> Result<()> {
        let [bottom, top] = self.operands(index);
        let NetLayer { layer, propagate_bottoms, propagate_params, .. } = &mut self.nodes[index];
        let propagate = PropagateDown { bottom: propagate_bottoms, params: propagate_params };
        layer.backward(&self.device, &top, propagate, &bottom)
    }

    /// Attributes the accesses of the calling thread to a pass of the layer with index `index` until
    /// the returned guard is dropped. Names the memories of the layer's tops and parameters, so that
    /// open traces and diagnoses show these names.
    fn enter_layer(&self, index: usize, pass: Pass) -> LayerScope {
        ledger::enter_layer(|| {
            let node = &self.nodes[index];
            let layer = node.param.name();
            for &id in &node.tops {
                self.blobs[id].blob.set_first_name(&self.blobs[id].name);
            }
            for param in self.params.iter().filter(|param| param.layer == index) {
                param.blob.set_first_name(&format!("parameter {} of {layer}", param.index));
            }
            LayerPass { name: layer.into(), pass }
        })
    }

    /// Ends the span of a pass of the layer with index `index`. If `is_fused` is true, the pass
    /// included the next layer.
    fn end_span(&self, span: SpanStart, index: usize, is_fused: bool, pass: Pass) {
        span.finish(|| {
            let name = |index: usize| self.nodes[index].param.name().into();
            Work::Layer { name: name(index), fused: is_fused.then(|| name(index + 1)), pass }
        });
    }

    /// Fills the diff of each loss top of a layer with the top's loss weight, the gradient of the
    /// objective with respect to the top.
    fn seed_loss(&self, index: usize) -> Result<()> {
        let node = &self.nodes[index];
        for (&id, &weight) in node.tops.iter().zip(&node.loss_weights) {
            if weight != 0.0 {
                let mut diff = self.blobs[id].blob.diff_mut()?;
                self.device.fill(T::from_f64(weight.into()), diff.view_mut())?;
            }
        }
        Ok(())
    }

    fn operands(&self, index: usize) -> [Vec<Blob<T>>; 2] {
        let node = &self.nodes[index];
        [&node.bottoms, &node.tops]
            .map(|ids| ids.iter().map(|&id| self.blobs[id].blob.share()).collect())
    }
}
