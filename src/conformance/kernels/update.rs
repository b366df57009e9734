//! Conformance checks of the kernel family [`Update`](crate::kernel::Update).

use super::{large::expect_copies, prelude::*};
use crate::{
    conformance::{
        failure::expect_refused,
        oracle::update::{self as oracle, Weight},
        values::repeated,
    },
    element::DType,
    op::{
        Regularization, SolverUpdate,
        UpdateRule::{self, AdaDelta, AdaGrad, Adam, Nesterov, RmsProp, Sgd},
    },
};

checks! {
    "solver_update_sgd" of "solver_update": solver_update(SGD);
    "solver_update_nesterov" of "solver_update": solver_update(NESTEROV);
    "solver_update_adagrad" of "solver_update": solver_update(ADAGRAD);
    "solver_update_rmsprop" of "solver_update": solver_update(RMSPROP);
    "solver_update_adadelta" of "solver_update": solver_update(ADADELTA);
    "solver_update_adam" of "solver_update": solver_update(ADAM);
}

/// Function that returns an update rule with the given momentum or decay factor and the given
/// `delta`.
type Rule = fn(f64, f64) -> UpdateRule<f64>;

const SGD: Rule = |momentum, _| Sgd { momentum };
const NESTEROV: Rule = |momentum, _| Nesterov { momentum };
const ADAGRAD: Rule = |_, delta| AdaGrad { delta };
const RMSPROP: Rule = |decay, delta| RmsProp { decay, delta };
const ADADELTA: Rule = |momentum, delta| AdaDelta { momentum, delta };
const ADAM: Rule = |beta1, delta| Adam { beta1, beta2: 0.875, delta };

/// Operands of one `solver_update` call.
struct Operands<T: Element> {
    dw: Operand<T>,
    weights: Operand<T>,
    masters: Option<Operand<T::Acc>>,
    history: Vec<Operand<T::Acc>>,
}

impl<T: Element> Operands<T> {
    fn call(&mut self, device: &AnyDevice, op: &SolverUpdate<T>) -> Result<()> {
        let weights = self.weights.view_mut()?;
        let masters = self.masters.as_mut().map(Operand::view_mut).transpose()?;
        let history = self.history.iter_mut().map(Operand::view_mut);
        let mut history: Vec<ViewMut<'_, T::Acc, AnyDevice>> = history.collect::<Result<_>>()?;
        device.solver_update(op, self.dw.view()?, weights, masters, &mut history)
    }
}

fn solver_update<T: Element>(runner: &CheckRunner<'_>, rule: Rule) -> Verdict {
    let cases = update_cases(rule);
    runner.try_all(&cases, |(len, op), setup| {
        update::<T>(runner, (*len, 1), op, setup, false)?;
        // Weights of 32 and 64 bits have no master weights.
        if T::DTYPE == <T::Acc as Element>::DTYPE {
            return Ok(());
        }
        update::<T>(runner, (*len, 1), op, setup, true)
    })?;
    // Cases with large operands are slow, so the kit runs them only in `f32`.
    if T::DTYPE == DType::F32 {
        runner.try_cases(&cases.refused_calls, |(_, op)| {
            update::<T>(runner, (PERIOD, COPIES), op, &CaseSetup::WHOLE, false)
        })?;
    }
    check_operands::<T>(runner, rule)
}

/// Checks one solver update, with or without master weights, of operands that hold `copies` copies
/// of `len` elements.
fn update<T: Element>(
    runner: &CheckRunner<'_>,
    (len, copies): (usize, usize),
    op: &SolverUpdate<f64>,
    setup: &CaseSetup,
    has_masters: bool,
) -> Verdict {
    let device = runner.device;
    let mut stream = setup.stream();
    let [dw, w] = [(); 2].map(|()| stream.take::<T>(len));
    let mut history: Vec<Vec<T::Acc>> =
        (0..op.rule.history_count()).map(|_| stream.take(len)).collect();
    for squares in history.iter_mut().skip(usize::from(matches!(op.rule, Adam { .. }))) {
        if !matches!(op.rule, Sgd { .. } | Nesterov { .. }) {
            squares.iter_mut().for_each(|v| *v = *v * *v);
        }
    }
    // One third of the master weights equal the weights, one third differ but round to the weights,
    // and one third do not round to the weights. If a master weight does not round to its weight,
    // the update must start from the weight.
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
    let place = |(values, place): (&Vec<T::Acc>, &Placement)| {
        Operand::new(device, &repeated(values, copies), *place)
    };
    let mut operands = Operands::<T> {
        dw: Operand::new(device, &repeated(&dw, copies), setup.places[0])?,
        weights: Operand::new(device, &repeated(&w, copies), setup.places[1])?,
        masters: has_masters.then(|| place((&masters, &setup.places[4]))).transpose()?,
        history: history.iter().zip(&setup.places[2..]).map(place).collect::<Result<_>>()?,
    };
    operands.call(device, &narrow(op))?;
    operands.dw.unchanged("dw")?;

    let old_value = |n: usize, i: usize| history.get(n).map_or(0.0, |values| values[i].to_f64());
    let old_weight = |i| Weight { w: start(i), h: old_value(0, i), k: old_value(1, i) };
    let new_weights: Vec<Weight<Expected>> =
        (0..len).map(|i| oracle::solver_update(op, dw[i].to_f64(), &old_weight(i))).collect();
    let want: [Vec<Expected>; 2] = [
        new_weights.iter().map(|new| new.h).collect(),
        new_weights.iter().map(|new| new.k).collect(),
    ];
    for (i, (history, want)) in operands.history.iter().zip(&want).enumerate() {
        let name = format!("history {i}");
        let compare = |copy: &[T::Acc]| setup.values.compare(&name, copy, want);
        expect_copies(&name, &history.values()?, len, compare)?;
    }
    let (weights, want): (_, Vec<_>) =
        (operands.weights.values()?, new_weights.iter().map(|new| new.w).collect());
    let Some(masters) = &operands.masters else {
        let (dw, w) = (wide(&dw), wide(&w));
        let shown_operands = [("dw", &dw[..]), ("old weights", &w)];
        let output = Output::from("weights").of(&shown_operands);
        let compare = |copy: &[T]| setup.values.compare(output, copy, &want);
        return expect_copies("weights", &weights, len, compare);
    };
    // Some master weights have fractional parts, so the update is inexact even if all other
    // operands are integers.
    let masters = masters.values()?;
    let want: Vec<_> = want.into_iter().map(|want| Expected { inexact: true, ..want }).collect();
    setup.values.compare("masters", &masters, &want)?;
    // Compare values, not bits, because the bits of a computed NaN are unspecified.
    let rounded_masters: Vec<T> = masters.iter().map(|&master| T::from_acc(master)).collect();
    expect_nearest("weights", &weights, &wide(&rounded_masters))
}

/// Checks that the kernel refuses operands, including master weights, that are one element too
/// short or too long, and refuses one history too few or too many.
fn check_operands<T: Element>(runner: &CheckRunner<'_>, rule: Rule) -> Verdict {
    let op = narrow::<T>(&update_cases(rule).refused_calls[0].1);
    let right_lengths = vec![7; 2 + op.rule.history_count()];
    let with_len =
        |i: usize, len| (0..right_lengths.len()).map(|j| if i == j { len } else { 7 }).collect();
    let mut wrong_lengths: Vec<Vec<usize>> =
        (0..right_lengths.len()).flat_map(|i| [6, 8].map(|len| with_len(i, len))).collect();
    wrong_lengths.extend([right_lengths[1..].to_vec(), [&right_lengths[..], &[7]].concat()]);
    fn ones<E: Element>(device: &AnyDevice, len: usize) -> Result<Operand<E>> {
        Operand::new(device, &vec![E::from_f64(1.0); len], Placement::CORNERS[1])
    }
    let operands = |lengths: &[usize], masters: Option<usize>| -> Result<Operands<T>> {
        let history = lengths[2..].iter().map(|&len| ones(runner.device, len));
        Ok(Operands {
            dw: ones(runner.device, lengths[0])?,
            weights: ones(runner.device, lengths[1])?,
            masters: masters.map(|len| ones(runner.device, len)).transpose()?,
            history: history.collect::<Result<_>>()?,
        })
    };
    let refuse = |mut operands: Operands<T>, invalid: &str| {
        expect_refused(operands.call(runner.device, &op), invalid)?;
        operands.weights.unchanged("weights")?;
        operands.masters.iter().try_for_each(|masters| masters.unchanged("masters"))?;
        operands.history.iter().try_for_each(|history| history.unchanged("history"))
    };
    runner.try_cases(wrong_lengths, |lengths| {
        let invalid = format!(
            "`dw`, `weights` and `history` of lengths {lengths:?} instead of {right_lengths:?}"
        );
        refuse(operands(lengths, None)?, &invalid)
    })?;
    // Only 16-bit weights have master weights.
    if T::DTYPE == <T::Acc as Element>::DTYPE {
        return Ok(());
    }
    runner.try_cases([6, 8], |&masters| {
        let invalid = format!("`masters` of {masters} elements instead of 7");
        refuse(operands(&right_lengths, Some(masters))?, &invalid)
    })
}

/// Converts the descriptor of a solver update from `f64` to the element type `T`.
fn narrow<T: Element>(op: &SolverUpdate<f64>) -> SolverUpdate<T> {
    let [rate, scale, decay] = [op.rate, op.scale, op.decay].map(T::acc);
    let rule = match op.rule {
        Sgd { momentum } => Sgd { momentum: T::acc(momentum) },
        Nesterov { momentum } => Nesterov { momentum: T::acc(momentum) },
        AdaGrad { delta } => AdaGrad { delta: T::acc(delta) },
        RmsProp { decay, delta } => RmsProp { decay: T::acc(decay), delta: T::acc(delta) },
        AdaDelta { momentum, delta } => {
            AdaDelta { momentum: T::acc(momentum), delta: T::acc(delta) }
        }
        Adam { beta1, beta2, delta } => {
            Adam { beta1: T::acc(beta1), beta2: T::acc(beta2), delta: T::acc(delta) }
        }
    };
    SolverUpdate { rate, scale, decay, regularization: op.regularization, rule }
}

/// Returns cases of updates: lengths near the sizes of vectors and blocks, and constants that are
/// often 0 or 1. If all operands are integers, the constants make the results exact even in `bf16`,
/// unless the update rule divides.
fn update_cases(rule: Rule) -> Cases<(usize, SolverUpdate<f64>)> {
    let update = move |regularization, [rate, keep, decay, scale, delta]: [f64; 5]| SolverUpdate {
        rate,
        scale,
        decay,
        regularization,
        rule: rule(keep, delta),
    };
    let usual_constants = [0.5, 0.5, 0.25, 2.0, 0.125];
    let constants = [
        usual_constants,
        [1.0, 0.0, 0.0, 1.0, 1.0],
        [0.0, 1.0, 0.5, 1.0, 0.5],
        [1.0, 1.0, 0.0, 0.5, 0.25],
        [0.5, 0.5, 1.0, 0.0, 0.125],
    ];
    let penalties = [Regularization::L1, Regularization::L2];
    let constants = constants
        .into_iter()
        .flat_map(|constants| penalties.map(|penalty| (19, update(penalty, constants))));
    let lengths = [0, 1, 2, 3, 31, 33, 255, 257, 1025, 4099];
    let usual_case = (7, update(Regularization::L2, usual_constants));
    let corner_cases = constants.chain(lengths.map(|len| (len, usual_case.1))).collect();
    let choices = [
        [0.0, 1.0, 0.5, 0.25],
        [0.0, 1.0, 0.5, 0.5],
        [0.0, 1.0, 0.5, 0.25],
        [0.0, 1.0, 0.5, 2.0],
        [1.0, 0.5, 0.25, 0.0625],
    ];
    let constants = choices.map(|values| prop::sample::select(values.to_vec()));
    let random_cases = (0..1500usize, prop::sample::select(penalties.to_vec()), constants)
        .prop_map(move |(len, penalty, constants)| (len, update(penalty, constants)));
    Cases::new(corner_cases, random_cases, usual_case)
}
