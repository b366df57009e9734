//! Solver steps.

use super::{
    simd::vectorized,
    widen::{CHUNK, chunk, is_wide, update, widened},
    workers::Workers,
};
use crate::{
    element::Element,
    error::{Result, expect_len},
    op::{Regularization, Sgd, Unary},
};

/// Elements of one task: below twice this, a second thread costs more than it saves.
const TASK: usize = 1 << 16;

/// One step of stochastic gradient descent with momentum, in one pass:
///
/// ```text
/// g ← scale · dw + decay · r(w)
/// h ← momentum · h + rate · g
/// w ← w − h
/// ```
///
/// Each product and sum is rounded to `T::Acc`; `h` and `w` are rounded to `T` in the end, `w`
/// from the unrounded `h`. The gradient is left as it is.
///
/// # Errors
/// [`Error::Length`](crate::Error::Length) unless `dw` and `history` are as long as `weights`.
#[doc(alias = "ComputeUpdateValue")]
#[doc(alias = "sgd_update")]
pub fn sgd<T: Element>(
    workers: &Workers,
    op: &Sgd<T>,
    dw: &[T],
    weights: &mut [T],
    history: &mut [T],
) -> Result<()> {
    expect_len("sgd", "dw", weights.len(), dw.len())?;
    expect_len("sgd", "history", weights.len(), history.len())?;
    let run = if is_wide::<T>() { TASK } else { CHUNK };
    workers.chunks2((weights, TASK), (history, TASK), |i, weights, history| {
        let (mut room_dw, mut room_w, mut room_h) = (chunk(), chunk(), chunk());
        let dw = dw[i * TASK..][..weights.len()].chunks(run);
        for ((dw, w), h) in dw.zip(weights.chunks_mut(run)).zip(history.chunks_mut(run)) {
            let dw = widened(dw, &mut room_dw);
            update(w, &mut room_w, |w| update(h, &mut room_h, |h| step(op, dw, w, h)));
        }
    });
    Ok(())
}

fn step<T: Element>(op: &Sgd<T>, dw: &[T::Acc], w: &mut [T::Acc], h: &mut [T::Acc]) {
    match op.regularization {
        Regularization::L1 => step_with(op, dw, w, h, |w| Unary::Sign.eval(w)),
        Regularization::L2 => step_with(op, dw, w, h, |w| w),
    }
}

#[inline(always)]
fn step_with<T: Element>(
    op: &Sgd<T>,
    dw: &[T::Acc],
    w: &mut [T::Acc],
    h: &mut [T::Acc],
    pull: impl Fn(T::Acc) -> T::Acc,
) {
    let Sgd { rate, momentum, decay, scale, .. } = *op;
    vectorized(
        #[inline(always)]
        move || {
            for ((&dw, w), h) in dw.iter().zip(w).zip(h) {
                let g = scale * dw + decay * pull(*w);
                *h = momentum * *h + rate * g;
                *w = *w - *h;
            }
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::testing::{for_each_element, fractions, operand, threads, wide};

    fn settings<T: Element>(regularization: Regularization) -> Sgd<T> {
        Sgd {
            rate: T::acc(0.125),
            momentum: T::acc(0.75),
            decay: T::acc(0.0625),
            scale: T::acc(0.5),
            regularization,
        }
    }

    /// Eight steps against the same in `f64`, rounded where the kernel rounds.
    fn agrees_with_the_formula<T: Element>() {
        for (regularization, len) in [Regularization::L1, Regularization::L2]
            .into_iter()
            .flat_map(|r| [0, 1, 17, CHUNK + 5].map(|len| (r, len)))
        {
            let op = settings::<T>(regularization);
            let ulp = 2f64.powi(if T::DTYPE.size() == 2 { -8 } else { -22 });
            let dw = fractions::<T>(1, len);
            let (mut w, mut h) = (fractions::<T>(2, len), fractions::<T>(3, len));
            for _ in 0..8 {
                let (mut want_w, mut want_h) = (wide(&w), wide(&h));
                for i in 0..len {
                    let w = want_w[i];
                    let pull = match regularization {
                        Regularization::L1 if w == 0.0 => 0.0,
                        Regularization::L1 => w.signum(),
                        Regularization::L2 => w,
                    };
                    let g = 0.5 * dw[i].to_f64() + 0.0625 * pull;
                    want_h[i] = 0.75 * want_h[i] + 0.125 * g;
                    want_w[i] = w - want_h[i];
                }
                sgd(&Workers::sequential(), &op, &dw, &mut w, &mut h).unwrap();
                let close = |got: &[T], want: &[f64]| {
                    let mut pairs = got.iter().zip(want);
                    pairs
                        .all(|(got, want)| (got.to_f64() - want).abs() <= ulp * want.abs().max(1.0))
                };
                assert!(close(&w, &want_w) && close(&h, &want_h));
            }
        }
    }

    /// Without momentum, decay and with a power of two as the rate nothing is rounded.
    fn plain_descent_is_exact<T: Element>() {
        let dw: Vec<T> = (-9..9).map(|v| T::from_f64(f64::from(v))).collect();
        let mut w: Vec<T> = (-9..9).map(|v| T::from_f64(f64::from(-v))).collect();
        let mut h = vec![T::from_f64(5.0); dw.len()];
        let op = Sgd {
            rate: T::acc(0.5),
            momentum: T::acc(0.0),
            decay: T::acc(0.0),
            scale: T::acc(2.0),
            regularization: Regularization::L2,
        };
        sgd(&Workers::sequential(), &op, &dw, &mut w, &mut h).unwrap();
        assert_eq!(wide(&h), wide(&dw));
        assert_eq!(wide(&w), (-9..9).map(|v| f64::from(-2 * v)).collect::<Vec<_>>());
    }

    fn any_number_of_threads<T: Element>() {
        let len = 2 * TASK + 33;
        let dw = fractions::<T>(4, len);
        let results = threads().map(|workers| {
            let (mut w, mut h) = (fractions::<T>(5, len), fractions::<T>(6, len));
            sgd(&workers, &settings(Regularization::L1), &dw, &mut w, &mut h).unwrap();
            w.append(&mut h);
            bytemuck::cast_slice::<T, u8>(&w).to_vec()
        });
        assert!(results.iter().all(|result| *result == results[0]));
    }

    for_each_element!(agrees_with_the_formula, plain_descent_is_exact, any_number_of_threads);

    #[test]
    fn errors_name_the_operand() {
        let (w, op) = (Workers::sequential(), settings::<f32>(Regularization::L2));
        let (mut a, mut b) = ([0.0; 3], [0.0; 2]);
        assert_eq!(operand(sgd(&w, &op, &[0.0; 2], &mut a, &mut b)), ("sgd", "dw"));
        assert_eq!(operand(sgd(&w, &op, &[0.0; 3], &mut a, &mut b)), ("sgd", "history"));
    }
}
