//! Oracles for one time step of long short-term memory (LSTM), cell by cell.

use crate::{conformance::expected::Expected, op::Lstm};

/// Number of roundings allowed for one LSTM cell: the roundings of products and sums, and the
/// errors that OpenCL C allows for math functions.
const ROUNDINGS: f64 = 32.0;

/// Returns an expected value whose error bound allows [`ROUNDINGS`] roundings relative to
/// `magnitude`.
fn with_error(value: f64, magnitude: f64) -> Expected {
    Expected { value, magnitude, roundings: ROUNDINGS, inexact: true }
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// Returns the indices of the four gates of an LSTM cell.
fn gate_indices(op: &Lstm, cell: usize) -> [usize; 4] {
    let (stream, j) = (cell / op.outputs(), cell % op.outputs());
    [0, 1, 2, 3].map(|gate| (stream * 4 + gate) * op.outputs() + j)
}

/// Returns the gates, the cell states and the hidden states after one LSTM step.
pub(crate) fn lstm(op: &Lstm, c_prev: &[f64], cont: &[f64], x: &[f64]) -> [Vec<Expected>; 3] {
    let mut gates = vec![Expected::zero(); op.gates()];
    let (mut c, mut h) = (Vec::new(), Vec::new());
    for (cell, &c_prev) in c_prev.iter().enumerate() {
        let at = gate_indices(op, cell);
        let [i, f, o, g] = at.map(|at| x[at]);
        let f = cont[cell / op.outputs()] * sigmoid(f);
        let gate_values = [sigmoid(i), f, sigmoid(o), g.tanh()];
        at.iter().zip(gate_values).for_each(|(&at, gate)| gates[at] = with_error(gate, gate.abs()));
        let [i, f, o, g] = gate_values;
        let (value, magnitude) = (f * c_prev + i * g, (f * c_prev).abs() + (i * g).abs());
        c.push(with_error(value, magnitude));
        // The slope of tanh is at most 1, so the error of the hidden state is at most the error of
        // the cell state.
        h.push(with_error(o * value.tanh(), o.abs() * magnitude));
    }
    [gates, c, h]
}

/// Returns the gradients with respect to the cell states before an LSTM step, and with respect to
/// the inputs of the gates.
pub(crate) fn lstm_backward(
    op: &Lstm,
    [c_prev, c, dh, dc]: [&[f64]; 4],
    gates: &[f64],
) -> [Vec<Expected>; 2] {
    let (mut dc_prev, mut dgates) = (Vec::new(), vec![Expected::zero(); op.gates()]);
    for cell in 0..op.state() {
        let at = gate_indices(op, cell);
        let [i, f, o, g] = at.map(|at| gates[at]);
        let (t, dh) = (c[cell].tanh(), dh[cell]);
        let dc_from_h = dh * o * (1.0 - t * t);
        let (dcell, size) = (dc[cell] + dc_from_h, dc[cell].abs() + (dh * o).abs() * (1.0 + t * t));
        let product = |factors: f64, one_minus: f64| {
            let largest = 1.0 + one_minus.abs();
            with_error(dcell * factors * (1.0 - one_minus), size * factors.abs() * largest)
        };
        dgates[at[0]] = product(g * i, i);
        dgates[at[1]] = product(c_prev[cell] * f, f);
        let output = dh * t * o;
        dgates[at[2]] = with_error(output * (1.0 - o), output.abs() * (1.0 + o.abs()));
        dgates[at[3]] = product(i, g * g);
        dc_prev.push(with_error(dcell * f, size * f.abs()));
    }
    [dc_prev, dgates]
}
