//! Long short-term memory (LSTM): gates, cell state and hidden state of one time step, computed in
//! one pass.

use crate::{
    element::Element,
    error::{Result, check_len},
    host::{math::SimdMath, simd::vectorized, threads::Workers},
    op::{ElementaryFunctions, Lstm, sigmoid},
};
use num_traits::One;

/// Number of gate elements in one task. The LSTM kernels are compute-bound because they evaluate
/// sigmoid and tanh, so a task is small.
const GRAIN: usize = 1 << 13;

/// Runs the forward pass of one time step: activates `gates` in place and writes the cell state `c`
/// and the hidden state `h`; see [`Lstm`].
///
/// # Errors
/// Returns [`Error::Length`](crate::Error::Length), which names the operand, if an operand has the
/// wrong length.
pub(crate) fn lstm<T: Element>(
    workers: &Workers,
    op: &Lstm,
    c_prev: &[T],
    cont: &[T],
    gates: &mut [T],
    c: &mut [T],
    h: &mut [T],
) -> Result<()> {
    let states = [("c_prev", c_prev.len()), ("c", c.len()), ("h", h.len())];
    op.check("lstm", ("gates", gates.len()), &states)?;
    check_len("lstm", "cont", op.streams(), cont.len())?;
    let width = op.outputs().max(1);
    let streams = c_prev.chunks_exact(width).zip(cont).zip(gates.chunks_exact_mut(4 * width));
    let states = c.chunks_exact_mut(width).zip(h.chunks_exact_mut(width));
    let mut streams: Vec<_> = streams.zip(states).collect();
    workers.for_each_chunk(&mut streams, GRAIN.div_ceil(4 * width), |_, streams| {
        for (((c_prev, cont), gates), (c, h)) in streams {
            forward(c_prev, cont.to_acc(), gates, c, h);
        }
    });
    Ok(())
}

/// Runs the backward pass of one time step, from the gradients `dh` of the hidden state and `dc` of
/// the cell state.
///
/// On entry, `gates` holds the activated gates that [`lstm`] computed. On return, `gates` holds the
/// gradients of the gates before activation, and `dc` holds the gradient of `c_prev`. For the
/// forget gate `f`, which includes the factor `cont`, the derivative is computed as `f·(1 − f)`;
/// this is exact only if `cont` is 0 or 1.
///
/// # Errors
/// Returns [`Error::Length`](crate::Error::Length), which names the operand, if an operand has the
/// wrong length.
pub(crate) fn lstm_backward<T: Element>(
    workers: &Workers,
    op: &Lstm,
    c_prev: &[T],
    c: &[T],
    dh: &[T],
    dc: &mut [T],
    gates: &mut [T],
) -> Result<()> {
    let states = [("c_prev", c_prev.len()), ("c", c.len()), ("dh", dh.len()), ("dc", dc.len())];
    op.check("lstm_backward", ("gates", gates.len()), &states)?;
    let width = op.outputs().max(1);
    let states = c_prev.chunks_exact(width).zip(c.chunks_exact(width)).zip(dh.chunks_exact(width));
    let gradients = dc.chunks_exact_mut(width).zip(gates.chunks_exact_mut(4 * width));
    let mut streams: Vec<_> = states.zip(gradients).collect();
    workers.for_each_chunk(&mut streams, GRAIN.div_ceil(4 * width), |_, streams| {
        for (((c_prev, c), dh), (dc, gates)) in streams {
            backward(c_prev, c, dh, dc, gates);
        }
    });
    Ok(())
}

/// Runs [`lstm`] for one of the batch's independent streams.
fn forward<T: Element>(c_prev: &[T], cont: T::Acc, gates: &mut [T], c: &mut [T], h: &mut [T]) {
    let [i, f, o, g] = split_gates(gates);
    vectorized(
        #[inline(always)]
        |_| {
            for j in 0..c.len().min(c_prev.len()).min(h.len()) {
                let input = sigmoid::<T::Acc, SimdMath>(i[j].to_acc());
                let forget = cont * sigmoid::<T::Acc, SimdMath>(f[j].to_acc());
                let output = sigmoid::<T::Acc, SimdMath>(o[j].to_acc());
                let candidate = SimdMath::tanh(g[j].to_acc());
                let cell = forget * c_prev[j].to_acc() + input * candidate;
                (i[j], f[j]) = (T::from_acc(input), T::from_acc(forget));
                (o[j], g[j]) = (T::from_acc(output), T::from_acc(candidate));
                (c[j], h[j]) = (T::from_acc(cell), T::from_acc(output * SimdMath::tanh(cell)));
            }
        },
    );
}

/// Runs [`lstm_backward`] for one of the batch's independent streams.
fn backward<T: Element>(c_prev: &[T], c: &[T], dh: &[T], dc: &mut [T], gates: &mut [T]) {
    let one = T::Acc::one();
    let [i, f, o, g] = split_gates(gates);
    vectorized(
        #[inline(always)]
        |_| {
            for j in 0..dc.len().min(c_prev.len()).min(c.len()).min(dh.len()) {
                let [input, forget, output, candidate] =
                    [&i[j], &f[j], &o[j], &g[j]].map(|gate| gate.to_acc());
                let (tanh_c, dh) = (SimdMath::tanh(c[j].to_acc()), dh[j].to_acc());
                let dcell = dc[j].to_acc() + dh * output * (one - tanh_c * tanh_c);
                i[j] = T::from_acc(dcell * candidate * input * (one - input));
                f[j] = T::from_acc(dcell * c_prev[j].to_acc() * forget * (one - forget));
                o[j] = T::from_acc(dh * tanh_c * output * (one - output));
                g[j] = T::from_acc(dcell * input * (one - candidate * candidate));
                dc[j] = T::from_acc(dcell * forget);
            }
        },
    );
}

/// Splits the gates of one stream into the input, forget, output and candidate gates.
#[inline(always)]
fn split_gates<T>(gates: &mut [T]) -> [&mut [T]; 4] {
    let width = gates.len() / 4;
    let (first, second) = gates.split_at_mut(2 * width);
    let ((i, f), (o, g)) = (first.split_at_mut(width), second.split_at_mut(width));
    [i, f, o, g]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::{
        nn::testing::expect_length_errors,
        testing::{for_each_element, fractions, threads},
    };

    fn lstm_is_bit_identical_on_any_number_of_threads<T: Element>() {
        let op = Lstm::new(70, 67).unwrap();
        let state = |tag| fractions::<T>(tag, op.state());
        let (c_prev, dh) = (state(1), state(3));
        let cont: Vec<T> = (0..70).map(|i| T::from_f64(f64::from(i % 2))).collect();
        let results = threads().map(|workers| {
            let (mut gates, mut c, mut h) = (fractions(2, op.gates()), state(4), state(4));
            lstm(&workers, &op, &c_prev, &cont, &mut gates, &mut c, &mut h).unwrap();
            let (mut dc, mut dgates) = (state(5), gates.clone());
            lstm_backward(&workers, &op, &c_prev, &c, &dh, &mut dc, &mut dgates).unwrap();
            (gates, c, h, dc, dgates)
        });
        assert!(results[0] == results[1] && results[0] == results[2]);
    }

    for_each_element!(lstm_is_bit_identical_on_any_number_of_threads);

    #[test]
    fn lstm_length_errors_name_the_operand() {
        let (w, op) = (&Workers::sequential(), &Lstm::new(2, 3).unwrap());
        let operands = [("c_prev", 6), ("cont", 2), ("gates", 24), ("c", 6), ("h", 6)];
        expect_length_errors("lstm", operands, |[c_prev, cont, mut gates, mut c, mut h]| {
            lstm(w, op, &c_prev, &cont, &mut gates, &mut c, &mut h)
        });
        let operands = [("c_prev", 6), ("c", 6), ("dh", 6), ("dc", 6), ("gates", 24)];
        expect_length_errors("lstm_backward", operands, |[c_prev, c, dh, mut dc, mut gates]| {
            lstm_backward(w, op, &c_prev, &c, &dh, &mut dc, &mut gates)
        });
    }
}
