//! Solver update: one pass over gradient, weights and history applies an update rule.

use crate::{
    element::Element,
    error::Result,
    host::{
        cache::cache_line::CHUNK_ALIGN,
        simd::{
            accumulator::{
                AccumulatorBuffer, CHUNK, accumulator_buffer, is_wide, narrow, update_widened,
                widen, widened,
            },
            vectorized,
        },
        threads::Workers,
    },
    op::{Regularization, SolverUpdate, Unary, UpdateRule},
};
use num_traits::{Float, One};

#[cfg(test)]
mod tests;

/// Number of weights that one task updates. With fewer than `2 · GRAIN` weights, two threads are
/// not faster than one.
const GRAIN: usize = 1 << 16;

/// Updates the weights and the solver's history; see [`SolverUpdate`].
///
/// Each product and each sum in an update rule is rounded to `T::Acc`, and each updated weight is
/// rounded to `T`. A master weight that does not round to its 16-bit weight is stale. Before the
/// update, `solver_update` replaces stale master weights by the values of the 16-bit weights.
///
/// # Errors
/// Returns [`Error::Length`](crate::Error::Length), which names the operand, if an operand has the
/// wrong length.
pub(crate) fn solver_update<T: Element>(
    workers: &Workers,
    op: &SolverUpdate<T>,
    dw: &[T],
    weights: &mut [T],
    masters: Option<&mut [T::Acc]>,
    history: &mut [&mut [T::Acc]],
) -> Result<()> {
    let lengths = history.iter().map(|history| history.len());
    op.check(weights.len(), dw.len(), masters.as_deref().map(<[_]>::len), lengths)?;
    let mut tasks = Task::split(workers, dw, weights, masters, history);
    workers
        .for_each_chunk(&mut tasks, 1, |_, tasks| tasks.iter_mut().for_each(|task| task.run(op)));
    Ok(())
}

struct Task<'a, T: Element> {
    dw: &'a [T],
    weights: &'a mut [T],
    masters: Option<&'a mut [T::Acc]>,
    /// The solver's history, with up to two values per weight. The second slice of `history` is
    /// empty if the update rule uses only one history value per weight.
    history: [&'a mut [T::Acc]; 2],
}

impl<'a, T: Element> Task<'a, T> {
    fn split(
        workers: &Workers,
        dw: &'a [T],
        weights: &'a mut [T],
        masters: Option<&'a mut [T::Acc]>,
        history: &'a mut [&mut [T::Acc]],
    ) -> Vec<Self> {
        let len = workers.even_chunk_len(weights.len(), GRAIN, CHUNK_ALIGN);
        let mut masters = masters.map(|masters| masters.chunks_mut(len));
        let mut history: Vec<_> = history.iter_mut().map(|h| h.chunks_mut(len)).collect();
        let mut history = |i: usize| history.get_mut(i).and_then(Iterator::next);
        let tasks = dw.chunks(len).zip(weights.chunks_mut(len)).map(|(dw, weights)| Self {
            dw,
            weights,
            masters: masters.as_mut().and_then(Iterator::next),
            history: [0, 1].map(|i| history(i).unwrap_or_default()),
        });
        tasks.collect()
    }

    fn run(&mut self, op: &SolverUpdate<T>) {
        let (len, block) = (self.dw.len(), if const { is_wide::<T>() } { GRAIN } else { CHUNK });
        let (mut wide_dw, mut wide_w) = (accumulator_buffer(), accumulator_buffer());
        for start in (0..len).step_by(block) {
            let range = start..len.min(start + block);
            let dw = widened(&self.dw[range.clone()], &mut wide_dw);
            let weights = &mut self.weights[range.clone()];
            let history =
                self.history.each_mut().map(|h| h.get_mut(range.clone()).unwrap_or_default());
            match &mut self.masters {
                None => update_widened(weights, &mut wide_w, |w| update(op, dw, w, history)),
                Some(masters) => {
                    let masters = &mut masters[range];
                    reset_stale_masters(weights, masters, &mut wide_w);
                    update(op, dw, masters, history);
                    narrow(masters, weights);
                }
            }
        }
    }
}

/// Replaces each stale master weight by its 16-bit weight. A master weight is stale if it does not
/// round to the 16-bit weight.
fn reset_stale_masters<T: Element>(
    weights: &[T],
    masters: &mut [T::Acc],
    buffer: &mut AccumulatorBuffer<T::Acc>,
) {
    let mut rounded_masters = [T::default(); CHUNK];
    for (weights, masters) in weights.chunks(CHUNK).zip(masters.chunks_mut(CHUNK)) {
        let len = weights.len();
        narrow(masters, &mut rounded_masters[..len]);
        let mut wide_rounded_masters = accumulator_buffer::<T::Acc>();
        widen(&rounded_masters[..len], &mut wide_rounded_masters[..len]);
        let weights = widened(weights, buffer);
        for ((master, rounded_master), weight) in
            masters.iter_mut().zip(&wide_rounded_masters).zip(weights)
        {
            *master = if rounded_master == weight { *master } else { *weight };
        }
    }
}

/// Applies the update rule `op.rule` to the weights `w`.
fn update<T: Element>(
    op: &SolverUpdate<T>,
    dw: &[T::Acc],
    w: &mut [T::Acc],
    history: [&mut [T::Acc]; 2],
) {
    let (rate, one) = (op.rate, T::Acc::one());
    let ([h, k], operands) = (history, (op, dw, w));
    match op.rule {
        UpdateRule::Sgd { momentum } => apply_with_one_history(
            operands,
            h,
            #[inline(always)]
            |g, h| {
                *h = momentum * *h + rate * g;
                *h
            },
        ),
        UpdateRule::Nesterov { momentum } => apply_with_one_history(
            operands,
            h,
            #[inline(always)]
            |g, h| {
                let old_h = *h;
                *h = momentum * old_h + rate * g;
                (one + momentum) * *h - momentum * old_h
            },
        ),
        UpdateRule::AdaGrad { delta } => apply_with_one_history(
            operands,
            h,
            #[inline(always)]
            |g, h| {
                *h = *h + g * g;
                rate * g / (h.sqrt() + delta)
            },
        ),
        UpdateRule::RmsProp { decay, delta } => apply_with_one_history(
            operands,
            h,
            #[inline(always)]
            |g, h| {
                *h = decay * *h + (one - decay) * (g * g);
                rate * g / (h.sqrt() + delta)
            },
        ),
        UpdateRule::AdaDelta { momentum, delta } => apply_with_two_histories(
            operands,
            [h, k],
            #[inline(always)]
            |g, h, k| {
                *h = momentum * *h + (one - momentum) * (g * g);
                let s = g * ((*k + delta) / (*h + delta)).sqrt();
                *k = momentum * *k + (one - momentum) * (s * s);
                rate * s
            },
        ),
        UpdateRule::Adam { beta1, beta2, delta } => apply_with_two_histories(
            operands,
            [h, k],
            #[inline(always)]
            |g, h, k| {
                *h = beta1 * *h + (one - beta1) * g;
                *k = beta2 * *k + (one - beta2) * (g * g);
                rate * *h / (k.sqrt() + delta)
            },
        ),
    }
}

/// Applies an update rule with one history value per weight: subtracts from each weight the step
/// that the rule computes.
#[inline(always)]
fn apply_with_one_history<T: Element>(
    (op, dw, w): (&SolverUpdate<T>, &[T::Acc], &mut [T::Acc]),
    h: &mut [T::Acc],
    rule: impl Fn(T::Acc, &mut T::Acc) -> T::Acc,
) {
    let op = *op;
    vectorized(
        #[inline(always)]
        move |_| {
            for ((&dw, w), h) in dw.iter().zip(w).zip(h) {
                *w = *w - rule(gradient(&op, dw, *w), h);
            }
        },
    );
}

/// Applies an update rule with two history values per weight: subtracts from each weight the step
/// that the rule computes.
#[inline(always)]
fn apply_with_two_histories<T: Element>(
    (op, dw, w): (&SolverUpdate<T>, &[T::Acc], &mut [T::Acc]),
    [h, k]: [&mut [T::Acc]; 2],
    rule: impl Fn(T::Acc, &mut T::Acc, &mut T::Acc) -> T::Acc,
) {
    let op = *op;
    vectorized(
        #[inline(always)]
        move |_| {
            for (((&dw, w), h), k) in dw.iter().zip(w).zip(h).zip(k) {
                *w = *w - rule(gradient(&op, dw, *w), h, k);
            }
        },
    );
}

/// Returns `scale · dw + decay · r(w)`, where `r` is the derivative of the regularization.
#[inline(always)]
fn gradient<T: Element>(op: &SolverUpdate<T>, dw: T::Acc, w: T::Acc) -> T::Acc {
    let r = match op.regularization {
        Regularization::L1 => Unary::Sign.eval(w),
        Regularization::L2 => w,
    };
    op.scale * dw + op.decay * r
}
