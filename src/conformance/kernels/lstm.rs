//! Checks of single time steps of long short-term memory (LSTM).

use super::prelude::*;
use crate::{conformance::oracle::lstm as oracle, op::Lstm};

checks! {
    "lstm" of "lstm": lstm();
    "lstm_backward" of "lstm_backward": lstm_backward();
}

fn lstm<T: Element>(runner: &CheckRunner<'_>) -> Verdict {
    let streams = [Lstm::new(PERIOD, 1)?, Lstm::new(PERIOD * ROW_COPIES, 1)?];
    runner.try_kernel(
        &cases()?.and_large(streams, ROW_COPIES, &[]),
        |op, setup| {
            let mut stream = setup.stream();
            let (c_prev, x) = (stream.take::<T>(op.state()), stream.take(op.gates()));
            let twice_cont = stream.indices(3, op.streams()).into_iter();
            let cont = twice_cont.map(|i| T::from_f64(i as f64 / 2.0)).collect();
            let [c, h] = ["c", "h"].map(|name| (name, unset(op.state())));
            ([("c_prev", c_prev), ("cont", cont)], [("gates", x), c, h])
        },
        |op, [c_prev, cont], [gates, c, h]| runner.device.lstm(op, c_prev, cont, gates, c, h),
        |op, [c_prev, cont], [x, ..]| oracle::lstm(op, c_prev, cont, x).map(ExpectedOutput::Sums),
    )
}

fn lstm_backward<T: Element>(runner: &CheckRunner<'_>) -> Verdict {
    runner.try_kernel(
        &cases()?,
        |op, setup| {
            let (n, gates) = (op.state(), ("gates", op.gates()));
            let lengths = [("c_prev", n), ("c", n), ("dh", n), ("dc", n), gates];
            let [c_prev, c, dh, dc, gates] = setup.operands::<T, 5>(lengths);
            ([c_prev, c, dh], [dc, gates])
        },
        |op, [c_prev, c, dh], [dc, gates]| {
            runner.device.lstm_backward(op, c_prev, c, dh, dc, gates)
        },
        |op, [c_prev, c, dh], [dc, gates]| {
            oracle::lstm_backward(op, [c_prev, c, dh, dc], gates).map(ExpectedOutput::Sums)
        },
    )
}

/// Returns cases of LSTM steps with 0 to 33 streams (independent sequences) and 0 to 40 cells per
/// stream.
fn cases() -> Result<Cases<Lstm>> {
    let steps = [(0, 3), (3, 0), (1, 1), (7, 2), (2, 9), (33, 40), (3, 5)];
    let corner_cases = steps.into_iter().map(|(streams, outputs)| Lstm::new(streams, outputs));
    let random_cases = (0..=9usize, 0..=40usize)
        .prop_filter_map("too large", |(streams, outputs)| Lstm::new(streams, outputs).ok());
    Ok(Cases::new(corner_cases.collect::<Result<_>>()?, random_cases, Lstm::new(2, 3)?))
}
