//! [`Update`](crate::kernel::Update).

use super::prelude::*;
use crate::{
    conformance::{
        failure::expect_refused,
        oracle::update::{self as oracle, Rule, Step, Weight},
    },
    op::{self, Regularization, SolverUpdate},
};

checks! {
    "solver_update_sgd" of "solver_update": solver_update(Rule::Sgd);
    "solver_update_nesterov" of "solver_update": solver_update(Rule::Nesterov);
    "solver_update_adagrad" of "solver_update": solver_update(Rule::AdaGrad);
    "solver_update_rmsprop" of "solver_update": solver_update(Rule::RmsProp);
    "solver_update_adadelta" of "solver_update": solver_update(Rule::AdaDelta);
    "solver_update_adam" of "solver_update": solver_update(Rule::Adam);
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

fn solver_update<T: Element, D: Device>(runner: &CheckRunner<'_, D>, rule: Rule) -> Verdict {
    runner.try_all(&steps(rule), |(len, step), setup| {
        updates::<T, D>(runner, *len, step, setup, false)?;
        // Weights of 32 and 64 bits have no separate masters.
        if T::DTYPE == <T::Acc as Element>::DTYPE {
            return Ok(());
        }
        updates::<T, D>(runner, *len, step, setup, true)
    })?;
    check_operands::<T, D>(runner, rule)
}

/// Tries one update, with master weights or without.
fn updates<T: Element, D: Device>(
    runner: &CheckRunner<'_, D>,
    len: usize,
    step: &Step,
    setup: &CaseSetup,
    has_masters: bool,
) -> Verdict {
    let device = runner.device;
    let mut stream = setup.stream();
    let [dw, w] = [(); 2].map(|()| stream.take::<T>(len));
    let op = typed::<T>(step);
    let mut history: Vec<Vec<T::Acc>> =
        (0..op.rule.history_count()).map(|_| stream.take(len)).collect();
    for squares in history.iter_mut().skip(usize::from(step.rule == Rule::Adam)) {
        if !matches!(step.rule, Rule::Sgd | Rule::Nesterov) {
            squares.iter_mut().for_each(|v| *v = *v * *v);
        }
    }
    // Of three masters, one equals its weight, one rounds to it, and one differs. The update starts
    // from the weight if its master differs.
    let master = |(i, w): (usize, &T)| match i % 3 {
        0 => w.to_acc(),
        1 => w.to_acc() + w.to_acc() * T::acc(1.0 / 4096.0),
        _ => w.to_acc() + T::acc(8.0),
    };
    let masters: Vec<T::Acc> = w.iter().enumerate().map(master).collect();
    let start = |i: usize| match T::from_acc(masters[i]) == w[i] {
        true if has_masters => masters[i].to_f64(),
        _ => w[i].to_f64(),
    };
    let place = |(values, place): (&Vec<T::Acc>, &Placement)| Operand::new(device, values, *place);
    let mut operands = Operands::<T, D> {
        dw: Operand::new(device, &dw, setup.places[0])?,
        weights: Operand::new(device, &w, setup.places[1])?,
        masters: has_masters.then(|| place((&masters, &setup.places[4]))).transpose()?,
        history: history.iter().zip(&setup.places[2..]).map(place).collect::<Result<_>>()?,
    };
    operands.call(device, &op)?;
    operands.dw.unchanged("dw")?;

    let old_value = |n: usize, i: usize| history.get(n).map_or(0.0, |values| values[i].to_f64());
    let old = |i| Weight { w: start(i), h: old_value(0, i), k: old_value(1, i) };
    let new: Vec<Weight<Expected>> =
        (0..len).map(|i| oracle::solver_update(step, dw[i].to_f64(), &old(i))).collect();
    let want: [Vec<Expected>; 2] =
        [new.iter().map(|new| new.h).collect(), new.iter().map(|new| new.k).collect()];
    for (i, (history, want)) in operands.history.iter().zip(&want).enumerate() {
        setup.values.judge(&format!("history {i}"), &history.values()?, want)?;
    }
    let (weights, want): (_, Vec<_>) =
        (operands.weights.values()?, new.iter().map(|new| new.w).collect());
    let Some(masters) = &operands.masters else {
        return setup.values.judge("weights", &weights, &want);
    };
    // Masters hold more bits than integers need, so not even integer steps are exact.
    let masters = masters.values()?;
    let want: Vec<_> = want.into_iter().map(|want| Expected { inexact: true, ..want }).collect();
    setup.values.judge("masters", &masters, &want)?;
    let rounded: Vec<T> = masters.iter().map(|&master| T::from_acc(master)).collect();
    expect_bits("weights", &weights, &rounded)
}

/// Tries each operand an element shorter and longer than the others, and one history too few and
/// too many.
fn check_operands<T: Element, D: Device>(runner: &CheckRunner<'_, D>, rule: Rule) -> Verdict {
    let op = typed::<T>(&step(rule, Regularization::L2, [0.5; 5]));
    let right = vec![7; 2 + op.rule.history_count()];
    let one_off = |i: usize, len| (0..right.len()).map(|j| if i == j { len } else { 7 }).collect();
    let mut wrong: Vec<Vec<usize>> =
        (0..right.len()).flat_map(|i| [6, 8].map(|len| one_off(i, len))).collect();
    wrong.extend([right[1..].to_vec(), [&right[..], &[7]].concat()]);
    runner.try_cases(wrong, |lengths| {
        fn ones<E: Element, D: Device>(device: &D, len: usize) -> Result<Operand<E, D>> {
            Operand::new(device, &vec![E::from_f64(1.0); len], Placement::CORNERS[1])
        }
        let history = lengths[2..].iter().map(|&len| ones(runner.device, len));
        let mut operands = Operands::<T, D> {
            dw: ones(runner.device, lengths[0])?,
            weights: ones(runner.device, lengths[1])?,
            masters: None,
            history: history.collect::<Result<_>>()?,
        };
        let invalid =
            format!("operands of these lengths (dw, weights, history) instead of {right:?}");
        expect_refused(operands.call(runner.device, &op), &invalid)?;
        operands.weights.unchanged("weights")?;
        operands.history.iter().try_for_each(|history| history.unchanged("history"))
    })
}

/// Returns the update as a kernel on `T` takes it.
fn typed<T: Element>(step: &Step) -> SolverUpdate<T> {
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

/// Returns lengths near the sizes of vectors and blocks, and constants that are often zero or one.
/// With them, updates of integers are exact even in eight bits, unless the rule has a quotient.
fn steps(rule: Rule) -> Cases<(usize, Step)> {
    let usual = [0.5, 0.5, 0.25, 2.0, 0.125];
    let constants = [
        usual,
        [1.0, 0.0, 0.0, 1.0, 1.0],
        [0.0, 1.0, 0.5, 1.0, 0.5],
        [1.0, 1.0, 0.0, 0.5, 0.25],
        [0.5, 0.5, 1.0, 0.0, 0.125],
    ];
    let penalties = [Regularization::L1, Regularization::L2];
    let constants = constants
        .into_iter()
        .flat_map(|constants| penalties.map(|penalty| (19, step(rule, penalty, constants))));
    let lengths = [0, 1, 2, 3, 31, 33, 255, 257, 1025, 4099];
    let usual = (7, step(rule, Regularization::L2, usual));
    let corners = constants.chain(lengths.map(|len| (len, usual.1))).collect();
    let of = |values: [f64; 4]| prop::sample::select(values.to_vec());
    let constants = [
        of([0.0, 1.0, 0.5, 0.25]),
        of([0.0, 1.0, 0.5, 0.5]),
        of([0.0, 1.0, 0.5, 0.25]),
        of([0.0, 1.0, 0.5, 2.0]),
        of([1.0, 0.5, 0.25, 0.0625]),
    ];
    let random = (0..1500usize, prop::sample::select(penalties.to_vec()), constants)
        .prop_map(move |(len, penalty, constants)| (len, step(rule, penalty, constants)));
    Cases::new(corners, random, usual)
}
