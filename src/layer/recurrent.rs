//! The shared implementation of the LSTM and RNN layers: parameters, matrix products and hidden
//! states.

use super::{
    linear::Linear,
    prelude::*,
    weight_bias::{filled_blob, filler},
};
use crate::{
    blob::ReadGuard,
    filler::Filler,
    limits,
    memory::{Src, View, ViewMut},
    op::{Axis, Binary, Gemm, Transpose},
    proto::LayerState,
};
use std::{iter, ops::Range};

#[derive(Clone, Copy, Default)]
pub(super) struct SequenceSizes {
    pub(super) steps: usize,
    /// The number of independent sequences in the batch.
    pub(super) streams: usize,
    /// The number of input elements per time step and stream.
    inputs: usize,
    /// The number of static input elements per stream; 0 if the layer has no static input.
    static_inputs: usize,
}

/// The parameters and intermediate blobs that LSTM layers and RNN layers have in common.
///
/// The first bottom holds the inputs `x` of shape steps × streams × …, and the second bottom holds
/// the sequence continuation indicators `cont` of shape steps × streams. An optional third bottom
/// holds a static input of shape streams × …, which is the same at all time steps. With
/// `expose_hidden`, the last bottoms hold the initial states.
///
/// Before activation, the *gates* of a time step are the sums `W_x·x + b (+ W_s·static) + W_h·(cont
/// · h)`. A single GEMM computes `W_x·x` for all time steps.
pub(super) struct Recurrent<T: Element> {
    /// The number of elements in the hidden state of a stream.
    outputs: usize,
    /// The number of gate elements per time step and stream.
    gates_len: usize,
    /// The number of states that are bottoms and tops of the layer; 0 without `expose_hidden`.
    exposed_states: usize,
    fillers: [Filler; 2],
    has_static_input: bool,
    pub(super) sizes: SequenceSizes,
    /// The parameters `W_x`, `b`, `W_s` if the layer has a static input, `W_h`, and the output
    /// parameters of the RNN layer.
    pub(super) params: Vec<Blob<T>>,
    /// The gates of all time steps; the diff holds the gradient of the gates.
    pub(super) gates: Blob<T>,
    /// The product `cont · h` for each time step, where `h` is the hidden state before the step.
    masked_hidden: Blob<T>,
    /// The product `W_s·static`; the diff holds the gradient of the product.
    static_gates: Blob<T>,
    last_hidden: Blob<T>,
    /// A blob whose data hold the gradient of the hidden state at the current time step. The diff
    /// of the blob holds the next time step's contribution to the gradient of the hidden state.
    hidden_gradient: Blob<T>,
}

impl<T: Element> Recurrent<T> {
    /// Creates the parameters and blobs of an LSTM or RNN layer with `gates` gates per output and
    /// `states` recurrent states.
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`] if `num_output` is 0, or an error if a filler's definition is
    /// invalid.
    pub(super) fn new(
        param: &LayerParameter,
        cx: &LayerContext<'_>,
        (gates, states): (usize, usize),
    ) -> Result<Self> {
        let param = param.recurrent_param.clone().unwrap_or_default();
        if param.num_output() == 0 {
            return invalid("recurrent_param: num_output must be positive");
        }
        let outputs = param.num_output() as usize;
        let blob = || Blob::new(cx.device, &[0]);
        Ok(Self {
            outputs,
            gates_len: gates * outputs,
            exposed_states: if param.expose_hidden() { states } else { 0 },
            fillers: [
                filler(&param.weight_filler, Filler::default())?,
                filler(&param.bias_filler, Filler::default())?,
            ],
            has_static_input: false,
            sizes: SequenceSizes::default(),
            params: Vec::new(),
            gates: blob()?,
            masked_hidden: blob()?,
            static_gates: blob()?,
            last_hidden: blob()?,
            hidden_gradient: blob()?,
        })
    }

    pub(super) fn arity(&self) -> Arity {
        let states = self.exposed_states;
        Arity::between(2 + states..=3 + states, 1 + states..=1 + states)
    }

    pub(super) fn outputs(&self) -> usize {
        self.outputs
    }

    /// Returns the range of the hidden states of time step `step` in a blob that holds the hidden
    /// states of all steps.
    pub(super) fn state_range(&self, step: usize) -> Range<usize> {
        let len = self.sizes.streams * self.outputs;
        step * len..(step + 1) * len
    }

    /// Returns the range of the gates of time step `step` in a blob that holds the gates of all
    /// steps.
    pub(super) fn gates_range(&self, step: usize) -> Range<usize> {
        let len = self.sizes.streams * self.gates_len;
        step * len..(step + 1) * len
    }

    /// Returns the range of the `cont` values of time step `step` in the second bottom.
    pub(super) fn cont_range(&self, step: usize) -> Range<usize> {
        step * self.sizes.streams..(step + 1) * self.sizes.streams
    }

    /// Returns the bottoms that hold the initial states; an empty slice without `expose_hidden`.
    pub(super) fn initial_states<'a>(&self, bottom: &'a [Blob<T>]) -> &'a [Blob<T>] {
        &bottom[bottom.len() - self.exposed_states..]
    }

    pub(super) fn setup(&mut self, cx: &LayerContext<'_>, bottom: &[Blob<T>]) -> Result<()> {
        self.has_static_input = bottom.len() > 2 + self.exposed_states;
        let SequenceSizes { inputs, static_inputs, .. } = self.sizes_of(bottom)?;
        self.params.clear();
        self.add_weights(cx, [self.gates_len, inputs])?;
        self.add_bias(cx, self.gates_len)?;
        if self.has_static_input {
            self.add_weights(cx, [self.gates_len, static_inputs])?;
        }
        self.add_weights(cx, [self.gates_len, self.outputs])
    }

    pub(super) fn add_weights(&mut self, cx: &LayerContext<'_>, shape: [usize; 2]) -> Result<()> {
        let weights = filled_blob(cx, &shape, &self.fillers[0], self.params.len() as u64)?;
        self.params.push(weights);
        Ok(())
    }

    pub(super) fn add_bias(&mut self, cx: &LayerContext<'_>, len: usize) -> Result<()> {
        let bias = filled_blob(cx, &[len], &self.fillers[1], self.params.len() as u64)?;
        self.params.push(bias);
        Ok(())
    }

    fn stream_axis(&self) -> Result<Axis> {
        Axis::new(1, self.sizes.streams, self.outputs)
    }

    fn hidden_weights(&self) -> usize {
        if self.has_static_input { 3 } else { 2 }
    }

    /// Derives the numbers of time steps, streams and inputs from the shapes of the bottoms.
    ///
    /// # Errors
    /// Returns [`Error::Shape`] if the shapes of the bottoms are inconsistent.
    fn sizes_of(&self, bottom: &[Blob<T>]) -> Result<SequenceSizes> {
        let (x, cont) = (bottom[0].shape(), bottom[1].shape());
        let shape_error = |operand: &str, expected: &str, found| {
            wrong_shape(format!("{operand}: expected shape {expected}, found {found}"))
        };
        if x.len() < 2 || x[0] == 0 {
            return shape_error("bottom 0 (x)", "[steps, streams, …] with at least one step", x);
        }
        let (steps, streams) = (x[0], x[1]);
        if **cont != [steps, streams] {
            return shape_error("bottom 1 (cont)", &format!("[{steps}, {streams}]"), cont);
        }
        let inputs = x.count_range(2, x.len())?;
        let mut static_inputs = 0;
        if self.has_static_input {
            let shape = bottom[2].shape();
            if shape.first() != Some(&streams) {
                return shape_error("bottom 2 (static)", &format!("[{streams}, …]"), shape);
            }
            static_inputs = shape.count_range(1, shape.len())?;
        }
        for (i, state) in self.initial_states(bottom).iter().enumerate() {
            if **state.shape() != [1, streams, self.outputs] {
                let expected = format!("[1, {streams}, {}]", self.outputs);
                return shape_error(&format!("initial state {i}"), &expected, state.shape());
            }
        }
        if steps > limits::TIME_STEPS {
            let limit = limits::TIME_STEPS;
            return wrong_shape(format!("found {steps} time steps, but the limit is {limit}"));
        }
        Ok(SequenceSizes { steps, streams, inputs, static_inputs })
    }

    /// Sets the shapes of the tops and of the intermediate blobs. Returns whether the number of
    /// streams changed; if so, the recurrent states are reset to zero.
    pub(super) fn reshape(
        &mut self,
        device: &AnyDevice,
        bottom: &[Blob<T>],
        top: &mut [Blob<T>],
    ) -> Result<bool> {
        let sizes = self.sizes_of(bottom)?;
        let SequenceSizes { steps, streams, inputs, static_inputs } = sizes;
        let weights_match = |index: usize, inputs| {
            self.params.get(index).is_some_and(|weights| weights.count() == self.gates_len * inputs)
        };
        if !weights_match(0, inputs) || self.has_static_input && !weights_match(2, static_inputs) {
            return wrong_shape(format!(
                "weights do not fit {inputs} inputs and {static_inputs} static inputs"
            ));
        }
        for (i, top) in top.iter_mut().enumerate() {
            top.reshape(&[if i == 0 { steps } else { 1 }, streams, self.outputs])?;
        }
        self.gates.reshape(&[steps, streams, self.gates_len])?;
        self.masked_hidden.reshape(&[steps, streams, self.outputs])?;
        self.hidden_gradient.reshape(&[streams, self.outputs])?;
        if self.has_static_input {
            self.static_gates.reshape(&[streams, self.gates_len])?;
        }
        let streams_changed = self.last_hidden.shape()[..] != [1, streams, self.outputs];
        if streams_changed {
            self.last_hidden = Blob::new(device, &[1, streams, self.outputs])?;
        }
        self.sizes = sizes;
        Ok(streams_changed)
    }

    /// Computes `gates ← W_x·x + b (+ W_s·static)` for all time steps.
    pub(super) fn input_gates(&self, device: &AnyDevice, bottom: &[Blob<T>]) -> Result<()> {
        let SequenceSizes { steps, streams, inputs, static_inputs } = self.sizes;
        if steps == 0 {
            return invalid("called before reshape");
        }
        let (x, b, mut gates) = (bottom[0].data()?, self.params[1].data()?, self.gates.data_mut()?);
        let product = Linear { rows: steps * streams, inputs, outputs: self.gates_len };
        product.forward(device, x.view(), &self.params[0], gates.view_mut())?;
        let axis = Axis::new(steps * streams, self.gates_len, 1)?;
        device.broadcast(Binary::Add, &axis, Src::InPlace, b.view(), gates.view_mut())?;
        if self.has_static_input {
            let (x, mut static_gates) = (bottom[2].data()?, self.static_gates.data_mut()?);
            let product = Linear { rows: streams, inputs: static_inputs, outputs: self.gates_len };
            product.forward(device, x.view(), &self.params[2], static_gates.view_mut())?;
            let axis = Axis::new(steps, streams * self.gates_len, 1)?;
            device.broadcast(
                Binary::Add,
                &axis,
                Src::InPlace,
                static_gates.view(),
                gates.view_mut(),
            )?;
        }
        Ok(())
    }

    /// Adds `W_h·(cont · h)` to the gates of time step `step`, where `h` is the hidden state before
    /// the step. The operand `hidden` holds the hidden states of all steps. For the first step, `h`
    /// is the initial state or the last hidden state of the preceding forward pass.
    pub(super) fn add_hidden_state(
        &self,
        device: &AnyDevice,
        step: usize,
        bottom: &[Blob<T>],
        hidden: View<'_, T, AnyDevice>,
        gates: ViewMut<'_, T, AnyDevice>,
    ) -> Result<()> {
        let initial_hidden;
        let h = match step.checked_sub(1) {
            Some(previous) => hidden.slice(self.state_range(previous))?,
            None => {
                initial_hidden =
                    self.initial_states(bottom).first().unwrap_or(&self.last_hidden).data()?;
                initial_hidden.view()
            }
        };
        let (cont, mut masked) = (bottom[1].data()?, self.masked_hidden.data_mut()?);
        let (cont, range) = (cont.view().slice(self.cont_range(step))?, self.state_range(step));
        let step_masked_hidden = masked.view_mut().slice(range.clone())?;
        device.broadcast(Binary::Mul, &self.stream_axis()?, h.into(), cont, step_masked_hidden)?;
        let (streams, w) = (self.sizes.streams, self.params[self.hidden_weights()].data()?);
        let (width, outputs) = (self.gates_len, self.outputs);
        let op = Gemm::new(streams, width, outputs).transpose(Transpose::No, Transpose::Yes);
        let gates = gates.slice(self.gates_range(step))?;
        device.gemm(&op.accumulate(), masked.view().slice(range)?, w.view(), gates)
    }

    /// Saves the hidden state after the last time step for the next forward pass. With
    /// `expose_hidden`, also copies the saved hidden state to the second top.
    pub(super) fn save_hidden(
        &self,
        device: &AnyDevice,
        h: View<'_, T, AnyDevice>,
        top: &[Blob<T>],
    ) -> Result<()> {
        device.copy(h, self.last_hidden.data_mut()?.view_mut())?;
        match top.get(1) {
            Some(top) => device.copy(h, top.data_mut()?.view_mut()),
            None => Ok(()),
        }
    }

    /// Returns the state of the layer: the last hidden state and the values of `others`. Returns
    /// `None` with `expose_hidden`, because bottoms then hold the initial states.
    pub(super) fn state(&self, others: &[&Blob<T>]) -> Result<Option<LayerState>> {
        if self.exposed_states > 0 {
            return Ok(None);
        }
        let blobs = iter::once(&self.last_hidden).chain(others.iter().copied());
        let blobs = blobs.map(|blob| blob.to_proto(false)).collect::<Result<_>>()?;
        Ok(Some(LayerState { blobs, ..Default::default() }))
    }

    /// Copies the values of a [`state`](Self::state) to the last hidden state and to `others`.
    ///
    /// # Errors
    /// Returns [`Error::Shape`] if the number or the shapes of the blobs differ from those of the
    /// state. If `set_state` fails, all blobs are unchanged.
    pub(super) fn set_state(&mut self, state: &LayerState, others: &mut [Blob<T>]) -> Result<()> {
        let expected = if self.exposed_states > 0 { 0 } else { 1 + others.len() };
        if state.blobs.len() != expected {
            let found = state.blobs.len();
            return wrong_shape(format!("state: expected {expected} blobs, found {found}"));
        }
        let mut blobs: Vec<_> = iter::once(&mut self.last_hidden).chain(others).collect();
        for (blob, proto) in blobs.iter().zip(&state.blobs) {
            blob.check_shape(proto)?;
        }
        for (blob, proto) in blobs.iter_mut().zip(&state.blobs) {
            blob.from_proto(proto, false)?;
        }
        Ok(())
    }

    /// Starts backpropagation through time with the gradient of the final hidden state, which is
    /// zero without `expose_hidden`.
    pub(super) fn begin_backward(
        &self,
        device: &AnyDevice,
        propagate: PropagateDown<'_>,
        top: &[Blob<T>],
    ) -> Result<()> {
        check_no_gradient(propagate.bottom, 1, "cont")?;
        let mut gradient = self.hidden_gradient.diff_mut()?;
        match top.get(1) {
            Some(top) => device.copy(top.diff()?.view(), gradient.view_mut()),
            None => device.fill(T::default(), gradient.view_mut()),
        }
    }

    /// Computes the gradient of the hidden state at a time step. The gradient of the hidden state
    /// is the sum of `dy`, the gradient of the top, and the contribution of the next time step.
    pub(super) fn hidden_gradient(
        &self,
        device: &AnyDevice,
        dy: View<'_, T, AnyDevice>,
    ) -> Result<ReadGuard<'_, T, AnyDevice>> {
        let (next, mut dh) = (self.hidden_gradient.diff()?, self.hidden_gradient.data_mut()?);
        device.binary(Binary::Add, dy.into(), next.view(), dh.view_mut())?;
        drop(dh);
        self.hidden_gradient.data()
    }

    /// Computes `cont · W_hᵀ·dgates`, the contribution of a time step to the gradient of the
    /// preceding hidden state.
    pub(super) fn propagate_hidden(
        &self,
        device: &AnyDevice,
        cont: View<'_, T, AnyDevice>,
        dgates: View<'_, T, AnyDevice>,
    ) -> Result<()> {
        let w = self.params[self.hidden_weights()].data()?;
        let mut dh = self.hidden_gradient.diff_mut()?;
        let op = Gemm::new(self.sizes.streams, self.outputs, self.gates_len);
        device.gemm(&op, dgates, w.view(), dh.view_mut())?;
        let axis = self.stream_axis()?;
        device.broadcast(Binary::Mul, &axis, Src::InPlace, cont, dh.view_mut())
    }

    /// Completes the backward pass: computes the gradients of the parameters and bottoms from the
    /// gradients of all gates and of the initial hidden state.
    pub(super) fn finish_backward(
        &self,
        device: &AnyDevice,
        propagate: PropagateDown<'_>,
        bottom: &[Blob<T>],
    ) -> Result<()> {
        let SequenceSizes { steps, streams, inputs, static_inputs } = self.sizes;
        let dgates = self.gates.diff()?;
        let all_steps = |inputs| Linear { rows: steps * streams, inputs, outputs: self.gates_len };
        if propagate.params[0] {
            let x = bottom[0].data()?;
            all_steps(inputs).weights_gradient(device, x.view(), dgates.view(), &self.params[0])?;
        }
        if propagate.params[1] {
            let (axis, mut db) =
                (Axis::new(steps * streams, self.gates_len, 1)?, self.params[1].diff_mut()?);
            device.sum_to_axis(&axis, T::acc(1.0), dgates.view(), db.view_mut())?;
        }
        if propagate.params[self.hidden_weights()] {
            let (h, w) = (self.masked_hidden.data()?, &self.params[self.hidden_weights()]);
            all_steps(self.outputs).weights_gradient(device, h.view(), dgates.view(), w)?;
        }
        if propagate.bottom[0] {
            let mut dx = bottom[0].diff_mut()?;
            all_steps(inputs).backward(device, dgates.view(), &self.params[0], dx.view_mut())?;
        }
        if self.has_static_input {
            let mut dstatic_gates = self.static_gates.diff_mut()?;
            let axis = Axis::new(steps, streams * self.gates_len, 1)?;
            device.sum_to_axis(&axis, T::acc(0.0), dgates.view(), dstatic_gates.view_mut())?;
            let product = Linear { rows: streams, inputs: static_inputs, outputs: self.gates_len };
            if propagate.params[2] {
                let x = bottom[2].data()?;
                let dy = dstatic_gates.view();
                product.weights_gradient(device, x.view(), dy, &self.params[2])?;
            }
            if propagate.bottom[2] {
                let mut dx = bottom[2].diff_mut()?;
                product.backward(device, dstatic_gates.view(), &self.params[2], dx.view_mut())?;
            }
        }
        match self.initial_states(bottom).first() {
            Some(h) if propagate.bottom[bottom.len() - self.exposed_states] => {
                device.copy(self.hidden_gradient.diff()?.view(), h.diff_mut()?.view_mut())
            }
            _ => Ok(()),
        }
    }
}
