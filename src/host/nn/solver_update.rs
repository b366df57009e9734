//! Solver steps.

use crate::{
    element::Element,
    error::Result,
    host::{
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

/// Elements of one task: below twice this, a second thread costs more than it saves.
const GRAIN: usize = 1 << 16;

/// One step down the gradient, as [`SolverUpdate`] says, in one pass over all operands.
///
/// Each product and sum is rounded to `T::Acc`; weights are rounded to `T` in the end. The gradient
/// is left as it is. A weight that is not its master rounded overrules its master first.
///
/// # Errors
/// [`Error::Length`](crate::Error::Length) as [`SolverUpdate::check`].
pub fn solver_update<T: Element>(
    workers: &Workers,
    op: &SolverUpdate<T>,
    dw: &[T],
    weights: &mut [T],
    masters: Option<&mut [T::Acc]>,
    history: &mut [&mut [T::Acc]],
) -> Result<()> {
    let lengths = history.iter().map(|history| history.len());
    op.check(weights.len(), dw.len(), masters.as_deref().map(<[_]>::len), lengths)?;
    let mut parts = Part::split(dw, weights, masters, history);
    workers.for_each_chunk(&mut parts, 1, |_, parts| {
        parts.iter_mut().for_each(|part| part.solver_update(op))
    });
    Ok(())
}

/// The operands of a task.
struct Part<'a, T: Element> {
    dw: &'a [T],
    weights: &'a mut [T],
    masters: Option<&'a mut [T::Acc]>,
    /// What the rule keeps; the second is empty for a rule that keeps one value a weight.
    history: [&'a mut [T::Acc]; 2],
}

impl<'a, T: Element> Part<'a, T> {
    fn split(
        dw: &'a [T],
        weights: &'a mut [T],
        masters: Option<&'a mut [T::Acc]>,
        history: &'a mut [&mut [T::Acc]],
    ) -> Vec<Self> {
        let mut masters = masters.map(|masters| masters.chunks_mut(GRAIN));
        let mut history: Vec<_> = history.iter_mut().map(|h| h.chunks_mut(GRAIN)).collect();
        let mut history = |i: usize| history.get_mut(i).and_then(Iterator::next);
        let parts = dw.chunks(GRAIN).zip(weights.chunks_mut(GRAIN)).map(|(dw, weights)| Self {
            dw,
            weights,
            masters: masters.as_mut().and_then(Iterator::next),
            history: [0, 1].map(|i| history(i).unwrap_or_default()),
        });
        parts.collect()
    }

    fn solver_update(&mut self, op: &SolverUpdate<T>) {
        let (len, run) = (self.dw.len(), if is_wide::<T>() { GRAIN } else { CHUNK });
        let (mut room_dw, mut room_w) = (accumulator_buffer(), accumulator_buffer());
        for start in (0..len).step_by(run) {
            let range = start..len.min(start + run);
            let dw = widened(&self.dw[range.clone()], &mut room_dw);
            let weights = &mut self.weights[range.clone()];
            let history =
                self.history.each_mut().map(|h| h.get_mut(range.clone()).unwrap_or_default());
            match &mut self.masters {
                None => update_widened(weights, &mut room_w, |w| step(op, dw, w, history)),
                Some(masters) => {
                    let masters = &mut masters[range];
                    overrule(weights, masters, &mut room_w);
                    step(op, dw, masters, history);
                    narrow(masters, weights);
                }
            }
        }
    }
}

/// Makes a master the weight unless it rounds to it.
fn overrule<T: Element>(
    weights: &[T],
    masters: &mut [T::Acc],
    room: &mut AccumulatorBuffer<T::Acc>,
) {
    let mut rounded = [T::default(); CHUNK];
    for (weights, masters) in weights.chunks(CHUNK).zip(masters.chunks_mut(CHUNK)) {
        let len = weights.len();
        narrow(masters, &mut rounded[..len]);
        let mut room_rounded = accumulator_buffer::<T::Acc>();
        widen(&rounded[..len], &mut room_rounded[..len]);
        let weights = widened(weights, room);
        for ((master, rounded), weight) in masters.iter_mut().zip(&room_rounded).zip(weights) {
            *master = if rounded == weight { *master } else { *weight };
        }
    }
}

fn step<T: Element>(
    op: &SolverUpdate<T>,
    dw: &[T::Acc],
    w: &mut [T::Acc],
    history: [&mut [T::Acc]; 2],
) {
    let (rate, one) = (op.rate, T::Acc::one());
    let [h, k] = history;
    match op.rule {
        UpdateRule::Sgd { momentum } => keep_one(
            op,
            dw,
            w,
            h,
            #[inline(always)]
            |g, h| {
                *h = momentum * *h + rate * g;
                *h
            },
        ),
        UpdateRule::Nesterov { momentum } => keep_one(
            op,
            dw,
            w,
            h,
            #[inline(always)]
            |g, h| {
                let last = *h;
                *h = momentum * last + rate * g;
                (one + momentum) * *h - momentum * last
            },
        ),
        UpdateRule::AdaGrad { delta } => keep_one(
            op,
            dw,
            w,
            h,
            #[inline(always)]
            |g, h| {
                *h = *h + g * g;
                rate * g / (h.sqrt() + delta)
            },
        ),
        UpdateRule::RmsProp { decay, delta } => keep_one(
            op,
            dw,
            w,
            h,
            #[inline(always)]
            |g, h| {
                *h = decay * *h + (one - decay) * (g * g);
                rate * g / (h.sqrt() + delta)
            },
        ),
        UpdateRule::AdaDelta { momentum, delta } => keep_two(
            op,
            dw,
            w,
            [h, k],
            #[inline(always)]
            |g, h, k| {
                *h = momentum * *h + (one - momentum) * (g * g);
                let s = g * ((*k + delta) / (*h + delta)).sqrt();
                *k = momentum * *k + (one - momentum) * (s * s);
                rate * s
            },
        ),
        UpdateRule::Adam { beta1, beta2, delta } => keep_two(
            op,
            dw,
            w,
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

/// A rule that keeps one value a weight.
#[inline(always)]
fn keep_one<T: Element>(
    op: &SolverUpdate<T>,
    dw: &[T::Acc],
    w: &mut [T::Acc],
    h: &mut [T::Acc],
    rule: impl Fn(T::Acc, &mut T::Acc) -> T::Acc,
) {
    let op = *op;
    vectorized(
        #[inline(always)]
        move || {
            for ((&dw, w), h) in dw.iter().zip(w).zip(h) {
                *w = *w - rule(gradient(&op, dw, *w), h);
            }
        },
    );
}

/// A rule that keeps two values a weight.
#[inline(always)]
fn keep_two<T: Element>(
    op: &SolverUpdate<T>,
    dw: &[T::Acc],
    w: &mut [T::Acc],
    [h, k]: [&mut [T::Acc]; 2],
    rule: impl Fn(T::Acc, &mut T::Acc, &mut T::Acc) -> T::Acc,
) {
    let op = *op;
    vectorized(
        #[inline(always)]
        move || {
            for (((&dw, w), h), k) in dw.iter().zip(w).zip(h).zip(k) {
                *w = *w - rule(gradient(&op, dw, *w), h, k);
            }
        },
    );
}

/// `scale · dw + decay · r(w)`
#[inline(always)]
fn gradient<T: Element>(op: &SolverUpdate<T>, dw: T::Acc, w: T::Acc) -> T::Acc {
    let pull = match op.regularization {
        Regularization::L1 => Unary::Sign.eval(w),
        Regularization::L2 => w,
    };
    op.scale * dw + op.decay * pull
}
