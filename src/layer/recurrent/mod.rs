//! What recurrent layers have in common: sequences, their inputs' part of every step, and the
//! way of the hidden state from one step to the next.

mod backward;
mod forward;

use super::{
    Arity, LayerContext,
    weight_bias::{filled, filler},
};
use crate::{
    blob::Blob,
    device::Device,
    element::Element,
    error::{Error, Result},
    filler::Filler,
    op::Axis,
    proto::LayerParameter,
};
use std::ops::Range;

/// Extents of the bottoms.
#[derive(Clone, Copy, Default)]
pub(super) struct Sequences {
    /// Time steps.
    pub(super) steps: usize,
    /// Independent sequences, side by side.
    pub(super) streams: usize,
    /// Elements of an input.
    inputs: usize,
    /// Elements of a static input; 0 if there is none.
    statics: usize,
}

/// Bottoms are inputs `x` of steps × streams × …, `cont` of steps × streams, then perhaps a static
/// input of streams × …, then the states before the first step if they are exposed.
///
/// A step's *gates* start as `W_x·x + b (+ W_s·static) + W_h·(cont · h)`, of which all but the
/// last term is one product for the whole sequence.
pub(super) struct Recurrent<T: Element, D: Device> {
    /// Elements of a hidden state.
    outputs: usize,
    /// Gates in all.
    width: usize,
    /// Exposed states.
    exposed: usize,
    fillers: [Filler; 2],
    has_statics: bool,
    pub(super) extents: Sequences,
    /// `W_x`, `b`, `W_s` if there is a static input, `W_h`, then what the layer adds.
    pub(super) params: Vec<Blob<T, D>>,
    /// Of all steps; diff: what they were made of.
    pub(super) gates: Blob<T, D>,
    /// `cont · h` before each step.
    before: Blob<T, D>,
    /// The static input's part, and its gradient.
    statics: Blob<T, D>,
    /// Hidden state after the last step.
    last: Blob<T, D>,
    /// Gradient of the hidden state: data of a step's, diff of what the step before it passes on.
    gradient: Blob<T, D>,
}

impl<T: Element, D: Device> Recurrent<T, D> {
    /// A layer with `gates` gates an output and `states` states.
    ///
    /// # Errors
    /// [`Error::InvalidData`] without a positive `num_output`; those of the fillers.
    pub(super) fn new(
        param: &LayerParameter,
        cx: &LayerContext<'_, D>,
        (gates, states): (usize, usize),
    ) -> Result<Self> {
        let param = param.recurrent_param.clone().unwrap_or_default();
        if param.num_output() == 0 {
            return Err(Error::InvalidData("recurrent_param needs a positive num_output".into()));
        }
        let outputs = param.num_output() as usize;
        let blob = || Blob::new(cx.device, &[0]);
        Ok(Self {
            outputs,
            width: gates * outputs,
            exposed: if param.expose_hidden() { states } else { 0 },
            fillers: [filler(&param.weight_filler)?, filler(&param.bias_filler)?],
            has_statics: false,
            extents: Sequences::default(),
            params: Vec::new(),
            gates: blob()?,
            before: blob()?,
            statics: blob()?,
            last: blob()?,
            gradient: blob()?,
        })
    }

    pub(super) fn arity(&self) -> Arity {
        let states = self.exposed;
        Arity::between(2 + states..=3 + states, 1 + states..=1 + states)
    }

    pub(super) fn outputs(&self) -> usize {
        self.outputs
    }

    /// Where a step's states lie among those of all steps.
    pub(super) fn row(&self, step: usize) -> Range<usize> {
        let len = self.extents.streams * self.outputs;
        step * len..(step + 1) * len
    }

    /// Where a step's gates lie.
    pub(super) fn gates_row(&self, step: usize) -> Range<usize> {
        let len = self.extents.streams * self.width;
        step * len..(step + 1) * len
    }

    /// Where a step's `cont` lies.
    pub(super) fn cont_row(&self, step: usize) -> Range<usize> {
        step * self.extents.streams..(step + 1) * self.extents.streams
    }

    /// The given states among the bottoms, if they are exposed.
    pub(super) fn given<'a>(&self, bottom: &'a [Blob<T, D>]) -> &'a [Blob<T, D>] {
        &bottom[bottom.len() - self.exposed..]
    }

    /// Makes the parameters.
    pub(super) fn setup(&mut self, cx: &LayerContext<'_, D>, bottom: &[Blob<T, D>]) -> Result<()> {
        self.has_statics = bottom.len() > 2 + self.exposed;
        let Sequences { inputs, statics, .. } = self.measure(bottom)?;
        self.params.clear();
        self.add_weights(cx, [self.width, inputs])?;
        self.add_bias(cx, self.width)?;
        if self.has_statics {
            self.add_weights(cx, [self.width, statics])?;
        }
        self.add_weights(cx, [self.width, self.outputs])
    }

    pub(super) fn add_weights(
        &mut self,
        cx: &LayerContext<'_, D>,
        shape: [usize; 2],
    ) -> Result<()> {
        let weights = filled(cx, &shape, &self.fillers[0], self.params.len() as u64)?;
        self.params.push(weights);
        Ok(())
    }

    pub(super) fn add_bias(&mut self, cx: &LayerContext<'_, D>, len: usize) -> Result<()> {
        let bias = filled(cx, &[len], &self.fillers[1], self.params.len() as u64)?;
        self.params.push(bias);
        Ok(())
    }

    /// A state's streams as an axis.
    fn each_stream(&self) -> Result<Axis> {
        Axis::new(1, self.extents.streams, self.outputs)
    }

    /// Place of `W_h` among the parameters.
    fn recurrent(&self) -> usize {
        if self.has_statics { 3 } else { 2 }
    }

    /// The bottoms' extents, if they fit each other.
    fn measure(&self, bottom: &[Blob<T, D>]) -> Result<Sequences> {
        let (x, cont) = (bottom[0].shape(), bottom[1].shape());
        let wrong = |which: &str, shape, want: String| {
            Err(Error::Shape(format!("{which} has shape {shape}, not {want}")))
        };
        if x.len() < 2 || x[0] == 0 {
            return wrong("bottom 0 (x)", x, "steps × streams × …, of at least one step".into());
        }
        let (steps, streams) = (x[0], x[1]);
        if **cont != [steps, streams] {
            return wrong("bottom 1 (cont)", cont, format!("{steps} × {streams}, as x begins"));
        }
        let inputs = x.count_range(2, x.len())?;
        let mut statics = 0;
        if self.has_statics {
            let shape = bottom[2].shape();
            if shape.first() != Some(&streams) {
                return wrong("bottom 2 (static)", shape, format!("{streams} streams × …"));
            }
            statics = shape.count_range(1, shape.len())?;
        }
        for (i, state) in self.given(bottom).iter().enumerate() {
            let want = [1, streams, self.outputs];
            if **state.shape() != want {
                let which = format!("given state {i}");
                return wrong(&which, state.shape(), format!("1 × {streams} × {}", self.outputs));
            }
        }
        Ok(Sequences { steps, streams, inputs, statics })
    }

    /// Shapes the tops and what is kept between them; says whether there are other streams than
    /// before, whose states are then zero.
    pub(super) fn reshape(
        &mut self,
        device: &D,
        bottom: &[Blob<T, D>],
        top: &mut [Blob<T, D>],
    ) -> Result<bool> {
        let extents = self.measure(bottom)?;
        let fit = |place: usize, inputs| {
            self.params.get(place).is_some_and(|weights| weights.count() == self.width * inputs)
        };
        if !fit(0, extents.inputs) || self.has_statics && !fit(2, extents.statics) {
            let Sequences { inputs, statics, .. } = extents;
            let why = format!("the weights are not for {inputs} inputs and {statics} static ones");
            return Err(Error::Shape(why));
        }
        let Sequences { steps, streams, .. } = extents;
        for (i, top) in top.iter_mut().enumerate() {
            top.reshape(&[if i == 0 { steps } else { 1 }, streams, self.outputs])?;
        }
        self.gates.reshape(&[steps, streams, self.width])?;
        self.before.reshape(&[steps, streams, self.outputs])?;
        self.gradient.reshape(&[streams, self.outputs])?;
        if self.has_statics {
            self.statics.reshape(&[streams, self.width])?;
        }
        let others = self.last.shape()[..] != [1, streams, self.outputs];
        if others {
            self.last = Blob::new(device, &[1, streams, self.outputs])?;
        }
        self.extents = extents;
        Ok(others)
    }
}
