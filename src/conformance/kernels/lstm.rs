//! Steps of long short-term memory.

use super::harness::{call, refuses_lengths, tries};
use crate::{
    conformance::{
        runner::CheckRunner,
        check::{Check, checks},
        failure::Verdict,
        operand::unset,
        oracle::lstm as oracle,
        values::wide,
    },
    device::Device,
    element::Element,
    error::Result,
    op::Lstm,
};
use proptest::prelude::*;

pub(super) fn checks<D: Device>() -> Vec<Check<D>> {
    checks! {
        "lstm" of "lstm": lstm();
        "lstm_backward" of "lstm_backward": lstm_backward();
    }
}

fn lstm<T: Element, D: Device>(bench: &CheckRunner<'_, D>) -> Verdict {
    let device = bench.device;
    tries(bench, steps()?, any_step(), |op, how| {
        let mut draw = how.draw();
        let (c_prev, x) = (draw.take::<T>(op.state()), draw.take::<T>(op.gates()));
        let parts = draw.below(3, op.streams());
        let cont: Vec<_> = parts.into_iter().map(|i| T::from_f64(i as f64 / 2.0)).collect();
        let before = unset(op.state());
        let inputs = [("c_prev", &c_prev[..], how.at[0]), ("cont", &cont[..], how.at[1])];
        let [c, h] = [("c", how.at[3]), ("h", how.at[4])].map(|(name, at)| (name, &before[..], at));
        let outputs = [("gates", &x[..], how.at[2]), c, h];
        let got = call(bench, inputs, outputs, |[c_prev, cont], [gates, c, h]| {
            device.lstm(op, c_prev, cont, gates, c, h)
        })?;
        let want = oracle::lstm(op, &wide(&c_prev), &wide(&cont), &wide(&x));
        let each = ["gates", "c", "h"].into_iter().zip(&got).zip(&want);
        each.into_iter().try_for_each(|((name, got), want)| how.values.judge(name, got, want))
    })?;
    let op = Lstm::new(2, 3)?;
    let inputs = [("c_prev", op.state()), ("cont", op.streams())];
    let outputs = [("gates", op.gates()), ("c", op.state()), ("h", op.state())];
    refuses_lengths::<T, D, _, _>(bench, inputs, outputs, |[c_prev, cont], [gates, c, h]| {
        device.lstm(&op, c_prev, cont, gates, c, h)
    })
}

fn lstm_backward<T: Element, D: Device>(bench: &CheckRunner<'_, D>) -> Verdict {
    let device = bench.device;
    tries(bench, steps()?, any_step(), |op, how| {
        let mut draw = how.draw();
        let [c_prev, c, dh, dc] = [(); 4].map(|()| draw.take::<T>(op.state()));
        let gates = draw.take::<T>(op.gates());
        let inputs = [("c_prev", &c_prev, 0), ("c", &c, 1), ("dh", &dh, 2)];
        let inputs = inputs.map(|(name, values, at)| (name, &values[..], how.at[at]));
        let outputs = [("dc", &dc[..], how.at[3]), ("gates", &gates[..], how.at[4])];
        let got = call(bench, inputs, outputs, |[c_prev, c, dh], [dc, gates]| {
            device.lstm_backward(op, c_prev, c, dh, dc, gates)
        })?;
        let states = [&c_prev, &c, &dh, &dc].map(|state| wide(state));
        let want =
            oracle::lstm_backward(op, states.each_ref().map(|state| &state[..]), &wide(&gates));
        let each = ["dc", "gates"].into_iter().zip(&got).zip(&want);
        each.into_iter().try_for_each(|((name, got), want)| how.values.judge(name, got, want))
    })?;
    let op = Lstm::new(2, 3)?;
    let inputs = ["c_prev", "c", "dh"].map(|name| (name, op.state()));
    let outputs = [("dc", op.state()), ("gates", op.gates())];
    refuses_lengths::<T, D, _, _>(bench, inputs, outputs, |[c_prev, c, dh], [dc, gates]| {
        device.lstm_backward(&op, c_prev, c, dh, dc, gates)
    })
}

/// Nothing, one cell, more streams than cells and the reverse, more than a block.
fn steps() -> Result<Vec<Lstm>> {
    [(0, 3), (3, 0), (1, 1), (7, 2), (2, 9), (33, 40), (3, 5)]
        .into_iter()
        .map(|(streams, outputs)| Lstm::new(streams, outputs))
        .collect()
}

fn any_step() -> impl Strategy<Value = Lstm> {
    (0..=9usize, 0..=40usize)
        .prop_filter_map("too large", |(streams, outputs)| Lstm::new(streams, outputs).ok())
}
