use super::*;
use crate::{
    element,
    host::{
        nn::testing::expect_length_errors,
        testing::{for_each_element, fractions, operand, threads, wide},
    },
};

fn rules<T: Element>() -> [UpdateRule<T>; 6] {
    let [quarter, delta] = [0.25, 0.0625].map(T::acc);
    let three_quarters = T::acc(0.75);
    [
        UpdateRule::Sgd { momentum: three_quarters },
        UpdateRule::Nesterov { momentum: three_quarters },
        UpdateRule::AdaGrad { delta },
        UpdateRule::RmsProp { decay: three_quarters, delta },
        UpdateRule::AdaDelta { momentum: three_quarters, delta },
        UpdateRule::Adam { beta1: quarter, beta2: three_quarters, delta },
    ]
}

fn update_with<T: Element>(rule: UpdateRule<T>, regularization: Regularization) -> SolverUpdate<T> {
    let [rate, scale, decay] = [0.125, 0.5, 0.0625].map(T::acc);
    SolverUpdate { rate, scale, decay, regularization, rule }
}

/// Returns non-negative history values, because a history of squared gradients is never negative.
fn squares<T: Element>(tag: u64, len: usize) -> Vec<T::Acc> {
    fractions::<T::Acc>(tag, len).into_iter().map(|v| v * v).collect()
}

/// Runs one solver update, with the number of history values per weight that the update rule uses.
fn run<T: Element>(
    workers: &Workers,
    op: &SolverUpdate<T>,
    dw: &[T],
    weights: &mut [T],
    masters: Option<&mut [T::Acc]>,
    mut history: [&mut [T::Acc]; 2],
) {
    let history = &mut history[..op.rule.history_count()];
    solver_update(workers, op, dw, weights, masters, history).unwrap();
}

fn weights_with_master_weights_are_rounded_f32_weights<T: Element>() {
    for (rule, wide_rule) in rules::<T>().into_iter().zip(rules::<T::Acc>()) {
        let (op, len) = (update_with(rule, Regularization::L2), CHUNK + 7);
        let wide_op = update_with(wide_rule, Regularization::L2);
        let dw = fractions::<T>(1, len);
        let mut dw_wide = vec![T::acc(0.0); len];
        widen(&dw, &mut dw_wide);
        let mut w = fractions::<T>(2, len);
        let mut w_wide = vec![T::acc(0.0); len];
        widen(&w, &mut w_wide);
        // Master weights of zero are stale, so the first update replaces each master weight by the
        // value of its 16-bit weight.
        let mut masters = vec![T::acc(0.0); len];
        let history = || [squares::<T>(3, len), squares::<T>(4, len)];
        let ([mut h, mut k], [mut h_wide, mut k_wide]) = (history(), history());
        for _ in 0..5 {
            let workers = Workers::sequential();
            run(&workers, &op, &dw, &mut w, Some(&mut masters), [&mut h, &mut k]);
            run(&workers, &wide_op, &dw_wide, &mut w_wide, None, [&mut h_wide, &mut k_wide]);
        }
        assert_eq!((&masters, &h, &k), (&w_wide, &h_wide, &k_wide), "{rule:?}");
        let mut rounded_weights = vec![T::default(); len];
        narrow(&w_wide, &mut rounded_weights);
        assert_eq!(wide(&w), wide(&rounded_weights), "{rule:?}");
    }
}

fn solver_update_is_bit_identical_on_any_number_of_threads<T: Element>() {
    let len = 2 * GRAIN + 33;
    let dw = fractions::<T>(4, len);
    for rule in [rules::<T>()[0], rules::<T>()[5]] {
        let op = update_with(rule, Regularization::L1);
        let results = threads().map(|workers| {
            let (mut w, mut masters) = (fractions::<T>(5, len), fractions::<T::Acc>(6, len));
            let (mut h, mut k) = (squares::<T>(7, len), squares::<T>(8, len));
            run(&workers, &op, &dw, &mut w, Some(&mut masters), [&mut h, &mut k]);
            (wide(&w), wide(&masters), wide(&h), wide(&k))
        });
        assert!(results.iter().all(|result| *result == results[0]));
    }
}

for_each_element!(
    weights_with_master_weights_are_rounded_f32_weights,
    solver_update_is_bit_identical_on_any_number_of_threads
);

#[test]
fn master_weights_accumulate_steps_too_small_for_the_weights() {
    let op = SolverUpdate::<element::bf16> {
        rate: 1.0 / 1024.0,
        scale: 1.0,
        decay: 0.0,
        regularization: Regularization::L2,
        rule: UpdateRule::Sgd { momentum: 0.0 },
    };
    let weight_after_64_steps = |masters: bool| {
        let (dw, mut w, mut m, mut h) = ([element::bf16::ONE], [element::bf16::ONE], [0.0], [0.0]);
        for _ in 0..64 {
            let masters = masters.then_some(&mut m[..]);
            solver_update(&Workers::sequential(), &op, &dw, &mut w, masters, &mut [&mut h])
                .unwrap();
        }
        w[0].to_f32()
    };
    assert_eq!(
        (weight_after_64_steps(true), weight_after_64_steps(false)),
        (1.0 - 64.0 / 1024.0, 1.0)
    );
}

#[test]
fn solver_update_length_errors_name_the_operand() {
    let adam = update_with::<f32>(rules()[5], Regularization::L2);
    let w = &Workers::sequential();
    let operands = [("dw", 3), ("masters", 3), ("history", 3)];
    expect_length_errors("solver_update", operands, |[dw, mut masters, mut h]| {
        let (mut weights, mut k) = ([0.0; 3], [0.0; 3]);
        solver_update(w, &adam, &dw, &mut weights, Some(&mut masters), &mut [&mut h, &mut k])
    });
    let result = solver_update(w, &adam, &[0.0; 3], &mut [0.0; 3], None, &mut [&mut [0.0; 3]]);
    assert_eq!(operand(result), ("solver_update", "history count"));
}
