//! [`Update`](crate::kernel::Update).

use super::harness::{CaseSetup, ones, tries};
use crate::{
    conformance::{
        runner::CheckRunner,
        check::{Check, checks},
        compare::same,
        failure::{Verdict, flaw},
        operand::{Operand, Placement},
        oracle::update::{self as oracle, Rule, Step, Weight},
        values::{Expected, wide},
    },
    device::Device,
    element::Element,
    error::Result,
    memory::ViewMut,
    op::{self, Regularization, SolverUpdate},
};
use proptest::prelude::*;

pub(super) fn checks<D: Device>() -> Vec<Check<D>> {
    checks! {
        "descend_sgd" of "solver_update": solver_update(Rule::Sgd);
        "descend_nesterov" of "solver_update": solver_update(Rule::Nesterov);
        "descend_adagrad" of "solver_update": solver_update(Rule::AdaGrad);
        "descend_rmsprop" of "solver_update": solver_update(Rule::RmsProp);
        "descend_adadelta" of "solver_update": solver_update(Rule::AdaDelta);
        "descend_adam" of "solver_update": solver_update(Rule::Adam);
    }
}

/// The operands of a call.
struct Operands<T: Element, D: Device> {
    dw: Operand<T, D>,
    weights: Operand<T, D>,
    masters: Option<Operand<T::Acc, D>>,
    history: Vec<Operand<T::Acc, D>>,
}

impl<T: Element, D: Device> Operands<T, D> {
    fn call(&mut self, device: &D, op: &SolverUpdate<T>) -> Result<()> {
        let weights = self.weights.view_mut()?;
        let masters = self.masters.as_mut().map(Operand::view_mut).transpose()?;
        let history = self.history.iter_mut().map(Operand::view_mut);
        let mut history: Vec<ViewMut<'_, T::Acc, D>> = history.collect::<Result<_>>()?;
        device.solver_update(op, self.dw.view()?, weights, masters, &mut history)
    }
}

fn solver_update<T: Element, D: Device>(bench: &CheckRunner<'_, D>, rule: Rule) -> Verdict {
    tries(bench, steps(rule), any_step(rule), |(len, step), how| {
        one::<T, D>(bench, *len, step, how, false)?;
        // Wide weights are their own masters.
        if T::DTYPE == <T::Acc as Element>::DTYPE {
            return Ok(());
        }
        one::<T, D>(bench, *len, step, how, true)
    })?;
    refuses_lengths::<T, D>(bench, rule)
}

/// One call on operands that are drawn.
fn one<T: Element, D: Device>(
    bench: &CheckRunner<'_, D>,
    len: usize,
    step: &Step,
    how: &CaseSetup,
    mastered: bool,
) -> Verdict {
    let mut draw = how.draw();
    let (dw, w) = (draw.take::<T>(len), draw.take::<T>(len));
    let op = described::<T>(step);
    let mut history: Vec<Vec<T::Acc>> =
        (0..op.rule.history_count()).map(|_| draw.take(len)).collect();
    for squares in history.iter_mut().skip(usize::from(step.rule == Rule::Adam)) {
        if !matches!(step.rule, Rule::Sgd | Rule::Nesterov) {
            squares.iter_mut().for_each(|v| *v = *v * *v);
        }
    }
    // Of three masters one differs from its weight, which counts; one is a little more.
    let little = T::acc(1.0 / 4096.0);
    let master = |(i, w): (usize, &T)| match i % 3 {
        0 => w.to_acc(),
        1 => w.to_acc() + w.to_acc() * little,
        _ => w.to_acc() + T::acc(8.0),
    };
    let masters: Vec<T::Acc> = w.iter().enumerate().map(master).collect();
    let starts = |i: usize| match T::from_acc(masters[i]) == w[i] {
        true if mastered => masters[i].to_f64(),
        _ => w[i].to_f64(),
    };
    let input = |values: &[T::Acc], at| Operand::input(bench.device, values, at);
    let kept = history.iter().zip(&how.at[2..]).map(|(history, at)| input(history, *at));
    let mut operands = Operands::<T, D> {
        dw: Operand::input(bench.device, &dw, how.at[0])?,
        weights: Operand::input(bench.device, &w, how.at[1])?,
        masters: mastered.then(|| input(&masters, how.at[4])).transpose()?,
        history: kept.collect::<Result<_>>()?,
    };
    operands.call(bench.device, &op)?;
    operands.dw.unchanged("dw")?;

    let kept: Vec<Vec<f64>> = history.iter().map(|history| wide(history)).collect();
    let at = |kept: Option<&Vec<f64>>, i: usize| kept.map_or(0.0, |kept| kept[i]);
    let old = |i| Weight { w: starts(i), h: at(kept.first(), i), k: at(kept.get(1), i) };
    let new: Vec<Weight<Expected>> =
        (0..len).map(|i| oracle::solver_update(step, dw[i].to_f64(), &old(i))).collect();
    let want: [Vec<Expected>; 2] =
        [new.iter().map(|new| new.h).collect(), new.iter().map(|new| new.k).collect()];
    for (history, want) in operands.history.iter().zip(&want) {
        how.values.judge("history", &history.finish()?, want)?;
    }
    let (weights, want): (_, Vec<_>) =
        (operands.weights.finish()?, new.iter().map(|new| new.w).collect());
    let Some(masters) = &operands.masters else {
        return how.values.judge("weights", &weights, &want);
    };
    // Masters have low bits, with which not even steps of integers are exact.
    let masters = masters.finish()?;
    let want: Vec<_> = want.into_iter().map(|want| Expected { inexact: true, ..want }).collect();
    how.values.judge("masters", &masters, &want)?;
    let rounded: Vec<T> = masters.iter().map(|&master| T::from_acc(master)).collect();
    same("weights", &weights, &rounded)
}

/// Each operand in turn an element shorter and longer than it should be, and one history too few
/// and too many.
fn refuses_lengths<T: Element, D: Device>(bench: &CheckRunner<'_, D>, rule: Rule) -> Verdict {
    let op = described::<T>(&step(rule, Regularization::L2, [0.5; 5]));
    let kept = op.rule.history_count();
    let right = vec![7; 2 + kept];
    let off = (0..right.len()).flat_map(|i| [6, 8].map(|len| (i, len)));
    let mut wrong: Vec<Vec<usize>> = off
        .map(|(i, len)| {
            let mut lengths = right.clone();
            lengths[i] = len;
            lengths
        })
        .collect();
    wrong.extend([vec![7; 1 + kept], vec![7; 3 + kept]]);
    bench.all(wrong, |lengths| {
        let input = |len| Operand::input(bench.device, &ones::<T>(len), Placement::CORNERS[1]);
        let kept = |&len| Operand::input(bench.device, &ones(len), Placement::CORNERS[1]);
        let mut operands = Operands::<T, D> {
            dw: input(lengths[0])?,
            weights: input(lengths[1])?,
            masters: None,
            history: lengths[2..].iter().map(kept).collect::<Result<_>>()?,
        };
        if operands.call(bench.device, &op).is_ok() {
            return Err(flaw!("was not refused"));
        }
        operands.weights.unchanged("weights")?;
        operands.history.iter().try_for_each(|history| history.unchanged("history"))
    })
}

fn described<T: Element>(step: &Step) -> SolverUpdate<T> {
    let [keep, keep2, delta] = [step.keep, step.keep2, step.delta].map(T::acc);
    let rule = match step.rule {
        Rule::Sgd => op::UpdateRule::Sgd { momentum: keep },
        Rule::Nesterov => op::UpdateRule::Nesterov { momentum: keep },
        Rule::AdaGrad => op::UpdateRule::AdaGrad { delta },
        Rule::RmsProp => op::UpdateRule::RmsProp { decay: keep, delta },
        Rule::AdaDelta => op::UpdateRule::AdaDelta { momentum: keep, delta },
        Rule::Adam => op::UpdateRule::Adam { beta1: keep, beta2: keep2, delta },
    };
    SolverUpdate {
        rate: T::acc(step.rate),
        scale: T::acc(step.scale),
        decay: T::acc(step.decay),
        regularization: step.regularization,
        rule,
    }
}

fn step(
    rule: Rule,
    regularization: Regularization,
    [rate, keep, decay, scale, delta]: [f64; 5],
) -> Step {
    Step { rule, regularization, rate, scale, decay, keep, keep2: 0.875, delta }
}

/// Lengths about the sizes of vectors and blocks, and constants that are often zero or one. All are
/// such that steps of integers are exact even in eight bits, where the rule has no quotient.
fn steps(rule: Rule) -> Vec<(usize, Step)> {
    let constants = [
        [0.5, 0.5, 0.25, 2.0, 0.125],
        [1.0, 0.0, 0.0, 1.0, 1.0],
        [0.0, 1.0, 0.5, 1.0, 0.5],
        [1.0, 1.0, 0.0, 0.5, 0.25],
        [0.5, 0.5, 1.0, 0.0, 0.125],
    ];
    let pulls = [Regularization::L1, Regularization::L2];
    let constants = constants
        .into_iter()
        .flat_map(|constants| pulls.map(|pull| (19, step(rule, pull, constants))));
    let lengths = [0, 1, 2, 3, 31, 33, 255, 257, 1025, 4099];
    let usual = step(rule, Regularization::L2, [0.5, 0.5, 0.25, 2.0, 0.125]);
    constants.chain(lengths.map(|len| (len, usual))).collect()
}

fn any_step(rule: Rule) -> impl Strategy<Value = (usize, Step)> {
    let of = |values: [f64; 4]| prop::sample::select(values.to_vec());
    let constants = (
        of([0.0, 1.0, 0.5, 0.25]),
        of([0.0, 1.0, 0.5, 0.5]),
        of([0.0, 1.0, 0.5, 0.25]),
        of([0.0, 1.0, 0.5, 2.0]),
        of([1.0, 0.5, 0.25, 0.0625]),
    );
    let pull = prop::sample::select(vec![Regularization::L1, Regularization::L2]);
    (0..1500usize, pull, constants).prop_map(
        move |(len, pull, (rate, keep, decay, scale, delta))| {
            (len, step(rule, pull, [rate, keep, decay, scale, delta]))
        },
    )
}
