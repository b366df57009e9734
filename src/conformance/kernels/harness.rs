//! Calls of kernels on operands that are placed with care and looked at afterwards.

use crate::{
    conformance::{
        runner::CheckRunner,
        failure::{Verdict, flaw},
        operand::{Operand, Placement},
        values::{ValueStream, Values},
    },
    device::Device,
    element::{Element, Storable},
    error::Result,
    memory::{View, ViewMut},
};
use proptest::prelude::*;
use std::fmt::Debug;

/// Most operands that a kernel has.
pub(super) const OPERANDS: usize = 5;

/// What a case has beside its description.
#[derive(Clone, Debug)]
pub(super) struct CaseSetup {
    /// Which numbers the operands hold.
    pub(super) values: Values,
    /// Where they are drawn from.
    pub(super) seed: u64,
    /// Where the operands lie.
    pub(super) at: [Placement; OPERANDS],
}

impl CaseSetup {
    fn plain(values: Values) -> Self {
        Self { values, seed: 1, at: [Placement::WHOLE; OPERANDS] }
    }

    /// Each placement of each operand, beside different ones of the others.
    fn placements() -> impl Iterator<Item = Self> {
        let corners = Placement::CORNERS;
        (0..corners.len()).map(move |turn| Self {
            at: std::array::from_fn(|operand| corners[(turn + operand) % corners.len()]),
            ..Self::plain(Values::Integers)
        })
    }

    fn any() -> impl Strategy<Value = Self> {
        let at = prop::array::uniform5(Placement::any());
        (Values::any(), any::<u64>(), at).prop_map(|(values, seed, at)| Self { values, seed, at })
    }

    /// The numbers of the case.
    pub(super) fn draw(&self) -> ValueStream {
        self.values.from(self.seed)
    }
}

/// Tries a kernel on every corner with integers and with real numbers, on the last of them with
/// every placement, and on random cases.
pub(super) fn tries<C: Clone + Debug, D: Device>(
    bench: &CheckRunner<'_, D>,
    corners: Vec<C>,
    any: impl Strategy<Value = C>,
    test: impl Fn(&C, &CaseSetup) -> Verdict,
) -> Verdict {
    tries_all(bench, &corners, any, &|(case, how)| test(case, how))
}

/// [`tries`], compiled once for a kind of cases.
fn tries_all<C: Clone + Debug, D: Device>(
    bench: &CheckRunner<'_, D>,
    corners: &[C],
    any: impl Strategy<Value = C>,
    test: &dyn Fn(&(C, CaseSetup)) -> Verdict,
) -> Verdict {
    for values in [Values::Integers, Values::Reals] {
        bench.all(corners.iter().map(|case| (case.clone(), CaseSetup::plain(values))), test)?;
    }
    if let Some(case) = corners.last() {
        bench.all(CaseSetup::placements().map(|how| (case.clone(), how)), test)?;
    }
    bench.each((any, CaseSetup::any()), test)
}

/// An operand's name, its elements and where they lie.
pub(super) type Given<'a, T> = (&'static str, &'a [T], Placement);

/// Calls a kernel; yields what it left in its outputs. It may not change its inputs.
pub(super) fn call<T: Storable, D: Device, const I: usize, const O: usize>(
    bench: &CheckRunner<'_, D>,
    inputs: [Given<'_, T>; I],
    outputs: [Given<'_, T>; O],
    kernel: impl FnOnce([View<'_, T, D>; I], [ViewMut<'_, T, D>; O]) -> Result<()>,
) -> Verdict<[Vec<T>; O]> {
    let (read, mut written) = (placed(bench, inputs)?, placed(bench, outputs)?);
    kernel(views(&read)?, views_mut(&mut written)?)?;
    for ((name, ..), operand) in inputs.iter().zip(&read) {
        operand.unchanged(name)?;
    }
    array(written.iter().map(Operand::finish).collect::<Verdict<_>>()?)
}

/// Calls a kernel that has to refuse its operands and to leave its outputs alone.
pub(super) fn refused<T: Storable, D: Device, const I: usize, const O: usize>(
    bench: &CheckRunner<'_, D>,
    inputs: [Given<'_, T>; I],
    outputs: [Given<'_, T>; O],
    kernel: impl FnOnce([View<'_, T, D>; I], [ViewMut<'_, T, D>; O]) -> Result<()>,
) -> Verdict {
    let (read, mut written) = (placed(bench, inputs)?, placed(bench, outputs)?);
    if kernel(views(&read)?, views_mut(&mut written)?).is_ok() {
        return Err(flaw!("was not refused"));
    }
    outputs.iter().zip(&written).try_for_each(|((name, ..), operand)| operand.unchanged(name))
}

/// Tries a kernel with each operand in turn an element shorter and longer than it should be.
pub(super) fn refuses_lengths<T: Element, D: Device, const I: usize, const O: usize>(
    bench: &CheckRunner<'_, D>,
    inputs: [(&'static str, usize); I],
    outputs: [(&'static str, usize); O],
    kernel: impl Fn([View<'_, T, D>; I], [ViewMut<'_, T, D>; O]) -> Result<()>,
) -> Verdict {
    let right: Vec<usize> = inputs.iter().chain(&outputs).map(|operand| operand.1).collect();
    bench.all(one_off(&right), |lengths| {
        let values: Vec<Vec<T>> = lengths.iter().map(|&len| ones(len)).collect();
        let given = |i: usize, name| (name, &values[i][..], Placement::CORNERS[1]);
        let ins = std::array::from_fn(|i| given(i, inputs[i].0));
        let outs = std::array::from_fn(|i| given(I + i, outputs[i].0));
        refused(bench, ins, outs, &kernel)
    })
}

/// The lengths with one of them an element less or more.
fn one_off(right: &[usize]) -> Vec<Vec<usize>> {
    let mut wrong = Vec::new();
    for (i, &len) in right.iter().enumerate() {
        for len in len.checked_sub(1).into_iter().chain([len + 1]) {
            let mut lengths = right.to_vec();
            lengths[i] = len;
            wrong.push(lengths);
        }
    }
    wrong
}

/// Tries that a call which cannot go well is an error at the latest when its output is downloaded
/// or, in another call, when the device is synchronized.
pub(super) fn fails_in_time<T: Element, D: Device, const I: usize>(
    bench: &CheckRunner<'_, D>,
    inputs: [Given<'_, T>; I],
    output: Given<'_, T>,
    kernel: impl Fn([View<'_, T, D>; I], [ViewMut<'_, T, D>; 1]) -> Result<()>,
) -> Verdict {
    bench.all(["download", "synchronize"], |&by| {
        let (read, mut written) = (placed(bench, inputs)?, placed(bench, [output])?);
        let called = kernel(views(&read)?, views_mut(&mut written)?);
        let seen = called.is_err()
            || match by {
                "download" => written[0].view()?.host().is_err(),
                _ => bench.device.synchronize().is_err(),
            };
        if seen { Ok(()) } else { Err(flaw!("no error by the next {by}")) }
    })
}

/// Ones.
pub(super) fn ones<T: Element>(len: usize) -> Vec<T> {
    vec![T::from_f64(1.0); len]
}

fn placed<T: Storable, D: Device, const N: usize>(
    bench: &CheckRunner<'_, D>,
    given: [Given<'_, T>; N],
) -> Result<Vec<Operand<T, D>>> {
    given.iter().map(|(_, values, at)| Operand::input(bench.device, values, *at)).collect()
}

fn views<T: Storable, D: Device, const N: usize>(
    operands: &[Operand<T, D>],
) -> Verdict<[View<'_, T, D>; N]> {
    array(operands.iter().map(Operand::view).collect::<Result<_>>()?)
}

fn views_mut<T: Storable, D: Device, const N: usize>(
    operands: &mut [Operand<T, D>],
) -> Verdict<[ViewMut<'_, T, D>; N]> {
    array(operands.iter_mut().map(Operand::view_mut).collect::<Result<_>>()?)
}

/// The items, of which there are `N`.
fn array<V, const N: usize>(items: Vec<V>) -> Verdict<[V; N]> {
    items.try_into().map_err(|items: Vec<V>| flaw!("{} operands, not {N}", items.len()))
}
