use super::*;
use crate::{
    element,
    host::testing::{for_each_element, fractions, operand, threads, wide},
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

fn settings<T: Element>(rule: UpdateRule<T>, regularization: Regularization) -> SolverUpdate<T> {
    let [rate, scale, decay] = [0.125, 0.5, 0.0625].map(T::acc);
    SolverUpdate { rate, scale, decay, regularization, rule }
}

/// The step of each rule on its own, with the constants above.
fn formula<T: Element>(rule: UpdateRule<T>, g: f64, h: &mut f64, k: &mut f64) -> f64 {
    let (rate, delta, last) = (0.125, 0.0625, *h);
    match rule {
        UpdateRule::Sgd { .. } | UpdateRule::Nesterov { .. } => *h = 0.75 * last + rate * g,
        UpdateRule::AdaGrad { .. } => *h += g.powi(2),
        UpdateRule::RmsProp { .. } | UpdateRule::AdaDelta { .. } => {
            *h = 0.75 * last + 0.25 * g.powi(2)
        }
        UpdateRule::Adam { .. } => *h = 0.25 * last + 0.75 * g,
    }
    match rule {
        UpdateRule::Sgd { .. } => *h,
        UpdateRule::Nesterov { .. } => *h + 0.75 * (*h - last),
        UpdateRule::AdaGrad { .. } | UpdateRule::RmsProp { .. } => rate * g / (h.sqrt() + delta),
        UpdateRule::AdaDelta { .. } => {
            let step = g * (*k + delta).sqrt() / (*h + delta).sqrt();
            *k = 0.75 * *k + 0.25 * step.powi(2);
            rate * step
        }
        UpdateRule::Adam { .. } => {
            *k = 0.75 * *k + 0.25 * g.powi(2);
            rate * *h / (k.sqrt() + delta)
        }
    }
}

/// Values that may be means of squares.
fn squares<T: Element>(tag: u64, len: usize) -> Vec<T::Acc> {
    fractions::<T::Acc>(tag, len).into_iter().map(|v| v * v).collect()
}

/// Eight steps against the same in `f64`, rounded where the kernel rounds.
fn agrees_with_the_formula<T: Element>() {
    let cases = [Regularization::L1, Regularization::L2]
        .into_iter()
        .flat_map(|pull| rules::<T>().map(|rule| settings(rule, pull)))
        .flat_map(|op| [0, 1, 17, CHUNK + 5].map(|len| (op, len)));
    for (op, len) in cases {
        let ulp = 2f64.powi(if T::DTYPE.size() == 2 { -8 } else { -20 });
        let dw = fractions::<T>(1, len);
        let mut w = fractions::<T>(2, len);
        let (mut h, mut k) = (squares::<T>(3, len), squares::<T>(4, len));
        for _ in 0..8 {
            let (mut want_w, mut want_h, mut want_k) = (wide(&w), wide(&h), wide(&k));
            for i in 0..len {
                let w = want_w[i];
                let pull = match op.regularization {
                    Regularization::L1 if w == 0.0 => 0.0,
                    Regularization::L1 => w.signum(),
                    Regularization::L2 => w,
                };
                let g = 0.5 * dw[i].to_f64() + 0.0625 * pull;
                want_w[i] -= formula(op.rule, g, &mut want_h[i], &mut want_k[i]);
            }
            let history: &mut [&mut [T::Acc]] = &mut [&mut h, &mut k];
            let history = &mut history[..op.rule.history_count()];
            solver_update(&Workers::sequential(), &op, &dw, &mut w, None, history).unwrap();
            let near =
                |got: f64, want: f64, ulp: f64| (got - want).abs() <= ulp * want.abs().max(1.0);
            for i in 0..len {
                assert!(near(w[i].to_f64(), want_w[i], ulp), "{op:?}");
                assert!(near(h[i].to_f64(), want_h[i], 1e-6), "{op:?}");
                assert!(near(k[i].to_f64(), want_k[i], 1e-6), "{op:?}");
            }
        }
    }
}

/// Without momentum, decay and with a power of two as the rate nothing is rounded.
fn plain_descent_is_exact<T: Element>() {
    let dw: Vec<T> = (-9..9).map(|v| T::from_f64(f64::from(v))).collect();
    let mut w: Vec<T> = (-9..9).map(|v| T::from_f64(f64::from(-v))).collect();
    let mut h = vec![T::acc(5.0); dw.len()];
    let op = SolverUpdate::<T> {
        rate: T::acc(0.5),
        scale: T::acc(2.0),
        decay: T::acc(0.0),
        regularization: Regularization::L2,
        rule: UpdateRule::Sgd { momentum: T::acc(0.0) },
    };
    solver_update(&Workers::sequential(), &op, &dw, &mut w, None, &mut [&mut h]).unwrap();
    assert_eq!(wide(&h), wide(&dw));
    assert_eq!(wide(&w), (-9..9).map(|v| f64::from(-2 * v)).collect::<Vec<_>>());
}

/// With masters, narrow weights are those of a run in the wide type, rounded.
fn masters_are_the_wide_run<T: Element>() {
    for (rule, wide_rule) in rules::<T>().into_iter().zip(rules::<T::Acc>()) {
        let (op, len) = (settings(rule, Regularization::L2), CHUNK + 7);
        let wide_op = settings(wide_rule, Regularization::L2);
        let dw = fractions::<T>(1, len);
        let mut dw_wide = vec![T::acc(0.0); len];
        widen(&dw, &mut dw_wide);
        let mut w = fractions::<T>(2, len);
        let mut w_wide = vec![T::acc(0.0); len];
        widen(&w, &mut w_wide);
        // Masters that nobody set are overruled.
        let mut masters = vec![T::acc(0.0); len];
        let kept = || [squares::<T>(3, len), squares::<T>(4, len)];
        let ([mut h, mut k], [mut h_wide, mut k_wide]) = (kept(), kept());
        for _ in 0..5 {
            let workers = Workers::sequential();
            let history: &mut [&mut [T::Acc]] = &mut [&mut h, &mut k];
            let history = &mut history[..rule.history_count()];
            solver_update(&workers, &op, &dw, &mut w, Some(&mut masters), history).unwrap();
            let history: &mut [&mut [T::Acc]] = &mut [&mut h_wide, &mut k_wide];
            let history = &mut history[..rule.history_count()];
            solver_update(&workers, &wide_op, &dw_wide, &mut w_wide, None, history).unwrap();
        }
        assert_eq!((&masters, &h, &k), (&w_wide, &h_wide, &k_wide), "{rule:?}");
        let mut rounded = vec![T::default(); len];
        narrow(&w_wide, &mut rounded);
        assert_eq!(wide(&w), wide(&rounded), "{rule:?}");
    }
}

fn any_number_of_threads<T: Element>() {
    let len = 2 * GRAIN + 33;
    let dw = fractions::<T>(4, len);
    for rule in [rules::<T>()[0], rules::<T>()[5]] {
        let op = settings(rule, Regularization::L1);
        let results = threads().map(|workers| {
            let (mut w, mut masters) = (fractions::<T>(5, len), fractions::<T::Acc>(6, len));
            let (mut h, mut k) = (squares::<T>(7, len), squares::<T>(8, len));
            let history: &mut [&mut [T::Acc]] = &mut [&mut h, &mut k];
            let history = &mut history[..rule.history_count()];
            solver_update(&workers, &op, &dw, &mut w, Some(&mut masters), history).unwrap();
            (wide(&w), wide(&masters), wide(&h), wide(&k))
        });
        assert!(results.iter().all(|result| *result == results[0]));
    }
}

for_each_element!(
    agrees_with_the_formula,
    plain_descent_is_exact,
    masters_are_the_wide_run,
    any_number_of_threads
);

#[test]
fn masters_keep_what_is_too_small_to_show() {
    let op = SolverUpdate::<element::bf16> {
        rate: 1.0 / 1024.0,
        scale: 1.0,
        decay: 0.0,
        regularization: Regularization::L2,
        rule: UpdateRule::Sgd { momentum: 0.0 },
    };
    let run = |masters: bool| {
        let (dw, mut w, mut m, mut h) = ([element::bf16::ONE], [element::bf16::ONE], [0.0], [0.0]);
        for _ in 0..64 {
            let masters = masters.then_some(&mut m[..]);
            solver_update(&Workers::sequential(), &op, &dw, &mut w, masters, &mut [&mut h])
                .unwrap();
        }
        w[0].to_f32()
    };
    assert_eq!((run(true), run(false)), (1.0 - 64.0 / 1024.0, 1.0));
}

#[test]
fn errors_name_the_operand() {
    let rule = rules::<f32>()[5];
    let (w, op) = (Workers::sequential(), settings::<f32>(rule, Regularization::L2));
    let (mut a, mut b, mut c, mut d) = ([0.0; 3], [0.0; 3], [0.0; 3], [0.0; 2]);
    let wrong = solver_update(&w, &op, &[0.0; 2], &mut a, None, &mut [&mut b, &mut c]);
    assert_eq!(operand(wrong), ("solver_update", "dw"));
    let wrong = solver_update(&w, &op, &[0.0; 3], &mut a, Some(&mut d), &mut [&mut b, &mut c]);
    assert_eq!(operand(wrong), ("solver_update", "masters"));
    let wrong = solver_update(&w, &op, &[0.0; 3], &mut a, None, &mut [&mut b]);
    assert_eq!(operand(wrong), ("solver_update", "history's blobs"));
    let wrong = solver_update(&w, &op, &[0.0; 3], &mut a, None, &mut [&mut b, &mut d]);
    assert_eq!(operand(wrong), ("solver_update", "history"));
}
