//! [`Update`](crate::kernel::Update).

use super::call::{call, refuses_lengths, tries};
use crate::{
    conformance::{
        bench::Bench,
        check::{Check, checks},
        failure::Verdict,
        oracle::update::{self as oracle, Step},
        values::{Sum, wide},
    },
    device::Device,
    element::Element,
    op::{Regularization, Sgd},
};
use proptest::prelude::*;

pub(super) fn checks<D: Device>() -> Vec<Check<D>> {
    checks! {
        "sgd_l1" of "sgd": sgd(Regularization::L1);
        "sgd_l2" of "sgd": sgd(Regularization::L2);
    }
}

fn sgd<T: Element, D: Device>(bench: &Bench<'_, D>, pull: Regularization) -> Verdict {
    tries(bench, steps(pull), any_step(pull), |(len, step), how| {
        let mut draw = how.draw();
        let [dw, w, h] = [0; 3].map(|_| draw.take::<T>(*len));
        let outputs = [("weights", &w[..], how.at[1]), ("history", &h[..], how.at[2])];
        let [weights, history] =
            call(bench, [("dw", &dw[..], how.at[0])], outputs, |[dw], [w, h]| {
                bench.device.sgd(&described::<T>(step), dw, w, h)
            })?;
        let old = wide(&dw).into_iter().zip(wide(&w)).zip(wide(&h));
        let new = old.map(|((dw, w), h)| oracle::sgd(step, dw, w, h));
        let (want, want_history): (Vec<Sum>, Vec<Sum>) = new.unzip();
        how.values.judge("history", &history, &want_history)?;
        how.values.judge("weights", &weights, &want)
    })?;
    let op = described::<T>(&step(pull, [0.5; 4]));
    let outputs = [("weights", 7), ("history", 7)];
    refuses_lengths::<T, D, _, _>(bench, [("dw", 7)], outputs, |[dw], [w, h]| {
        bench.device.sgd(&op, dw, w, h)
    })
}

fn described<T: Element>(step: &Step) -> Sgd<T> {
    Sgd {
        rate: T::acc(step.rate),
        momentum: T::acc(step.momentum),
        decay: T::acc(step.decay),
        scale: T::acc(step.scale),
        regularization: step.regularization,
    }
}

fn step(regularization: Regularization, [rate, momentum, decay, scale]: [f64; 4]) -> Step {
    Step { rate, momentum, decay, scale, regularization }
}

/// Lengths about the sizes of vectors and blocks, and constants that are often zero or one. All are
/// such that steps of integers are exact even in eight bits.
fn steps(pull: Regularization) -> Vec<(usize, Step)> {
    let constants = [
        [0.5, 0.5, 0.25, 2.0],
        [1.0, 0.0, 0.0, 1.0],
        [0.0, 1.0, 0.5, 1.0],
        [1.0, 1.0, 0.0, 0.5],
        [0.5, 0.5, 1.0, 0.0],
    ];
    let constants = constants.map(|constants| (19, step(pull, constants)));
    let lengths = [0, 1, 2, 3, 31, 33, 255, 257, 1025, 4099];
    let lengths = lengths.map(|len| (len, step(pull, [0.5, 0.5, 0.25, 2.0])));
    constants.into_iter().chain(lengths).collect()
}

fn any_step(pull: Regularization) -> impl Strategy<Value = (usize, Step)> {
    let of = |values: [f64; 4]| prop::sample::select(values.to_vec());
    let constants = (
        of([0.0, 1.0, 0.5, 0.25]),
        of([0.0, 1.0, 0.5, 0.5]),
        of([0.0, 1.0, 0.5, 0.25]),
        of([0.0, 1.0, 0.5, 2.0]),
    );
    let constants =
        constants.prop_map(|(rate, momentum, decay, scale)| [rate, momentum, decay, scale]);
    (0..1500usize, constants).prop_map(move |(len, constants)| (len, step(pull, constants)))
}
