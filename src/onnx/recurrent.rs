//! Export of LSTM, RNN and LSTMUnit, unrolled over the time steps.
//!
//! The model starts each run with states of zero, unless the states are bottoms of the layer. Caffe
//! starts with the states of the preceding pass, which `cont` usually masks.

use super::{layer_export::LayerExport, shapes::split};
use crate::{error::Result, limits, shape::Shape};

/// The sizes and the operands of an unrolled layer.
struct Sequence {
    outputs: usize,
    /// For each step, the sum of the products with the inputs, of shape 1 × streams × gates.
    gates: Vec<String>,
    /// For each step, the continuation indicators, of shape 1 × streams × 1.
    cont: Vec<String>,
    /// The transposed weights of the hidden state.
    hidden_weights: String,
    /// The initial states; empty without `expose_hidden`.
    initial: Vec<String>,
}

/// Adds nodes that compute the products of all steps that do not depend on the hidden state.
/// `states` is the number of the layer's states, and `gates` the number of gates per output.
fn sequence(cx: &mut LayerExport<'_>, states: usize, gates: usize) -> Result<Sequence> {
    let param = cx.param.recurrent_param.clone().unwrap_or_default();
    let outputs = param.num_output() as usize;
    let exposed = if param.expose_hidden() { states } else { 0 };
    let (steps, streams) = (cx.bottoms[0].shape[0], cx.bottoms[0].shape[1]);
    let limit = limits::UNROLLED_STEPS;
    if steps > limit {
        return cx.refuse(&format!("found {steps} time steps, but the limit is {limit}"));
    }
    let width = gates * outputs;
    let x = flattened(cx, 0, 2)?;
    let (weights, bias) = (cx.parameter(0)?, cx.parameter(1)?);
    let product = cx.node("Gemm", &[&x, &weights, &bias]).int("transB", 1).value();
    let mut sums = cx.reshape(&product, &[steps, streams, width]);
    let has_static_input = cx.bottoms.len() > 2 + exposed;
    if has_static_input {
        let (x, weights) = (flattened(cx, 2, 1)?, cx.parameter(2)?);
        let product = cx.node("Gemm", &[&x, &weights]).int("transB", 1).value();
        sums = cx.node("Add", &[&sums, &product]).value();
    }
    let hidden_weights = cx.parameter(if has_static_input { 3 } else { 2 })?;
    let hidden_weights = cx.node("Transpose", &[&hidden_weights]).ints("perm", &[1, 0]).value();
    let cont = cx.bottom(1);
    let cont = cx.reshape(&cont, &[steps, streams, 1]);
    let first_state = cx.bottoms.len() - exposed;
    Ok(Sequence {
        outputs,
        gates: per_step(cx, &sums, steps),
        cont: per_step(cx, &cont, steps),
        hidden_weights,
        initial: (first_state..cx.bottoms.len()).map(|i| cx.bottom(i)).collect(),
    })
}

/// Flattens a bottom to a matrix, whose rows cover the axes before `axis`.
fn flattened(cx: &mut LayerExport<'_>, bottom: usize, axis: usize) -> Result<String> {
    let shape = cx.shape(bottom)?;
    let row = shape.count_range(axis, shape.len())?;
    let x = cx.bottom(bottom);
    Ok(cx.reshape(&x, &[Shape::new(&shape[..axis])?.count(), row]))
}

fn per_step(cx: &mut LayerExport<'_>, x: &str, steps: usize) -> Vec<String> {
    match steps {
        1 => vec![x.to_owned()],
        _ => split(cx, x, 0, &vec![1; steps]),
    }
}

impl Sequence {
    /// Adds nodes that compute the gates of a step: the product with the hidden state `h`, masked
    /// by `cont`, and the products with the inputs. `h` is `None` for a state of zero.
    fn step_gates(&self, cx: &mut LayerExport<'_>, step: usize, h: Option<&str>) -> String {
        let Some(h) = h else { return self.gates[step].clone() };
        let masked = cx.node("Mul", &[h, &self.cont[step]]).value();
        let product = cx.node("MatMul", &[&masked, &self.hidden_weights]).value();
        cx.node("Add", &[&self.gates[step], &product]).value()
    }
}

pub(super) fn lstm(cx: &mut LayerExport<'_>) -> Result<()> {
    let sequence = sequence(cx, 2, 4)?;
    let mut h = sequence.initial.first().cloned();
    let mut c = sequence.initial.get(1).cloned();
    let mut hidden = Vec::new();
    for step in 0..sequence.gates.len() {
        let gates = sequence.step_gates(cx, step, h.as_deref());
        let cont = &sequence.cont[step];
        let (next_c, next_h) = lstm_step(cx, &gates, cont, c.as_deref(), sequence.outputs);
        hidden.push(next_h.clone());
        (c, h) = (Some(next_c), Some(next_h));
    }
    set_sequence_tops(cx, &hidden, &[h, c]);
    Ok(())
}

pub(super) fn rnn(cx: &mut LayerExport<'_>) -> Result<()> {
    let sequence = sequence(cx, 1, 1)?;
    let mut h = sequence.initial.first().cloned();
    let (weights, bias) = (cx.params.len() - 2, cx.params.len() - 1);
    let (weights, bias) = (cx.parameter(weights)?, cx.parameter(bias)?);
    let mut outputs = Vec::new();
    for step in 0..sequence.gates.len() {
        let gates = sequence.step_gates(cx, step, h.as_deref());
        let next_h = cx.node("Tanh", &[&gates]).value();
        let streams = cx.bottoms[0].shape[1];
        let rows = cx.reshape(&next_h, &[streams, sequence.outputs]);
        let product = cx.node("Gemm", &[&rows, &weights, &bias]).int("transB", 1).value();
        let output = cx.node("Tanh", &[&product]).value();
        let axes = cx.integers(&[0]);
        outputs.push(cx.node("Unsqueeze", &[&output, &axes]).value());
        h = Some(next_h);
    }
    set_sequence_tops(cx, &outputs, &[h]);
    Ok(())
}

/// Sets the first top to the outputs of all steps, and the other tops to the final states.
fn set_sequence_tops(cx: &mut LayerExport<'_>, outputs: &[String], states: &[Option<String>]) {
    // Give each top a separate Identity operator, because a state may also be the output of the
    // last step.
    let y = cx.concat(outputs, 0);
    cx.set_top(0, &y);
    for (i, state) in states.iter().flatten().enumerate().take(cx.tops.len() - 1) {
        let copy = cx.node("Identity", &[state]).value();
        cx.set_top(1 + i, &copy);
    }
}

pub(super) fn lstm_unit(cx: &mut LayerExport<'_>) -> Result<()> {
    let [c, gates, cont] = [0, 1, 2].map(|i| cx.bottom(i));
    let (streams, outputs) = (cx.bottoms[0].shape[1], cx.bottoms[0].shape[2]);
    let cont = cx.reshape(&cont, &[1, streams, 1]);
    let (c, h) = lstm_step(cx, &gates, &cont, Some(&c), outputs);
    cx.set_top(0, &c);
    cx.set_top(1, &h);
    Ok(())
}

/// Adds nodes that compute one step of an LSTM: `c = cont·σ(f)·c_prev + σ(i)·tanh(g)` and `h =
/// σ(o)·tanh(c)`. The gates are in the order i, f, o, g. Returns `c` and `h`.
fn lstm_step(
    cx: &mut LayerExport<'_>,
    gates: &str,
    cont: &str,
    c: Option<&str>,
    outputs: usize,
) -> (String, String) {
    let gates = split(cx, gates, 2, &[outputs as i64; 4]);
    let [i, f, o] = [0, 1, 2].map(|gate: usize| cx.node("Sigmoid", &[&gates[gate]]).value());
    let g = cx.node("Tanh", &[&gates[3]]).value();
    let mut next_c = cx.node("Mul", &[&i, &g]).value();
    if let Some(c) = c {
        let f = cx.node("Mul", &[cont, &f]).value();
        let kept = cx.node("Mul", &[&f, c]).value();
        next_c = cx.node("Add", &[&kept, &next_c]).value();
    }
    let tanh = cx.node("Tanh", &[&next_c]).value();
    let h = cx.node("Mul", &[&o, &tanh]).value();
    (next_c, h)
}
